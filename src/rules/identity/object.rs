//! Objects: nodes that are, by their UIDs, in the snapshots of two clusters.

use std::collections::{BTreeMap, BTreeSet};

use super::{NODE_IN_TWO_CLUSTERS, label};
use crate::diagnostic::Quoted;
use crate::fleet::{Fleet, Member};
use crate::name::ClusterName;
use crate::place::Place;
use crate::rules::Finding;
use crate::snapshot::{Node, Snapshot};

/// A node of a cluster.
struct Owned<'a> {
    member: &'a Member<'a>,
    node: &'a Node,
}

/// The nodes that a cluster has in common with one that ranks before it.
pub(super) struct Twins<'a> {
    cluster: &'a ClusterName,
    before: &'a ClusterName,
    /// The number of nodes of the cluster.
    of: usize,
    /// The nodes, by name.
    nodes: BTreeSet<&'a str>,
    /// The first of them, where either snapshot has it.
    places: [Place; 2],
}

/// Returns the nodes that two clusters claim. A UID is given once, so both snapshots are most likely
/// of one cluster.
pub(super) fn shared<'a>(fleet: &'a Fleet) -> Vec<Twins<'a>> {
    let mut owners: BTreeMap<&str, Owned> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut twins: BTreeMap<(&ClusterName, &ClusterName), Twins> = BTreeMap::new();
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
                let twins = twins.entry((cluster, before)).or_insert_with(|| Twins {
                    cluster,
                    before,
                    of: nodes.len(),
                    nodes: BTreeSet::new(),
                    places: [again.place(), first.place()],
                });
                twins.nodes.insert(&node.name);
            }
        }
    }
    twins.into_values().collect()
}

pub(super) fn findings(shared: &[Twins]) -> Vec<Finding> {
    shared
        .iter()
        .filter_map(|twins| Some(finding(twins, twins.nodes.first()?)))
        .collect()
}

fn finding(twins: &Twins, node: &str) -> Finding {
    let Twins {
        cluster, before, ..
    } = twins;
    let node = Quoted(node);
    let message = match (twins.nodes.len(), twins.of) {
        (1, _) => format!("node {node} has the UID of a node of `{before}`"),
        (some, of) => {
            format!("{some} of {of} nodes have UIDs of nodes of `{before}`, such as {node}")
        }
    };
    let mut finding = Finding::on_cluster(&NODE_IN_TWO_CLUSTERS, cluster, message);
    let whose = [cluster, before];
    let labels = twins.places.iter().zip(whose);
    finding.labels = labels
        .map(|(place, whose)| label(place.key("uid"), format!("in `{whose}`")))
        .collect();
    finding.help = Some(format!(
        "check the contexts of `{cluster}` and `{before}`: both probably lead to the same cluster"
    ));
    finding
}

impl Owned<'_> {
    fn place(&self) -> Place {
        Snapshot::place(&self.member.file.source, self.node.position)
    }
}

impl Twins<'_> {
    /// Returns whether a node of a cluster is reported here.
    pub(super) fn has(&self, cluster: &ClusterName, node: &str) -> bool {
        self.cluster == cluster && self.nodes.contains(node)
    }
}
