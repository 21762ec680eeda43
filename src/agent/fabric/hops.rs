//! Hops: what keeps the leader of a location and its other nodes from reaching each other, by their addresses.
//!
//! The leader has one route for each other node, `{pod CIDR, via internal IP}`, and none for a node with its own internal IP.
//! The other nodes send what leaves the location via the leader's internal IP (`Routes` in `pkg/mesh/routes.go`). Beside another
//! plugin, Kilo may run with `--local=false`, which no annotation shows: then the plugin has these routes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Site;
use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::kilo::topology::KiloTopology;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// A reason for which a node of a location does not get packets from its leader, or its leader from it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HopFault {
    /// Both have the same internal address, so Kilo sets no route.
    NoRoute,
    /// Several nodes have this internal address, or this pod CIDR in one location.
    Shared(Cidr),
    /// Another node of the location has this narrower pod CIDR.
    Taken {
        /// The range.
        range: Cidr,
        /// The other node.
        by: NodeId,
    },
}

/// The addresses of a cluster that more than one node has, if any of its locations has several nodes.
#[derive(Debug)]
pub(super) struct Hops {
    /// The nodes with each internal address that several of them have.
    addresses: BTreeMap<IpAddr, Vec<NodeId>>,
    /// The pod CIDRs of the nodes that share a location, if any two of them meet.
    pods: Prefixes<NodeId>,
    /// The nodes with any of these, or with a leader that has, if another plugin may have the routes. Then the rest is empty.
    of_plugin: BTreeSet<NodeId>,
}

impl Hops {
    pub(super) fn find(cluster: &Cluster) -> Self {
        let of_kilo = Self::of_kilo(&cluster.topology);
        if !cluster.has_other_plugin() {
            return of_kilo;
        }
        let of_plugin = of_kilo.nodes(&cluster.topology);
        Self { addresses: BTreeMap::new(), pods: Prefixes::new([]), of_plugin }
    }

    /// Finds them as if Kilo had all routes.
    fn of_kilo(topology: &KiloTopology) -> Self {
        let shared = || topology.segments.iter().filter(|it| 1 < it.members.len());
        let has_hops = shared().next().is_some();
        let mut addresses: BTreeMap<IpAddr, Vec<NodeId>> = BTreeMap::new();
        let counted = topology.nodes.numbered().filter(|it| has_hops && it.1.segment.is_some());
        for (node, own) in counted {
            if let Some(address) = own.kilo.internal_address() {
                addresses.entry(address).or_default().push(node);
            }
        }
        addresses.retain(|_, nodes| 1 < nodes.len());
        let pods = shared()
            .flat_map(|it| &it.members)
            .filter_map(|it| Some((topology.nodes[*it].kilo.pod_cidr?, *it)));
        let pods = Prefixes::new(pods);
        let meet = pods.ids().any(|it| 1 < pods.at(it).1.len() || pods.parent(it).is_some());
        let pods = if meet { pods } else { Prefixes::new([]) };
        Self { addresses, pods, of_plugin: BTreeSet::new() }
    }

    /// Returns the nodes of locations with several that Kilo does not reach, or only some of those with an address.
    fn nodes(&self, topology: &KiloTopology) -> BTreeSet<NodeId> {
        let shares = |node: NodeId| {
            let address = topology.nodes[node].kilo.internal_address();
            address.is_some_and(|it| self.addresses.contains_key(&it))
        };
        let mut nodes = BTreeSet::new();
        for segment in topology.segments.iter().filter(|it| 1 < it.members.len()) {
            let leader = segment.leader.node();
            let others = segment.members.iter().filter(|it| **it != leader);
            nodes.extend(others.filter(|it| shares(leader) || shares(**it)));
        }
        for (range, owners) in self.pods.iter() {
            let around = self.pods.containing(range).map(|it| *it.1);
            let around: BTreeSet<NodeId> = around.chain(owners.iter().copied()).collect();
            for node in &around {
                let is_near = |it: &&NodeId| {
                    *it != node && topology.nodes[**it].segment == topology.nodes[*node].segment
                };
                nodes.extend(owners.iter().filter(is_near).flat_map(|it| [*it, *node]));
            }
        }
        nodes
    }

