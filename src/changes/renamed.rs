//! Renamed clusters: those of which the nodes have the keys of one that left.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::applied::AppliedFile;
use crate::fleet::Fleet;
use crate::name::ClusterName;

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
    let found = renamed(keys, holders).into_iter();
    found.map(|(was, is)| (was.clone(), is.clone())).collect()
}
