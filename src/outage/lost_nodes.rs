//! Lost nodes: the nodes of an outage, by cluster.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::fabric::{Fabric, NodeRef, SiteId};
use crate::kilo::id::NodeId;

/// Nodes that Kilo does not count any more.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct LostNodes(BTreeMap<SiteId, BTreeSet<NodeId>>);

impl LostNodes {
    /// Returns the clusters, each with its lost nodes.
    pub fn by_site(&self) -> impl Iterator<Item = (SiteId, &BTreeSet<NodeId>)> {
        self.0.iter().map(|(site, nodes)| (*site, nodes))
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef> {
        self.by_site()
            .flat_map(|(site, nodes)| nodes.iter().map(move |&node| NodeRef { site, node }))
    }

    /// Returns whether a node is one of them.
    pub fn contain(&self, at: NodeRef) -> bool {
        self.0.get(&at.site).is_some_and(|it| it.contains(&at.node))
    }

    /// Returns whether a cluster loses any node.
    pub fn touch(&self, site: SiteId) -> bool {
        self.0.contains_key(&site)
    }

    /// Returns whether a cluster loses every node that its Kilo counts.
    pub fn are_all_of(&self, fabric: &Fabric, site: SiteId) -> bool {
        let mut counted =
            fabric.site(site).model.topology.nodes.numbered().filter(|it| it.1.segment.is_some());
        self.touch(site) && counted.all(|(node, _)| self.contain(NodeRef { site, node }))
    }

    /// Returns whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<NodeRef> for LostNodes {
    fn from_iter<I: IntoIterator<Item = NodeRef>>(nodes: I) -> Self {
        let mut lost = Self::default();
        lost.extend(nodes);
        lost
    }
}

impl Extend<NodeRef> for LostNodes {
    fn extend<I: IntoIterator<Item = NodeRef>>(&mut self, nodes: I) {
        for NodeRef { site, node } in nodes {
            self.0.entry(site).or_default().insert(node);
        }
    }
}
