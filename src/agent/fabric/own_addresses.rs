//! Own addresses: who in a cluster has which address, by its nodes and its entry alone.

use std::net::IpAddr;

use super::hops::Hops;
use super::outlying::OutlyingRanges;
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::id::{NodeId, Nodes};
use crate::mesh::{Networks, Range};
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, Families, Family, family};

/// The addresses of a cluster. Versions of it with the same nodes and other Peers share them.
#[derive(Debug)]
pub(super) struct OwnAddresses {
    /// The owners of ranges; of one range, the most particular first.
    pub(super) owned: Prefixes<Owner>,
    /// The ranges that it declares as a whole.
    pub(super) for_all: Prefixes<()>,
    /// The networks that nodes are connected to, which they reach without a tunnel; of one range, the nodes in
    /// their order.
    pub(super) connected: Prefixes<NodeId>,
    /// The kinds of address that each node shows.
    pub(super) shown: Nodes<Families>,
    /// Declared ranges that are not on the LAN of several nodes.
    pub(super) outlying: OutlyingRanges,
    /// The addresses that nodes of a location, which reach each other without a tunnel, have in common.
    pub(super) hops: Hops,
    /// The underlays that each node is in by their places in the entry, with the kinds of its addresses there.
    pub(super) underlays: Nodes<Vec<(usize, Family)>>,
    /// The addresses and ports at which each node is dialled.
    pub(super) endpoints: Vec<(IpAddr, NodeId, Option<u16>)>,
}

/// The owner of an address of a cluster.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Owner {
    /// A node: its internal address.
    Node(NodeId),
    /// A node: its address in the Kilo subnet.
    Tunnel(NodeId),
    /// A node's pods.
    Pods(NodeId),
    /// The services of the cluster.
    Services,
    /// Other ranges that the cluster declares as a whole.
    Network,
    /// No owner: a range out of which nodes get theirs.
    Pool,
}

impl OwnAddresses {
    /// Finds those of a cluster.
    pub(super) fn find(cluster: &Cluster) -> Self {
        let owned = owned(cluster);
        let is_for_all = |it: &Owner| matches!(it, Owner::Services | Owner::Network);
        let for_all = owned.iter().filter(|it| it.1.iter().any(is_for_all));
        Self {
            for_all: for_all.map(|it| (it.0, ())).collect(),
            owned,
            connected: connected(cluster),
            // The host is assumed to have addresses of both kinds, because no snapshot shows them.
            shown: if cluster.entry.name.is_external() {
                cluster.nodes.map(|_| Families::all())
            } else {
                cluster.nodes.map(ClusterNode::families)
            },
            outlying: OutlyingRanges::find(cluster),
            hops: Hops::find(cluster),
            underlays: cluster.nodes.map(|it| underlays(cluster, it)),
            endpoints: endpoints(cluster),
        }
    }
}

/// Returns the underlays that a node is in: with an internal address in their ranges. An external peer is in all that its
/// entry names.
fn underlays(cluster: &Cluster, node: &ClusterNode) -> Vec<(usize, Family)> {
    let internal: Vec<IpAddr> = node.internal_addresses().collect();
    let named = cluster.entry.underlays.iter().enumerate();
    let all = named.flat_map(|it| [Family::V4, Family::V6].map(|family| (it, family)));
    let own = all.filter(|((_, underlay), kind)| {
        let mut own = internal.iter().filter(|it| family(**it) == *kind);
        cluster.entry.name.is_external() || own.any(|it| underlay.holds(*it))
    });
    own.map(|((place, _), family)| (place, family)).collect()
}

fn owned(cluster: &Cluster) -> Prefixes<Owner> {
    let mut owned = Vec::new();
    for (number, node) in cluster.topology.nodes.numbered() {
        let internal = node.kilo.internal_address().map(Cidr::host);
        owned.extend(internal.map(|it| (it, Owner::Node(number))));
        let tunnel = node.kilo.wireguard_ip().map(|it| Cidr::host(it.address));
        owned.extend(tunnel.map(|it| (it, Owner::Tunnel(number))));
        owned.extend(node.kilo.pods().map(|it| (it, Owner::Pods(number))));
    }
    let mut declare = |ranges: &[Range], owner: Owner| {
        owned.extend(ranges.iter().map(|it| (it.cidr, owner)));
    };
    match &cluster.entry.networks {
        Networks::Typed { pods, wireguard, services, additional } => {
            declare(pods, Owner::Pool);
            declare(std::slice::from_ref(wireguard), Owner::Pool);
            declare(services.as_slice(), Owner::Services);
            declare(additional, Owner::Network);
        }
        Networks::Flat { allowed } => {
            for range in allowed {
                let mut for_all = cluster.shared.iter().chain(&cluster.anchored.networks);
                let whose =
                    if for_all.any(|it| *it == range.cidr) { Owner::Network } else { Owner::Pool };
                declare(std::slice::from_ref(range), whose);
            }
        }
    }
    // A former leader still announces the address of the next one.
    let nodes = &cluster.topology.nodes;
    let is_former = |it: Owner| matches!(it, Owner::Tunnel(node) if !nodes[node].kilo.is_ready());
    owned.sort_by_key(|it| (is_former(it.1), it.1));
    Prefixes::new(owned)
}

fn connected(cluster: &Cluster) -> Prefixes<NodeId> {
    let mut connected = Vec::new();
    for (number, node) in cluster.topology.nodes.numbered() {
        let lan = node.kilo.lan;
        let pods = node.kilo.pods().filter(|it| Some(*it) != lan);
        connected.extend(lan.into_iter().chain(pods).map(|range| (range, number)));
    }
    Prefixes::new(connected)
}

/// Returns where nodes can be dialled.
fn endpoints(cluster: &Cluster) -> Vec<(IpAddr, NodeId, Option<u16>)> {
    let mut endpoints: Vec<_> = cluster
        .nodes
        .numbered()
        .flat_map(|(number, node)| {
            node.endpoints().map(move |(address, port)| (address, number, port))
        })
        .collect();
    endpoints.sort_unstable();
    endpoints.dedup();
    endpoints
}
