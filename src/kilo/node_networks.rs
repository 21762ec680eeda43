//! Node networks: the networks of nodes, and which nodes of a cluster are in the network of a range.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::cluster::ClusterNode;
use super::id::NodeId;
use super::node::{InternalIp, annotation};
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, Family, Interface};
use crate::snapshot::AddressKind;

/// The networks of a node.
#[derive(Clone, Debug)]
pub struct NodeNetworks {
    /// The network of its internal address, unless that is too wide to be believed.
    pub lan: Option<Cidr>,
    /// The networks and single addresses of the node that Kilo or Kubernetes found. Addresses that a
    /// person forced are not among them.
    pub found: Vec<Cidr>,
}

/// The networks of some nodes of a cluster.
#[derive(Clone, Debug)]
pub struct NetworksOfNodes {
    /// The networks and addresses that Kilo or Kubernetes found.
    found: Prefixes<NodeId>,
    /// The LANs that nodes report, from any source.
    lans: Prefixes<NodeId>,
}

/// The nodes in the network of a range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodesInNetwork {
    /// These were found there.
    Several(BTreeSet<NodeId>),
    /// One node was found there, or some only report it, which is not sufficient; this is the first
    /// one.
    One(NodeId),
    /// None.
    Nobody,
}

/// The number of addresses of a node that are examined; Kubernetes reports one or two.
const ADDRESSES: usize = 8;

impl NodeNetworks {
    /// Finds the networks of a node.
    pub fn from_node(ClusterNode { node, kilo, .. }: &ClusterNode) -> Self {
        let is_known = matches!(kilo.internal_ip, InternalIp::Known(_));
        let lan = kilo.lan.filter(|lan| is_known && is_believable(lan));
        let found = node
            .annotations
            .get(annotation::INTERNAL_IP)
            .and_then(|text| text.parse::<Interface>().ok())
            .map(|it| Some(it.network).filter(is_believable).unwrap_or(Cidr::host(it.address)));
        let reported: Vec<IpAddr> = node
            .addresses
            .iter()
            .filter(|it| it.kind == AddressKind::InternalIP)
            .filter_map(|it| it.address.parse().ok())
            .take(ADDRESSES)
            .collect();
        // A LAN that a person forced counts if Kubernetes reports an address in it.
        let confirmed = lan.filter(|lan| reported.iter().any(|it| lan.holds(*it)));
        let hosts = reported.iter().copied().map(Cidr::host);
        Self { lan, found: found.into_iter().chain(confirmed).chain(hosts).collect() }
    }

    /// Returns whether the node is where a range lies.
    pub fn is_in(&self, range: Cidr) -> bool {
        self.lan.iter().chain(&self.found).any(|it| it.overlaps(range))
    }
}

impl<'s> FromIterator<(NodeId, &'s NodeNetworks)> for NetworksOfNodes {
    fn from_iter<I: IntoIterator<Item = (NodeId, &'s NodeNetworks)>>(nodes: I) -> Self {
        let (mut found, mut lans) = (Vec::new(), Vec::new());
        for (node, networks) in nodes {
            found.extend(networks.found.iter().map(|range| (*range, node)));
            lans.extend(networks.lan.map(|lan| (lan, node)));
        }
        Self { found: found.into_iter().collect(), lans: lans.into_iter().collect() }
    }
}

impl NetworksOfNodes {
    /// Returns which nodes are in the network of a range.
    pub fn nodes_in_network_of(&self, range: Cidr) -> NodesInNetwork {
        let found: BTreeSet<NodeId> = self
            .found
            .containing(range)
            .chain(self.found.inside(range))
            .map(|(_, node)| *node)
            .collect();
        if 2 <= found.len() {
            return NodesInNetwork::Several(found);
        }
        let said = self.lans.containing(range).map(|(_, node)| *node);
        let one = found.first().copied().or_else(|| said.min());
        one.map_or(NodesInNetwork::Nobody, NodesInNetwork::One)
    }
}

/// The shortest prefix of a network of one site: a device gets a shorter one only if
/// its real network is unknown.
fn is_believable(lan: &Cidr) -> bool {
    match lan.family() {
        Family::V4 => 16 <= lan.prefix_length(),
        Family::V6 => 48 <= lan.prefix_length(),
    }
}
