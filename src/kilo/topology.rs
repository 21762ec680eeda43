//! Topologies: the nodes and segments of a cluster as its own Kilo forms them (`kilo.md` §3 and §4).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::id::{NodeId, Nodes, SegmentId, Segments};
use super::node::KiloNode;
use super::peer::translation::AllowedIp;
use super::segment::{Cut, Segment};
use crate::granularity::Granularity;
use crate::net::{Cidr, Interface};
use crate::wireguard::Endpoint;

/// A cluster as its own Kilo sees it.
#[derive(Clone, Debug)]
pub struct KiloTopology {
    /// The granularity.
    pub granularity: Granularity,
    /// Its nodes, by name.
    pub nodes: Nodes<TopologyNode>,
    /// Its segments, by key, bytewise.
    pub segments: Segments<TopologySegment>,
    /// The Kilo subnet, if more than half of the nodes that show it agree: addresses are announced with its
    /// length.
    pub subnet: Option<Cidr>,
    /// Whether the Kilo subnet has too few addresses for the segments; no agent can do anything then
    /// (`kilo.md` §4.4).
    pub is_exhausted: bool,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct TopologyNode {
    /// The node as Kilo reads it.
    pub kilo: Arc<KiloNode>,
    /// Its segment; none while Kilo does not count it.
    pub segment: Option<SegmentId>,
}

/// A segment of the cluster.
#[derive(Clone, Debug)]
pub struct TopologySegment {
    /// Kilo's key for it.
    pub key: String,
    /// Its members, in the order of names.
    pub members: Vec<NodeId>,
    /// The leader.
    pub leader: Leader,
    /// Its WireGuard address.
    pub wireguard_ip: WireguardIp,
    /// Pod CIDR and internal address of each member; the WireGuard address, which follows them, is
    /// apart.
    pub allowed_ips: Vec<AllowedIp>,
    /// The members' location ranges that Kilo keeps (`filterAllowedLocationIPs`).
    pub location_ranges: Vec<AllowedIp>,
}

/// The leader of a segment (`findLeader`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leader {
    /// This node.
    Certain(NodeId),
    /// It depends on how names resolve, or on whether an election is over: most likely this node.
    Ambiguous(NodeId),
}

/// The WireGuard address of a segment: its place in the order of segments, nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireguardIp {
    /// This one.
    Certain(IpAddr),
    /// Its leader announced another one: it is being renumbered, or the subnet is not known.
    Ambiguous {
        /// The address computed from the current segments.
        computed: IpAddr,
        /// The announced address.
        announced: IpAddr,
    },
    /// The first behind the end of the subnet is empty.
    None,
}

/// Kilo's own, by default.
const SUBNET: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 4, 0, 0), 16);

impl Leader {
    /// Returns the leader, as far as a snapshot shows.
    pub fn node(self) -> NodeId {
        match self {
            Self::Certain(node) | Self::Ambiguous(node) => node,
        }
    }
}

impl WireguardIp {
    /// Returns the address that follows from the segments there are.
    pub fn computed(self) -> Option<IpAddr> {
        match self {
            Self::Certain(address) => Some(address),
            Self::Ambiguous { computed, .. } => Some(computed),
            Self::None => None,
        }
    }
}

impl KiloTopology {
    /// Forms the cluster of the nodes that Kilo counts, location ranges still unfiltered: that takes
    /// the Peers.
    pub fn form(kilos: &Nodes<Arc<KiloNode>>, cut: &Cut) -> Self {
        Self::formed(kilos, cut, true)
    }

    /// Forms a host outside of all clusters, which is a segment like a node and has no Kilo subnet.
    pub fn of_host(kilos: &Nodes<Arc<KiloNode>>, cut: &Cut) -> Self {
        Self::formed(kilos, cut, false)
    }

    fn formed(kilos: &Nodes<Arc<KiloNode>>, cut: &Cut, has_subnet: bool) -> Self {
        let mut nodes = kilos.map(|kilo| TopologyNode { kilo: Arc::clone(kilo), segment: None });
        // A segment is rendered even if Kilo ignores its leader now.
        let mut segments: Vec<TopologySegment> = cut
            .formed
            .iter()
            .filter(|it| it.members.iter().any(|it| nodes[*it].kilo.is_ready()))
            .map(|it| TopologySegment::new(it, &nodes))
            .collect();
        let subnet = subnet(&nodes);
        let is_exhausted = has_subnet && number(&mut segments, &nodes, subnet);
        let segments = Segments::new(segments);
        for (id, segment) in segments.numbered() {
            for &member in &segment.members {
                nodes[member].segment = Some(id);
            }
        }
        Self { granularity: cut.granularity, nodes, segments, subnet, is_exhausted }
    }

    /// Returns the node that leads a segment.
    pub fn leader(&self, segment: SegmentId) -> &TopologyNode {
        &self.nodes[self.segments[segment].leader.node()]
    }

    /// Returns the nodes that may lead a segment: one, unless its election is uncertain.
    pub fn possible_leaders(&self, segment: SegmentId) -> Vec<NodeId> {
        let segment = &self.segments[segment];
        match segment.leader {
            Leader::Certain(node) => vec![node],
            Leader::Ambiguous(_) => segment.members.clone(),
        }
    }