    /// Returns whether no two nodes have the same addresses.
    fn are_sound(&self) -> bool {
        self.addresses.is_empty() && self.pods.is_empty()
    }
}

impl Site<'_> {
    /// Returns whether any packet may be lost between a leader and the other nodes of its location.
    pub(super) fn has_hop_faults(&self) -> bool {
        !self.own.hops.are_sound()
    }

    /// Returns whether a node and its leader reach each other only by routes that another plugin may have.
    pub fn is_reached_by_plugin(&self, node: NodeId) -> bool {
        self.own.hops.of_plugin.contains(&node)
    }

    /// Returns whether that is so for any node.
    pub fn has_hops_of_plugin(&self) -> bool {
        !self.own.hops.of_plugin.is_empty()
    }

    /// Returns why a packet from one node of a location to another one does not get there, if either is the leader.
    pub fn hop_fault(&self, from: NodeId, to: NodeId) -> Option<HopFault> {
        if from == to || self.own.hops.addresses.is_empty() {
            return None;
        }
        let [own, address] = [from, to].map(|it| self.node(it).kilo.internal_address());
        if own == address {
            return Some(HopFault::NoRoute);
        }
        let is_shared = self.own.hops.addresses.contains_key(&address?);
        is_shared.then_some(HopFault::Shared(Cidr::host(address?)))
    }

    /// Returns why a packet that the leader of a location has for another node of it, or for itself, does not arrive.
    pub fn delivery_fault(
        &self,
        leader: NodeId,
        to: NodeId,
        destination: IpAddr,
    ) -> Option<HopFault> {
        if !self.has_hop_faults() {
            return None;
        }
        let kilo = &self.node(to).kilo;
        let is_pod = kilo.pod_cidr.is_some_and(|it| it.holds(destination));
        if !is_pod && kilo.internal_address() != Some(destination) {
            return None;
        }
        let gateway = self.hop_fault(leader, to);
        if gateway == Some(HopFault::NoRoute) || !is_pod {
            return gateway;
        }
        self.pod_fault(leader, to, destination).or(gateway)
    }

    /// Returns why a leader sends a packet to a pod of one node to another one.
    fn pod_fault(&self, leader: NodeId, to: NodeId, pod: IpAddr) -> Option<HopFault> {
        let pods = &self.own.hops.pods;
        let is_routed = |it: &&NodeId| {
            self.segment(**it) == self.segment(to)
                && self.hop_fault(leader, **it) != Some(HopFault::NoRoute)
        };
        pods.holding(pod).find_map(|slot| {
            let (range, nodes) = pods.at(slot);
            let mut nodes = nodes.iter().filter(is_routed);
            match (nodes.next()?, nodes.next()) {
                (_, Some(_)) => Some(Some(HopFault::Shared(range))),
                (by, None) if *by == to => Some(None),
                (by, None) => Some(Some(HopFault::Taken { range, by: *by })),
            }
        })?
    }

    /// Returns the nodes that have an internal address, or a pod CIDR in the location of `node`.
    pub fn sharing(&self, node: NodeId, range: Cidr) -> Vec<NodeId> {
        let hops = &self.own.hops;
        let addressed = hops.addresses.get(&range.first()).filter(|_| range.is_host());
        addressed.cloned().unwrap_or_else(|| {
            let mut slots = hops.pods.holding(range.first()).map(|it| hops.pods.at(it));
            let nodes = slots.find(|it| it.0 == range).map_or(&[][..], |it| it.1);
            let is_near = |it: &&NodeId| self.segment(**it) == self.segment(node);
            nodes.iter().filter(is_near).copied().collect()
        })
    }
}
