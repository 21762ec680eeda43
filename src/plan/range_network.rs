//! Range networks: which segments are in the network of a range.

use std::collections::{BTreeMap, BTreeSet};

use super::carrier::Carrier;
use super::contenders::Contenders;
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::kilo::node_networks::{NetworksOfNodes, NodesInNetwork};
use crate::net::Cidr;

/// The networks of the usable nodes of a cluster, and the segments that could carry a range there.
pub(super) struct RangeNetworks {
    nodes: NetworksOfNodes,
    /// By node: its segment among those that no anchor has to name, lost or not.
    carriers: BTreeMap<NodeId, usize>,
}

/// The segments in the network of a range.
pub(super) enum RangeSegments {
    /// These, in order of name: those with at least half as many nodes there as the one with most.
    Several(Vec<usize>),
    /// That of one node, which is not enough to follow it.
    One { node: NodeId, segment: usize },
    /// None that could carry it.
    Nobody,
}

impl RangeNetworks {
    pub(super) fn new(source: &Member, left: &[Carrier], contenders: &Contenders) -> Self {
        let usable: BTreeSet<NodeId> =
            source.membership.candidates.iter().flat_map(|it| &it.members).copied().collect();
        let mut carriers = BTreeMap::new();
        for (index, carrier) in left.iter().enumerate() {
            let members = carrier.candidate.members.iter();
            if contenders.is_ranked(index) {
                carriers.extend(members.map(|node| (*node, index)));
            }
        }
        let local_nodes =
            source.membership.local_nodes.iter().filter(|home| usable.contains(&home.node));
        Self { nodes: local_nodes.map(|home| (home.node, &home.networks)).collect(), carriers }
    }

    /// Returns which segments are in the network of a range.
    pub(super) fn at(&self, range: Cidr) -> RangeSegments {
        match self.nodes.nodes_in_network_of(range) {
            NodesInNetwork::Several(nodes) => {
                let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
                for carrier in nodes.iter().filter_map(|node| self.carriers.get(node)) {
                    *counts.entry(*carrier).or_default() += 1;
                }
                let most = counts.values().max().copied().unwrap_or_default();
                let segments = counts.into_iter().filter(|(_, count)| most <= 2 * count);
                RangeSegments::Several(segments.map(|it| it.0).collect())
            }
            NodesInNetwork::One(node) => self
                .carriers
                .get(&node)
                .map_or(RangeSegments::Nobody, |&segment| RangeSegments::One { node, segment }),
            NodesInNetwork::Nobody => RangeSegments::Nobody,
        }
    }
}
