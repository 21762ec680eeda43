//! Counterparts: which cluster of the old version is which one of the new version.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::Cause;
use super::{Version, Versions};
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, Site, SiteId, Sites};
use crate::fleet::{Fleet, Member};
use crate::mesh::{Mesh, State};
use crate::name::ClusterName;

/// The clusters of both versions that are the same.
#[derive(Clone, Debug)]
pub(super) struct Counterparts {
    /// By cluster of the new version: that of the old one.
    before: Sites<Option<SiteId>>,
    /// By cluster of the old version: that of the new one.
    after: Sites<Option<SiteId>>,
    /// The names of clusters that are in both, the old one first.
    names: Vec<(ClusterName, ClusterName)>,
}

impl Counterparts {
    /// Finds them: by the keys of their nodes and by name. Two clusters can swap their names, so a name counts
    /// first only if a key is the same, too.
    pub(super) fn find(fabrics: Versions<&Fabric, &Fabric>) -> Self {
        let (old, new) = (fabrics.before, fabrics.after);
        let mut found = Self::paired(fabrics, true);
        let name = |it: SiteId| old.site(it).cluster.as_str();
        // A cluster that left would have the name of another one.
        let is_ambiguous = found.left().any(|it| new.site_named(name(it)).is_some());
        if is_ambiguous {
            found = Self::paired(fabrics, false);
        }
        let pairs = found.after.numbered();
        let pairs = pairs.filter_map(|(from, to)| Some((old.site(from), new.site((*to)?))));
        let names = pairs.map(|(old, new)| (old.cluster.clone(), new.cluster.clone()));
        found.names = names.collect();
        found
    }

    fn paired(fabrics: Versions<&Fabric, &Fabric>, by_keys_first: bool) -> Self {
        let (old, new) = (fabrics.before, fabrics.after);
        let mut found = Self {
            before: new.sites.map(|_| None),
            after: old.sites.map(|_| None),
            names: Vec::new(),
        };
        if by_keys_first {
            found.add_namesakes(fabrics, |from, to| {
                node_keys(new.site(to)).any(|key| old.holding_sites(&key).any(|it| it == from))
            });
        } else {
            found.add_namesakes(fabrics, |_, _| true);
        }
        let joined: BTreeSet<SiteId> = without_counterpart(&found.before).collect();
        // A cluster whose name is gone comes first.
        let is_named = |it: &SiteId| new.site_named(old.site(*it).cluster.as_str()).is_some();
        let mut left: Vec<SiteId> = found.left().collect();
        left.sort_by_key(is_named);
        let left = left.into_iter();
        let left = left.map(|it| (it, node_keys(old.site(it)).collect()));
        let holders =
            |key: &[u8; 32]| new.holding_sites(key).filter(|it| joined.contains(it)).collect();
        for (from, to) in renamed(left, holders) {
            found.add(from, to);
        }
        found.add_namesakes(fabrics, |_, _| true);
        found
    }

    /// Adds the clusters that have the same name in both versions.
    fn add_namesakes(
        &mut self,
        Versions { before, after }: Versions<&Fabric, &Fabric>,
        is_same: impl Fn(SiteId, SiteId) -> bool,
    ) {
        for to in after.sites.ids() {
            let namesake = before.site_named(after.site(to).cluster.as_str());
            if let Some(from) = namesake.filter(|it| is_same(*it, to)) {
                self.add(from, to);
            }
        }
    }

    /// Adds two clusters, if none of them has a counterpart yet.
    fn add(&mut self, from: SiteId, to: SiteId) {
        if self.after[from].is_none() && self.before[to].is_none() {
            self.before[to] = Some(from);
            self.after[from] = Some(to);
        }
    }

    /// Returns the old version of a cluster.
    pub(super) fn before(&self, after: SiteId) -> Option<SiteId> {
        self.before[after]
    }

    /// Returns the new version of a cluster.
    pub(super) fn after(&self, before: SiteId) -> Option<SiteId> {
        self.after[before]
    }

    /// Returns the clusters of the old version that are not in the new one.
    pub(super) fn left(&self) -> impl Iterator<Item = SiteId> {
        without_counterpart(&self.after)
    }

    /// Returns the names of the clusters that are in both versions, the old one first.
    pub(super) fn names(&self) -> impl Iterator<Item = (&ClusterName, &ClusterName)> {
        self.names.iter().map(|(was, is)| (was, is))
    }