    /// Returns the nodes that may lead any segment.
    pub fn all_possible_leaders(&self) -> impl Iterator<Item = NodeId> {
        self.segments.ids().flat_map(|it| self.possible_leaders(it))
    }

    /// Returns whether a segment's leader has no tunnel to another: in `Cross` there are none within
    /// a location, and nowhere one to itself.
    pub fn are_one(&self, one: SegmentId, other: SegmentId) -> bool {
        let location = |segment| &self.leader(segment).kilo.location;
        one == other || self.granularity == Granularity::Cross && location(one) == location(other)
    }

    /// Returns whether any node wants something behind it reached.
    pub fn has_location_ranges(&self) -> bool {
        self.segments.iter().any(|it| !it.location_ranges.is_empty())
    }
}

impl TopologyNode {
    /// Returns where its own cluster dials it.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.kilo.endpoint.as_ref()
    }
}

impl TopologySegment {
    fn new(segment: &Segment, nodes: &Nodes<TopologyNode>) -> Self {
        // A node that has lost the lead is in the segment for others; its own Kilo does not count it.
        let counted = segment.members.iter().copied().filter(|it| nodes[*it].kilo.is_ready());
        let counted: Vec<NodeId> = counted.collect();
        let members: Vec<&KiloNode> = counted.iter().map(|it| &*nodes[*it].kilo).collect();
        Self {
            key: segment.key.clone(),
            leader: if counted.contains(&segment.leader) {
                leader(segment, &members, &nodes[segment.leader].kilo.name)
            } else {
                Leader::Ambiguous(segment.elected)
            },
            wireguard_ip: WireguardIp::None,
            allowed_ips: allowed_ips(&members),
            location_ranges: location_ranges(&members),
            members: counted,
        }
    }
}

/// Returns who leads, given the one that an announced address points to and the one that an election
/// without names would give. If another member claims the lead, both believe that they lead, or one of them stopped.
fn leader(segment: &Segment, members: &[&KiloNode], name: &str) -> Leader {
    let (leader, elected) = (segment.leader, segment.elected);
    let has_name = members.iter().any(|it| it.has_name());
    let holders = members.iter().filter(|it| it.has_wireguard_ip()).count();
    let holds = |it: &KiloNode| it.claims_lead() || it.name == name && it.has_wireguard_ip();
    let is_contested = 1 < members.iter().filter(|it| holds(it)).count();
    match holders {
        _ if members.len() == 1 => Leader::Certain(leader),
        1 if has_name => Leader::Certain(leader),
        _ if is_contested || has_name || leader != elected => Leader::Ambiguous(elected),
        _ => Leader::Certain(elected),
    }
}

fn allowed_ips(members: &[&KiloNode]) -> Vec<AllowedIp> {
    let mut allowed = Vec::with_capacity(2 * members.len());
    for member in members {
        let pods = member.pod_cidr.map(AllowedIp::new);
        let internal = member.internal_address().map(AllowedIp::host);
        allowed.extend(pods.into_iter().chain(internal));
    }
    allowed
}

/// Of equal texts one, in the order of the texts.
fn location_ranges(members: &[&KiloNode]) -> Vec<AllowedIp> {
    let texts: BTreeMap<String, AllowedIp> =
        members.iter().flat_map(|it| &it.location_ranges).map(|it| (it.to_string(), *it)).collect();
    texts.into_values().collect()
}

/// Gives each segment its address: the first of the subnet and one for each segment before it.
/// Returns whether they are too many.
fn number(
    segments: &mut [TopologySegment],
    nodes: &Nodes<TopologyNode>,
    subnet: Option<Cidr>,
) -> bool {
    let numbered = subnet.unwrap_or_else(usual_subnet);
    let mut is_exhausted = false;
    for (segment, offset) in segments.iter_mut().zip(1u128..) {
        let announced = nodes[segment.leader.node()].kilo.wireguard_ip();
        // Without a subnet, nothing contradicts an address that shows none.
        if let Some(host) = announced.filter(|it| subnet.is_none() && it.network.is_host()) {
            segment.wireguard_ip = WireguardIp::Certain(host.address);
            continue;
        }
        let Some(computed) = numbered.address(offset) else {
            // The first one behind the end is empty, the next one is an error.
            is_exhausted |= numbered.address(offset - 1).is_none();
            continue;
        };
        segment.wireguard_ip = match announced {
            Some(announced) if announced.address != computed => {
                WireguardIp::Ambiguous { computed, announced: announced.address }
            }
            _ => WireguardIp::Certain(computed),
        };
    }
    is_exhausted
}

/// Returns the Kilo subnet. Host routes do not show it, and a silent node may show an old one.
fn subnet(nodes: &[TopologyNode]) -> Option<Cidr> {
    let mut counts: BTreeMap<Cidr, usize> = BTreeMap::new();
    let announced =
        nodes.iter().filter(|it| !it.kilo.is_silent()).filter_map(|it| it.kilo.wireguard_ip());
    for announced in announced.filter(|it| !it.network.is_host()) {
        *counts.entry(announced.network).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    counts.into_iter().find(|(_, count)| all < 2 * count).map(|it| it.0)
}

fn usual_subnet() -> Cidr {
    let (address, length) = SUBNET;
    Interface::new(address.into(), length).map_or(Cidr::host(address.into()), |it| it.network)
}

#[cfg(test)]
mod tests;
