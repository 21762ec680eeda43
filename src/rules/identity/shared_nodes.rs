//! Shared nodes: those that are, by their UIDs, in the snapshots of two clusters.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::{Fleet, Member};
use crate::name::ClusterName;
use crate::place::Place;
use crate::snapshot::{Node, Snapshot};

/// A node of a cluster.
struct Owned<'a> {
    member: &'a Member<'a>,
    node: &'a Node,
}

/// The nodes that a cluster has in common with one that ranks before it.
pub(super) struct SharedNodes<'a> {
    /// The cluster.
    pub(super) cluster: &'a ClusterName,
    /// The other one.
    pub(super) before: &'a ClusterName,
    /// The number of nodes of the cluster.
    pub(super) of: usize,
    /// The nodes, by name.
    pub(super) nodes: BTreeSet<&'a str>,
    /// The first of them, where either snapshot has it.
    pub(super) places: [Place; 2],
}

/// Returns the nodes that two clusters claim. A UID is given once, so both snapshots are most likely
/// of one cluster.
pub(super) fn shared<'a>(fleet: &'a Fleet) -> Vec<SharedNodes<'a>> {
    let mut owners: BTreeMap<&str, Owned> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut found: BTreeMap<(&ClusterName, &ClusterName), SharedNodes> = BTreeMap::new();
    for member in fleet.members() {
        let cluster = &member.entry.name;
        if !known.insert(cluster) {
            continue;
        }
        let nodes = &member.file.snapshot.nodes;
        for node in nodes.iter().filter(|it| !it.uid.is_empty()) {
            let again = Owned { member, node };
            let Some(first) = owners.get(node.uid.as_str()) else {
                owners.insert(&node.uid, again);
                continue;
            };
            let before = &first.member.entry.name;
            if before != cluster {
                let shared = found
                    .entry((cluster, before))
                    .or_insert_with(|| SharedNodes {
                        cluster,
                        before,
                        of: nodes.len(),
                        nodes: BTreeSet::new(),
                        places: [again.place(), first.place()],
                    });
                shared.nodes.insert(&node.name);
            }
        }
    }
    found.into_values().collect()
}

impl Owned<'_> {
    fn place(&self) -> Place {
        Snapshot::place(&self.member.file.source, self.node.position)
    }
}

impl SharedNodes<'_> {
    /// Returns whether a node of a cluster is reported here.
    pub(super) fn has(&self, cluster: &ClusterName, node: &str) -> bool {
        self.cluster == cluster && self.nodes.contains(node)
    }
}
