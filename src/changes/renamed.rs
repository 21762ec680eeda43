//! Renamed clusters of which only the Peers of the old version are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::applied::AppliedFile;
use crate::fleet::Fleet;
use crate::name::ClusterName;

/// Returns clusters that have another name, the old one first: most of the Peers that name the old one as
/// their source have keys of nodes of the other one. Only `new` clusters, which have no Peers yet, can be those.
///
/// A false name in a label or a false key of a node has the same effect as in a comparison with a commit: the
/// cluster counts as renamed, and its Peers still change their names.
pub fn renamed_clusters(
    files: &[&AppliedFile],
    fleet: &Fleet,
    new: &BTreeSet<ClusterName>,
) -> Vec<(ClusterName, ClusterName)> {
    let mut holders: BTreeMap<[u8; 32], &ClusterName> = BTreeMap::new();
    for member in fleet
        .members()
        .iter()
        .filter(|it| new.contains(&it.entry.name))
    {
        let keys = member.cluster.nodes.iter().filter_map(|it| it.kilo.key);
        holders.extend(keys.map(|key| (key, &member.entry.name)));
    }
    if holders.is_empty() {
        return Vec::new();
    }
    let mut keys: BTreeMap<&ClusterName, BTreeSet<[u8; 32]>> = BTreeMap::new();
    for peer in files.iter().flat_map(|it| &it.content.peers) {
        if let (Some(source), Ok(spec)) = (&peer.claims.source, &peer.spec) {
            keys.entry(source).or_default().insert(spec.key);
        }
    }
    let mut found: BTreeMap<&ClusterName, &ClusterName> = BTreeMap::new();
    for (was, keys) in keys {
        let mut counts: BTreeMap<&ClusterName, usize> = BTreeMap::new();
        for holder in keys.iter().filter_map(|key| holders.get(key)) {
            *counts.entry(holder).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|it| it.1);
        if let Some((is, _)) = most.filter(|it| keys.len() < 2 * it.1) {
            found.entry(is).or_insert(was);
        }
    }
    let found = found.into_iter();
    found.map(|(is, was)| (was.clone(), is.clone())).collect()
}
