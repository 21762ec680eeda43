//! External peers: entries for Peers that were made by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use super::Proposal;
use crate::diagnostic::Finding;
use crate::document::Source;
use crate::kilo::node::annotation;
use crate::kilo::peer::translation::{Translation, TranslationFault};
use crate::mesh;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::snapshot::Snapshot;
use crate::text;
use crate::wireguard::{Endpoint, PublicKey};

/// A Peer of a cluster that no mesh gave it.
#[derive(Clone, Debug)]
pub struct HandMadePeer {
    /// The cluster.
    pub cluster: ClusterName,
    /// Its name, a DNS-1123 subdomain.
    pub name: String,
    /// The Peer as an agent reads it.
    pub spec: Result<Translation, TranslationFault>,
}

/// An entry of `externalPeers` for the Peers with one key.
#[derive(Clone, Debug)]
pub(super) struct ProposedExternal {
    pub(super) name: String,
    pub(super) key: PublicKey,
    pub(super) ranges: Vec<Cidr>,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) keepalive: Option<NonZeroU64>,
    pub(super) clusters: Vec<ClusterName>,
}

/// Peers with one key that cannot be an entry.
#[derive(Clone, Debug)]
pub(super) struct LeftPeer {
    pub(super) name: String,
    pub(super) clusters: Vec<ClusterName>,
    pub(super) reason: String,
}

/// The entries for Peers that were made by hand, and those that stay as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Externals {
    pub(super) proposed: Vec<ProposedExternal>,
    pub(super) left: Vec<LeftPeer>,
}

impl Proposal {
    /// Proposes entries for Peers that were made by hand. Peers with the keys of nodes are those that the mesh
    /// replaces.
    pub fn add_externals(&mut self, peers: &[HandMadePeer], snapshots: &[Snapshot]) {
        let nodes = snapshots.iter().flat_map(|it| &it.nodes);
        let keys = nodes.filter_map(|it| it.annotations.get(annotation::KEY));
        let keys: BTreeSet<_> = keys.filter_map(PublicKey::bytes_as_kilo_reads).collect();
        let mut groups: BTreeMap<Option<[u8; 32]>, Vec<&HandMadePeer>> = BTreeMap::new();
        for peer in peers {
            let key = peer.spec.as_ref().ok().map(|it| it.key);
            if key.is_none_or(|it| !keys.contains(&it)) {
                groups.entry(key).or_default().push(peer);
            }
        }
        for group in groups.into_values() {
            match entry(&group) {
                Ok(entry) => self.externals.proposed.push(entry),
                Err(reason) => self.leave(&group, &reason),
            }
        }
        self.leave_out_refused();
    }

    /// Returns whether it lists Peers that were made by hand.
    pub fn lists_peers(&self) -> bool {
        !self.externals.proposed.is_empty() || !self.externals.left.is_empty()
    }

    fn leave(&mut self, group: &[&HandMadePeer], reason: &str) {
        let left = group.iter().map(|it| LeftPeer {
            name: it.name.clone(),
            clusters: vec![it.cluster.clone()],
            reason: reason.to_owned(),
        });
        self.externals.left.extend(left);
    }

    /// Leaves out the entries that the gate of meshes refuses: first those that are wrong alone, and then of each pair the
    /// second one.
    fn leave_out_refused(&mut self) {
        while !self.externals.proposed.is_empty() {
            let Ok(source) = Source::parse("mesh.yaml", self.to_checked_yaml()) else {
                let reason = "the Peers are too many or too large for one file";
                let all = (0..self.externals.proposed.len()).map(|it| (it, reason.to_owned()));
                return self.leave_out(all.collect());
            };
            let reading = mesh::read(&[source]);
            let refused = refused(&reading.diagnostics);
            if refused.is_empty() {
                return;
            }
            self.leave_out(refused);
        }
    }

    fn leave_out(&mut self, refused: BTreeMap<usize, String>) {
        for (index, reason) in refused.into_iter().rev() {
            if self.externals.proposed.len() <= index {
                continue;
            }
            let entry = self.externals.proposed.remove(index);
            self.externals.left.push(LeftPeer {
                name: entry.name,
                clusters: entry.clusters,
                reason,
            });
        }
    }
}

/// Returns the entries that mistakes are about, with the mistake of each.
fn refused(findings: &[Finding]) -> BTreeMap<usize, String> {
    let (mut alone, mut pairs) = (BTreeMap::new(), BTreeMap::new());
    for finding in findings {
        let entries = entries_of(finding);
        let (Some(&first), Some(&last)) = (entries.first(), entries.last()) else {
            continue;
        };
        let message = || finding.message.to_string();
        if first == last {
            alone.entry(last).or_insert_with(message);
        } else {
            pairs.entry((first, last)).or_insert_with(message);
        }
    }
    if !alone.is_empty() {
        return alone;
    }
    let mut refused = BTreeMap::new();
    for ((first, last), reason) in pairs {
        if !refused.contains_key(&first) {
            refused.entry(last).or_insert(reason);
        }
    }
    refused
}

/// Returns the indices of the entries that a mistake is about.
fn entries_of(finding: &Finding) -> BTreeSet<usize> {
    let labels = finding.labels.iter();
    let indices = labels.filter_map(|it| {
        let mut steps = it.place.pointer.steps().skip_while(|it| it != "externalPeers");
        steps.nth(1)?.parse().ok()
    });
    indices.collect()
}

/// Returns the entry for Peers with one key.
///
/// # Errors
/// The reason why they cannot be an entry.
fn entry(group: &[&HandMadePeer]) -> Result<ProposedExternal, String> {
    let unread = "Kilo does not accept it";
    let first = group.first().ok_or(unread)?;
    let spec = first.spec.as_ref().map_err(|_| unread)?;
    let key = PublicKey::try_from(spec.key).map_err(|error| format!("its key is {error}"))?;
    if group.iter().any(|it| it.spec.as_ref().is_ok_and(|it| it.preshared_key.is_some())) {
        return Err("it has a pre-shared key, which an entry cannot have".to_owned());
    }
    let clusters: BTreeSet<&ClusterName> = group.iter().map(|it| &it.cluster).collect();
    if clusters.len() < group.len() {
        let names = group.iter().map(|it| &it.name);
        return Err(format!("a cluster has several Peers with its key: {}", text::listed(names)));
    }
    if let Some(other) = group.iter().find(|it| terms(it) != terms(first)) {
        return Err(format!(
            "its ranges, endpoint or keepalive in {} differ from those in {}",
            other.cluster, first.cluster
        ));
    }
    Ok(ProposedExternal {
        name: first.name.clone(),
        key,
        ranges: ranges(spec),
        endpoint: spec.dialled().cloned(),
        keepalive: spec.keepalive,
        clusters: clusters.into_iter().cloned().collect(),
    })
}

/// Returns the values that an entry has once for all clusters.
fn terms(peer: &HandMadePeer) -> Option<(Vec<Cidr>, Option<&Endpoint>, Option<NonZeroU64>)> {
    let spec = peer.spec.as_ref().ok()?;
    Some((ranges(spec), spec.dialled(), spec.keepalive))
}

fn ranges(spec: &Translation) -> Vec<Cidr> {
    let mut ranges = spec.networks();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}
