//! The ranges that clusters do not get because of claims of nodes, according to the plan: a node
//! must not make a verification fail.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Span;

/// The ranges and nodes that are left out for nodes' claims.
#[derive(Clone, Debug, Default)]
pub struct Excused {
    /// Ranges that a target does not get, by target and source.
    ranges: BTreeMap<(ClusterName, ClusterName), Vec<Cidr>>,
    /// Nodes that promise nothing, by cluster and name.
    nodes: BTreeSet<(ClusterName, String)>,
    /// Ranges of nodes that promise nothing.
    withheld: BTreeSet<(ClusterName, String, Cidr)>,
}

impl Excused {
    /// Excuses that a target does not get a range of a source.
    pub fn range(&mut self, target: &ClusterName, source: &ClusterName, range: Cidr) {
        let key = (target.clone(), source.clone());
        self.ranges.entry(key).or_default().push(range);
    }

    /// Excuses a node whose ranges no cluster gets.
    pub fn node(&mut self, cluster: &ClusterName, node: &str) {
        self.nodes.insert((cluster.clone(), node.to_owned()));
    }

    /// Excuses that a range of a node is not given to anyone.
    pub fn withheld(&mut self, cluster: &ClusterName, node: &str, range: Cidr) {
        let node = node.to_owned();
        self.withheld.insert((cluster.clone(), node, range));
    }

    /// Returns whether a target does not get addresses of a source.
    pub(super) fn lacks(&self, target: &ClusterName, source: &ClusterName, span: Span) -> bool {
        holds(self.ranges(target, source), span)
    }

    /// Returns whether any target does not get addresses of a source.
    pub(super) fn is_lacked(&self, source: &ClusterName, span: Span) -> bool {
        let of_source = self.ranges.iter().filter(|it| it.0.1 == *source);
        of_source.into_iter().any(|it| holds(it.1, span))
    }

    /// Returns what a target does not get of a source.
    pub(super) fn ranges(&self, target: &ClusterName, source: &ClusterName) -> &[Cidr] {
        let key = (target.clone(), source.clone());
        self.ranges.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a node promises nothing.
    pub(super) fn has_node(&self, cluster: &ClusterName, node: &str) -> bool {
        !self.nodes.is_empty() && self.nodes.contains(&(cluster.clone(), node.to_owned()))
    }

    /// Returns whether a range of a node promises nothing.
    pub(super) fn has_withheld(&self, cluster: &ClusterName, node: &str, range: Cidr) -> bool {
        let key = || (cluster.clone(), node.to_owned(), range);
        !self.withheld.is_empty() && self.withheld.contains(&key())
    }
}

/// Returns whether addresses are in one of some ranges.
pub(super) fn holds(ranges: &[Cidr], span: Span) -> bool {
    ranges.iter().any(|it| Span::new(*it).holds(span))
}
