//! An inspected cluster: the nodes of a cluster about which rules report how its own Kilo uses them.

use std::collections::BTreeSet;

use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::kilo::node::KiloNode;
use crate::membership::ExcludedReason;
use crate::place::Place;
use crate::snapshot::Node;

/// A cluster, and the nodes that are inspected for how its own Kilo uses them.
pub(super) struct InspectedCluster<'f> {
    /// Its membership that ranks first; in what Kilo does they all agree.
    pub(super) member: &'f Member<'f>,
    /// Nodes that other findings cover.
    excluded: BTreeSet<&'f str>,
}

impl<'f> InspectedCluster<'f> {
    /// Finds the nodes that Kilo does not use, or that have a worse finding.
    pub(super) fn new(member: &'f Member<'f>) -> Self {
        // Kilo uses these in their own cluster, even if no other cluster gets them.
        let matters = |reason: &ExcludedReason| {
            matches!(
                reason,
                ExcludedReason::NotSelected
                    | ExcludedReason::NoEndpoint(_)
                    | ExcludedReason::LeaderExcluded(_)
            )
        };
        Self {
            excluded: member
                .membership
                .excluded
                .iter()
                .filter(|it| !matters(&it.reason))
                .map(|it| it.node.as_str())
                .collect(),
            member,
        }
    }

    /// Returns what Kilo knows of the cluster.
    pub(super) fn cluster(&self) -> &'f Cluster<'f> {
        &self.member.cluster
    }

    /// Returns the granularity of its agents.
    pub(super) fn granularity(&self) -> Granularity {
        self.cluster().topology.granularity
    }

    /// Returns all its nodes, in order of name.
    pub(super) fn all_nodes(&self) -> impl Iterator<Item = (&'f Node, &'f KiloNode)> {
        self.cluster().nodes.iter().map(|it| (it.node, &*it.kilo))
    }

    /// Returns the nodes that Kilo uses and that have no worse finding.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&'f Node, &'f KiloNode)> {
        self.all_nodes().filter(|(node, kilo)| self.is_inspected(node, kilo))
    }

    pub(super) fn is_inspected(&self, node: &Node, kilo: &KiloNode) -> bool {
        !kilo.is_silent() && !self.excluded.contains(node.name.as_str())
    }

    /// Returns where the snapshot has a node.
    pub(super) fn place(&self, node: &Node) -> Place {
        self.member.place(node)
    }

    /// Returns where the snapshot has an annotation of a node.
    pub(super) fn annotation(&self, node: &Node, key: &str) -> Place {
        self.place(node).key("annotations").key(key)
    }
}
