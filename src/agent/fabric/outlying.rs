//! Outlying ranges: those of a cluster as a whole that are not on the LANs of its nodes.

use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::kilo::node_networks::{NetworksOfNodes, NodeNetworks, NodesInNetwork};
use crate::mesh::Networks;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// The ranges of a cluster as a whole, without its services, that are not on the LAN of two nodes that take
/// part.
#[derive(Debug)]
pub(super) struct OutlyingRanges {
    /// Those on the LAN of one node, with the node.
    pub(super) distant: Prefixes<NodeId>,
    /// Those in a network that no node shows. A flat list does not contain the purpose of a range, which may
    /// be one of services.
    pub(super) unshown: Prefixes<()>,
}

impl OutlyingRanges {
    /// Finds those of a cluster.
    pub(super) fn find(cluster: &Cluster) -> Self {
        let (services, is_typed) = match &cluster.entry.networks {
            Networks::Typed { services, .. } => (services.as_ref().map(|it| it.cidr), true),
            Networks::Flat { .. } => (None, false),
        };
        let ranges = cluster.shared.iter().copied();
        let ranges: Vec<Cidr> = ranges.filter(|it| Some(*it) != services).collect();
        let networks = node_networks(cluster, !ranges.is_empty());
        let networks: NetworksOfNodes = networks.iter().map(|(id, it)| (*id, it)).collect();
        let (mut distant, mut unshown) = (Vec::new(), Vec::new());
        for range in ranges {
            match networks.nodes_in_network_of(range) {
                NodesInNetwork::Several(_) => {}
                NodesInNetwork::One(node) => distant.push((range, node)),
                NodesInNetwork::Nobody => {
                    let is_unshown = is_typed && !is_shown(cluster, range);
                    unshown.extend(is_unshown.then_some((range, ())));
                }
            }
        }
        Self { distant: Prefixes::new(distant), unshown: Prefixes::new(unshown) }
    }
}

/// Returns the networks of the nodes that take part, if they are needed.
fn node_networks(cluster: &Cluster, are_needed: bool) -> Vec<(NodeId, NodeNetworks)> {
    let usable = cluster.nodes.numbered().filter(|(id, it)| {
        are_needed
            && cluster.topology.nodes[*id].segment.is_some()
            && it.checked.is_sound()
            && it.checked.pods.is_ok()
            && cluster.entry.selector.matches(&it.node.labels)
    });
    usable.map(|(id, it)| (id, NodeNetworks::from_node(it))).collect()
}

/// Returns whether any node has something in a range, takes part or not, or announces a route to it
/// (`kilo.squat.ai/allowed-location-ips`).
fn is_shown(cluster: &Cluster, range: Cidr) -> bool {
    cluster.nodes.iter().any(|it| {
        let known = NodeNetworks::from_node(it);
        let mut own = known.found.iter().chain(&known.lan).copied().chain(it.kilo.pods());
        let mut announced = it.kilo.location_ranges.iter();
        own.any(|it| it.overlaps(range)) || announced.any(|it| it.interface.network.contains(range))
    })
}