    /// Returns the first entry of each cluster that is in both versions, with its nodes.
    pub(super) fn members<'f, 'a>(
        &self,
        fleets: Versions<&'f Fleet<'a>>,
    ) -> impl Iterator<Item = Versions<&'f Member<'a>>> {
        self.names.iter().filter_map(move |(was, is)| {
            let was = fleets.before.memberships(was).next()?;
            Some(Versions::new(was, fleets.after.memberships(is).next()?))
        })
    }

    /// Returns the causes among them.
    pub(super) fn causes(&self, versions: Versions<&Version, &Version>) -> Vec<Cause> {
        let (before, after) = (versions.before, versions.after);
        let renamed = self.names.iter().filter(|(from, to)| from != to);
        let renamed =
            renamed.map(|(from, to)| Cause::ClusterRenamed { from: from.clone(), to: to.clone() });
        let joined = without_counterpart(&self.before);
        let joined = joined.map(|it| joined_or_added(after, after.fabric.site(it).cluster));
        let left = self.left();
        let left = left.map(|it| Cause::ClusterLeft(before.fabric.site(it).cluster.clone()));
        renamed.chain(joined).chain(left).collect()
    }
}

/// Returns the cause that a cluster of the new version is, which has no counterpart.
fn joined_or_added(after: &Version, cluster: &ClusterName) -> Cause {
    let cluster = cluster.clone();
    let entries = after.asked.meshes.iter().flat_map(Mesh::all_entries);
    let states = entries.filter(|it| it.name == cluster).map(|it| it.state);
    match states.min() {
        Some(State::Joined) | None => Cause::ClusterJoined(cluster),
        Some(state) => Cause::ClusterAdded { cluster, mesh: None, state },
    }
}

/// Returns the clusters of one version that are not in the other.
fn without_counterpart(sites: &Sites<Option<SiteId>>) -> impl Iterator<Item = SiteId> {
    sites.numbered().filter(|it| it.1.is_none()).map(|it| it.0)
}

fn node_keys(site: &Site) -> impl Iterator<Item = [u8; 32]> {
    site.model.topology.nodes.iter().filter_map(|it| it.kilo.key)
}

/// A public key.
type Key = [u8; 32];

/// Returns the new name of each cluster that left and is still there, the old one first: more than half of the keys that
/// are known of it belong to nodes of a new cluster. Of several such clusters, the new one is that with the most keys.
pub(super) fn renamed<Old: Copy + Ord, New: Copy + Ord>(
    left: impl IntoIterator<Item = (Old, BTreeSet<Key>)>,
    holders: impl Fn(&Key) -> BTreeSet<New>,
) -> Vec<(Old, New)> {
    let mut found: BTreeMap<New, (usize, Old)> = BTreeMap::new();
    for (was, keys) in left {
        let mut counts: BTreeMap<New, usize> = BTreeMap::new();
        for holder in keys.iter().flat_map(&holders) {
            *counts.entry(holder).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|it| it.1);
        let Some((is, count)) = most.filter(|it| keys.len() < 2 * it.1) else {
            continue;
        };
        let best = found.entry(is).or_insert((count, was));
        if best.0 < count {
            *best = (count, was);
        }
    }
    found.into_iter().map(|(is, (_, was))| (was, is)).collect()
}

/// Returns clusters that have another name, the old one first, if only the Peers of the old version are known: their
/// labels name those that `left`. Only `new` clusters, which have no Peers yet, can be these.
///
/// A false name in a label or a false key of a node has the same effect as in a comparison with a commit: the
/// cluster counts as renamed, and its Peers still change their names.
pub fn renamed_clusters(
    files: &[&AppliedFile],
    fleet: &Fleet,
    (left, new): (&BTreeSet<&ClusterName>, &BTreeSet<ClusterName>),
) -> Vec<(ClusterName, ClusterName)> {
    let mut holders: BTreeMap<Key, BTreeSet<&ClusterName>> = BTreeMap::new();
    for member in fleet.members() {
        if let Some(name) = new.get(&member.entry.name) {
            for key in member.cluster.nodes.iter().filter_map(|it| it.kilo.key) {
                holders.entry(key).or_default().insert(name);
            }
        }
    }
    let mut keys: BTreeMap<&ClusterName, BTreeSet<Key>> = BTreeMap::new();
    for peer in files.iter().flat_map(|it| &it.content.peers) {
        let source = peer.claims.source.as_ref().filter(|it| left.contains(it));
        if let (Some(source), Ok(spec)) = (source, &peer.spec) {
            keys.entry(source).or_default().insert(spec.key);
        }
    }
    let holders = |key: &Key| holders.get(key).cloned().unwrap_or_default();
    renamed(keys, holders).into_iter().map(|(was, is)| (was.clone(), is.clone())).collect()
}
