//! Shared nodes: those that are, by their UIDs, in the snapshots of two clusters.

use std::collections::{BTreeMap, BTreeSet};

use super::{KEY_IN_TWO_CLUSTERS, KEY_OF_TARGET_NODE, NODE_IN_TWO_CLUSTERS};
use crate::diagnostic::{FindingCause, Quoted};
use crate::fleet::{Fleet, Member};
use crate::guard::are_most;
use crate::name::ClusterName;
use crate::place::Place;
use crate::rules::kilo::UNROUTABLE_FAMILY;
use crate::rules::nodes::{CONTRADICTED, CUT_OFF, SILENT_CLUSTER};
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::text::share;

/// Rules that judge the nodes of a cluster, of which findings may point only to its entry. Others that point there judge
/// the entry alone, such as its `mtu`.
static OF_ENTRIES: [&Rule; 4] = [&CONTRADICTED, &CUT_OFF, &SILENT_CLUSTER, &UNROUTABLE_FAMILY];

/// Rules that judge two nodes, of which the other one may be the same.
static OF_KEYS: [&Rule; 2] = [&KEY_IN_TWO_CLUSTERS, &KEY_OF_TARGET_NODE];

/// A node of a cluster.
struct Owned<'a> {
    member: &'a Member<'a>,
    node: &'a Node,
}

/// The nodes that a cluster has in common with one that ranks before it.
pub(super) struct SharedNodes<'a> {
    cluster: &'a ClusterName,
    /// The other one.
    before: &'a ClusterName,
    /// The number of nodes of the cluster.
    of: usize,
    /// The nodes, by name.
    nodes: BTreeSet<&'a str>,
    /// The first of them, where either snapshot has it.
    places: [Place; 2],
}

impl Owned<'_> {
    fn place(&self) -> Place {
        self.member.place(self.node)
    }
}

/// Makes a snapshot with the nodes of another cluster the cause of all that it leads to.
pub(super) fn link(shared: &[SharedNodes], findings: &mut [Finding]) {
    let wrong = shared.iter().filter(|it| are_most(it.nodes.len(), it.of));
    let by_cluster: BTreeMap<&str, &SharedNodes> =
        wrong.map(|it| (it.cluster.as_str(), it)).collect();
    let snapshots = by_cluster.values().map(|it| (&it.places[0].source, *it));
    let by_snapshot: BTreeMap<_, &SharedNodes> = snapshots.collect();
    let is_meant = |it: &&mut Finding| it.rule != &NODE_IN_TWO_CLUSTERS && it.cause.is_none();
    // Of a list with a few nodes of another cluster, only these are wrong.
    let of_node = |finding: &Finding| {
        let node = finding.node.as_deref()?;
        let cluster = finding.cluster.as_deref()?;
        shared.iter().find(|it| {
            let is_of_first = it.before.as_str() == cluster && OF_KEYS.contains(&finding.rule);
            it.nodes.contains(node) && (it.cluster.as_str() == cluster || is_of_first)
        })
    };
    for finding in findings.iter_mut().filter(is_meant) {
        let of_cluster = finding.cluster.as_deref().filter(|_| OF_ENTRIES.contains(&finding.rule));
        let of_cluster = of_cluster.and_then(|it| by_cluster.get(it));
        let mut sources = finding.labels.iter().map(|it| &it.place.source);
        let cause = of_cluster.or_else(|| sources.find_map(|it| by_snapshot.get(it))).copied();
        let cause = cause.or_else(|| of_node(finding));
        finding.cause = cause.map(|it| FindingCause::of(&NODE_IN_TWO_CLUSTERS, it.cluster));
    }
}

impl<'a> SharedNodes<'a> {
    /// Returns the nodes that two clusters claim. A UID is given once, so both snapshots are most likely
    /// of one cluster.
    pub(super) fn all(fleet: &'a Fleet) -> Vec<Self> {
        let mut owners: BTreeMap<&str, Owned> = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut found: BTreeMap<(&ClusterName, &ClusterName), Self> = BTreeMap::new();
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
                    let shared = found.entry((cluster, before)).or_insert_with(|| Self {
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

    /// Returns whether a node of a cluster is reported here.
    pub(super) fn has(&self, cluster: &ClusterName, node: &str) -> bool {
        self.cluster == cluster && self.nodes.contains(node)
    }

    /// Reports the nodes.
    pub(super) fn finding(&self) -> Option<Finding> {
        let (cluster, before) = (self.cluster, self.before);
        let [again, first] = &self.places;
        let node = Quoted(self.nodes.first()?);
        let message = match (self.nodes.len(), self.of) {
            (1, _) => format!("node {node} has the UID of a node of `{before}`"),
            (some, of) => format!(
                "{} have UIDs of nodes of `{before}`, such as {node}",
                share(some, of, "node")
            ),
        };
        let finding = Finding::on_cluster(&NODE_IN_TWO_CLUSTERS, cluster, message)
            .at(again.key("uid"), format!("in `{cluster}`"))
            .at(first.key("uid"), format!("in `{before}`"))
            .help(if are_most(self.nodes.len(), self.of) {
                format!(
                    "check the contexts or files of `{cluster}` and `{before}`: both probably show the nodes of the same cluster"
                )
            } else {
                format!(
                    "take the snapshot of `{cluster}` again from a list without the nodes of `{before}`"
                )
            });
        Some(finding)
    }
}
