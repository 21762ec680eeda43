//! Minorities: whether only a few nodes of a cluster cause something by what they report of themselves.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::Site;
use crate::agent::model::Tunnel;
use crate::agent::refusal::KernelRefusal;
use crate::kilo::id::NodeId;
use crate::kilo::node::KiloNode;
use crate::net::{Cidr, family, private_network};
use crate::wireguard::Endpoint;

/// Returns whether nodes are only a few of their cluster: at most half of it, or its only one.
pub fn are_few(nodes: usize, all: usize) -> bool {
    2 * nodes <= all || all == 1
}

impl Site<'_> {
    /// Returns whether some of its nodes are at least one and only a few.
    fn are_some_few(&self, is_one: impl Fn(&KiloNode) -> bool) -> bool {
        let nodes = &self.model.topology.nodes;
        let some = nodes.iter().filter(|it| is_one(&it.kilo)).count();
        0 < some && are_few(some, nodes.len())
    }

    /// Returns whether Kilo does not count only a few of the nodes.
    pub fn has_few_unready(&self) -> bool {
        self.are_some_few(|it| !it.is_ready())
    }

    /// Returns whether only a few of the nodes that others could dial have a private endpoint. The only endpoint is that of
    /// the cluster.
    pub fn has_few_private_endpoints(&self) -> bool {
        let endpoints = self.reading.nodes.iter().filter_map(|it| it.checked.endpoint());
        let addresses: Vec<IpAddr> = endpoints.filter_map(Endpoint::address).collect();
        let private = addresses.iter().filter(|it| private_network(**it).is_some()).count();
        1 < addresses.len() && are_few(private, addresses.len())
    }

    /// Returns whether kernels refuse a route only because of what a few nodes report: an internal address of another
    /// family than the one that the cluster routes or, for a route to the node itself, such a pod CIDR or a range that no
    /// kernel takes.
    pub fn is_refused_for_few(&self, refusal: KernelRefusal) -> bool {
        let is_other = |it: Option<IpAddr>| it.is_some_and(|it| !self.routes(family(it)));
        match refusal {
            KernelRefusal::Range { peer, index } => {
                self.model
                    .share(peer)
                    .and_then(|it| it.translation.allowed_ips.get(index))
                    .is_some_and(|it| it.interface.is_network())
                    && self.are_some_few(|it| is_other(it.internal_address()))
            }
            KernelRefusal::Segment { .. } => self.are_some_few(|it| {
                is_other(it.internal_address())
                    || is_other(it.pod_cidr.map(Cidr::first))
                    || it.location_ranges.iter().any(|range| {
                        range.is_mapped
                            || !range.interface.is_network()
                            || is_other(Some(range.interface.network.first()))
                    })
            }),
        }
    }

    /// Returns whether only a few nodes claim an address at which a Peer is dialled, as their own or as a range of one
    /// address behind them.
    pub fn is_captured_by_few(&self) -> bool {
        let endpoints = self
            .model
            .peers
            .ids()
            .filter_map(|it| self.model.endpoint(Tunnel::Peer(it))?.address());
        let endpoints: BTreeSet<IpAddr> = endpoints.collect();
        self.are_some_few(|it| {
            let own = it.internal_address().into_iter();
            let own = own.chain(it.wireguard_ip().map(|it| it.address));
            let behind = it.location_ranges.iter().map(|it| it.interface.network);
            let hosts = it.pods().chain(behind).filter(|it| it.is_host());
            own.chain(hosts.map(Cidr::first)).any(|it| endpoints.contains(&it))
        })
    }

    /// Returns whether only a few nodes claim an address, as their own or in a range behind them, if this many of them may be
    /// right.
    pub fn are_claimants_few(&self, address: IpAddr, right: usize) -> bool {
        let nodes = &self.model.topology.nodes;
        let claims = |it: &KiloNode| {
            let is_own = it.internal_address() == Some(address)
                || it.wireguard_ip().is_some_and(|it| it.address == address);
            let mut ranges = it.location_ranges.iter();
            is_own
                || it.pods().any(|it| it.holds(address))
                || ranges.any(|it| it.interface.network.holds(address))
        };
        let claimants = nodes.iter().filter(|it| claims(&it.kilo)).count();
        0 < claimants && are_few(claimants.saturating_sub(right), nodes.len())
    }

    /// Returns whether the Kilo of a node reports another port than the dialled one, unlike the entry and most nodes that
    /// report one. If only one does, the entry may as well be wrong.
    pub fn has_port_of_few(&self, node: NodeId, dialled: u16) -> bool {
        let port = |it: &KiloNode| it.endpoint.as_ref().map(|it| it.port.get());
        let Some(own) = port(&self.node(node).kilo) else {
            return false;
        };
        let declared = self.entry.port.get();
        let ports = self.model.topology.nodes.iter().filter_map(|it| port(&it.kilo));
        let ports: Vec<u16> = ports.collect();
        let others = ports.iter().filter(|it| **it != declared).count();
        own != dialled && own != declared && 1 < ports.len() && are_few(others, ports.len())
    }
}
