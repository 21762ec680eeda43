//! Admission: the guard of a cluster, a policy by which its API server refuses Peers that the meshes do not allow.
//!
//! A guard holds only what people declared, so it does not change with a node. The policy decides in CEL, and
//! [`Guard::refusals`] decides the same here, for Peers that are not written yet or that are there already.
//! `tests/cluster` compares the two on a real API server.

use std::collections::{BTreeMap, BTreeSet};

use crate::mesh::{Entry, Link, Mesh, Range};
use crate::name::ClusterName;
use crate::net::{Cidr, Family, merged};
use crate::plan::accepted_of;

mod accounts;
mod allowed;
mod cost;
mod form;
mod judgement;
mod options;
mod policy;
mod recorded;
mod refusal;

pub use accounts::{Account, Accounts};
pub use allowed::AllowedPeerError;
pub use cost::{GuardCost, MOST_COST};
pub use form::PeerForm;
pub use options::GuardOptions;
pub use policy::{GuardError, NAME};
pub use recorded::{Excess, Recorded};
pub use refusal::Refusal;

/// The most allowed IPs of a Peer.
pub const MOST_RANGES: usize = 1500;

/// The most allowed IPs that are compared with each other. More would cost too much; Kilo merges those that a Peer
/// has twice.
const MOST_COMPARED: usize = 400;

/// The key of what holds for Peers without the label of a mesh. No label has this value.
const ANY: &str = "/";

/// The guard of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// The cluster.
    pub cluster: ClusterName,
    /// The declarations of the meshes.
    declared: GuardDeclarations,
    /// The decisions of the owner of the cluster.
    pub access: GuardAccess,
}

/// Declarations, as the policy looks them up.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct GuardDeclarations {
    /// The ranges that the cluster accepts, by mesh and source: `MESH/SOURCE`.
    sources: BTreeMap<String, Vec<Cidr>>,
    /// The suffixes of DNS names in endpoints, by mesh and source.
    domains: BTreeMap<String, Vec<String>>,
    /// The cluster's own ranges, by mesh, and of all meshes under [`ANY`].
    own: BTreeMap<String, Vec<Cidr>>,
    /// Own ranges in which no endpoint of another cluster can be, by mesh, and of all meshes under [`ANY`].
    closed: BTreeMap<String, Vec<Cidr>>,
    /// The families of its own ranges.
    families: BTreeSet<Family>,
}

/// The decisions of the owner of a cluster about its guard.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GuardAccess {
    /// The accounts that may write Peers with our labels; without it, everyone with the right to write Peers.
    pub writers: Option<Accounts>,
    /// Peers without our labels, with their ranges.
    pub peers: BTreeMap<String, Vec<Cidr>>,
    /// The accounts that may write these.
    pub peer_writers: Accounts,
    /// The fate of a Peer that breaks a rule.
    pub enforcement: Enforcement,
}

/// The fate of a Peer that breaks a rule. An API server takes no policy that both denies and warns.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Enforcement {
    /// It is stored. The user gets a warning, and the audit log an entry.
    Warn,
    /// It is refused.
    #[default]
    Deny,
}

impl Guard {
    /// Returns the guard of a cluster: what it accepts of each cluster that it is linked to, also of those that are
    /// still joining.
    pub fn new(meshes: &[Mesh], cluster: &ClusterName, mut access: GuardAccess) -> Self {
        // The policy accepts an allowed IP only if exactly one range has it.
        for ranges in access.peers.values_mut() {
            *ranges = merged(ranges.iter().copied());
        }
        let mut declared = GuardDeclarations::default();
        for mesh in meshes {
            let own = mesh.entries.iter().find(|it| it.name == *cluster);
            if let Some(own) = own {
                declared.add(mesh, own);
            }
        }
        let cluster = cluster.clone();
        Self { cluster, declared, access }
    }

    /// Returns whether an endpoint may be in the cluster's own ranges of pods, services and WireGuard addresses, because an
    /// entry with `allowedNetworks` does not show which ranges these are.
    pub fn is_open(&self) -> bool {
        self.declared.closed.values().any(Vec::is_empty)
    }
}

impl GuardDeclarations {
    /// Adds what one mesh declares.
    fn add(&mut self, mesh: &Mesh, own: &Entry) {
        let networks = own.networks.all();
        let kept: Vec<Cidr> = cidrs(networks.iter().copied().chain(&own.local_networks));
        self.families.extend(networks.iter().map(|it| it.cidr.family()));
        for (ranges, more) in
            [(&mut self.own, kept.clone()), (&mut self.closed, cidrs(own.networks.exclusive()))]
        {
            for name in [mesh.name.as_str(), ANY] {
                let all = ranges.entry(name.to_owned()).or_default();
                *all = merged(all.iter().chain(&more).copied());
            }
        }
        let linked = |it: &&Entry| {
            let link = mesh.link(own, it);
            it.name != own.name && matches!(link, Some(Link::Exchange | Link::Planned))
        };
        for source in mesh.all_entries().filter(linked) {
            let given = source.given().into_iter().map(|it| it.cidr);
            let accepted = accepted_of(own.accepted_lists(), given).into_iter();
            let accepted = accepted.filter(|it| self.families.contains(&it.family()));
            let accepted = merged(accepted.flat_map(|it| it.without(&kept)));
            if accepted.is_empty() {
                continue;
            }
            let key = format!("{}/{}", mesh.name, source.name);
            if !source.endpoint_domains.is_empty() {
                let domains = source.endpoint_domains.clone();
                self.domains.insert(key.clone(), domains);
            }
            self.sources.insert(key, accepted);
        }
    }
}

fn cidrs<'r>(ranges: impl IntoIterator<Item = &'r Range>) -> Vec<Cidr> {
    merged(ranges.into_iter().map(|it| it.cidr))
}

#[cfg(test)]
mod tests;
