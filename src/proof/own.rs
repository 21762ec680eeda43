//! The cluster itself: its nodes and segments as its own Kilo forms them (`kilo.md` §3 and §4).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::prefixes::{Prefixes, Span};
use crate::granularity::Granularity;
use crate::kilo::node::{KiloNode, annotation};
use crate::kilo::peer::translation::AllowedIp;
use crate::kilo::segment;
use crate::net::{Cidr, Interface};
use crate::snapshot::{Node, Snapshot};
use crate::wireguard::{Endpoint, Host};

/// A cluster whose Kilo is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What its nodes say.
    pub snapshot: &'a Snapshot,
    /// How its Kilo cuts it.
    pub granularity: Granularity,
    /// The label that names a node's location.
    pub topology_label: &'a str,
}

/// A cluster as its own Kilo sees it.
#[derive(Clone, Debug)]
pub struct Own {
    /// How it is cut.
    pub granularity: Granularity,
    /// Its nodes, by name.
    pub nodes: Vec<OwnNode>,
    /// Its segments, by key, bytewise.
    pub segments: Vec<OwnSegment>,
    /// Whether the Kilo subnet has too few addresses for the segments; no agent can do anything then
    /// (`kilo.md` §4.4).
    pub is_exhausted: bool,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct OwnNode {
    /// Its name, as it claims.
    pub name: String,
    /// What Kilo knows of it.
    pub kilo: KiloNode,
    /// The network that it says its internal address is in.
    pub lan: Option<Cidr>,
    /// Seconds between the keepalive packets to all of its peers; zero for none.
    pub keepalive: i64,
    /// What it wants reached behind it; unfiltered.
    pub location_ranges: Vec<AllowedIp>,
    /// The WireGuard address that it announced.
    pub announced: Option<Interface>,
    /// Its segment; none while Kilo does not count it.
    pub segment: Option<usize>,
}

/// A segment of the cluster.
#[derive(Clone, Debug)]
pub struct OwnSegment {
    /// Kilo's key for it.
    pub key: String,
    /// Its members, in the order of names.
    pub members: Vec<usize>,
    /// Who leads.
    pub leader: Leader,
    /// Its WireGuard address.
    pub wireguard_ip: WireguardIp,
    /// Pod CIDR and internal address of each member; the WireGuard address, which follows them, is
    /// apart.
    pub allowed_ips: Vec<AllowedIp>,
    /// What is left of the members' location ranges (`filterAllowedLocationIPs`).
    pub location_ranges: Vec<AllowedIp>,
}

/// Who leads a segment (`findLeader`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leader {
    /// This node.
    Certain(usize),
    /// It depends on how names resolve, or on whether an election is over: most likely this node.
    Ambiguous(usize),
}

/// The WireGuard address of a segment: its place in the order of segments, nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireguardIp {
    /// This one.
    Certain(IpAddr),
    /// Its leader announced another one: it is being renumbered, or the subnet is not known.
    Ambiguous {
        /// What follows from the segments there are.
        computed: IpAddr,
        /// What was announced.
        announced: IpAddr,
    },
    /// The first behind the end of the subnet is empty.
    None,
}

/// Kilo's own, where nothing says otherwise.
const SUBNET: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 4, 0, 0), 16);

impl Leader {
    /// Returns who leads, as far as one can tell.
    pub fn node(self) -> usize {
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

impl Own {
    /// Forms the cluster, location ranges still unfiltered: that takes the Peers.
    pub fn of(target: Target) -> Self {
        let nodes = target.snapshot.nodes.iter();
        let mut nodes: Vec<OwnNode> = nodes
            .map(|node| OwnNode::read(node, target.topology_label))
            .collect();
        let mut segments = segments(&nodes, target.granularity);
        let is_exhausted = number(&mut segments, &nodes);
        for (index, segment) in segments.iter().enumerate() {
            for &member in &segment.members {
                if let Some(node) = nodes.get_mut(member) {
                    node.segment = Some(index);
                }
            }
        }
        Self {
            granularity: target.granularity,
            nodes,
            segments,
            is_exhausted,
        }
    }

    /// Returns the node that leads a segment.
    pub fn leader(&self, segment: usize) -> Option<&OwnNode> {
        let segment = self.segments.get(segment)?;
        self.nodes.get(segment.leader.node())
    }

    /// Returns whether a segment's leader has no tunnel to another: in `Cross` there are none within
    /// a location, and nowhere one to itself.
    pub fn are_one(&self, one: usize, other: usize) -> bool {
        let location = |segment| self.leader(segment).map(|it| &it.kilo.location);
        one == other || self.granularity == Granularity::Cross && location(one) == location(other)
    }

    /// Returns whether any node wants something behind it reached.
    pub fn has_location_ranges(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|it| !it.location_ranges.is_empty())
    }

    /// Drops what Kilo drops of the location ranges (`filterAllowedLocationIPs`, `kilo.md` §4.3).
    ///
    /// Segments are looked at in their order, each against what is left of those before it. What is
    /// left of those meets none of its ranges, or it would have been dropped; so a range is dropped
    /// if it meets one of any later segment.
    pub fn filter_location_ranges(&mut self, peers: &Prefixes<impl Sized>) {
        let later = Later::new(&self.segments);
        let mut allowed = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let of_nodes = segment
                .allowed_ips
                .iter()
                .map(|it| (it.interface.network, None));
            allowed.extend(of_nodes);
            let own = segment.wireguard_ip.computed();
            allowed.extend(own.map(|address| (Cidr::host(address), Some(index))));
        }
        let allowed = Prefixes::new(&allowed);
        for (index, segment) in self.segments.iter_mut().enumerate() {
            segment.location_ranges.retain(|range| {
                let span = Span::of(range.interface.network);
                // Only where it begins is looked at, and later segments have no address yet.
                let mut holding = allowed.holding(range.interface.address);
                let is_allowed = holding.any(|slot| {
                    let claims = allowed.get(slot).map(|it| it.1).unwrap_or_default();
                    claims
                        .iter()
                        .any(|it| it.is_none_or(|number| number <= index))
                });
                !is_allowed && !later.meets(range, index) && !peers.meets(span)
            });
        }
    }
}

impl OwnNode {
    fn read(node: &Node, topology_label: &str) -> Self {
        let annotation = |key: &str| node.annotations.get(key).map(String::as_str);
        let kilo = KiloNode::read(node, topology_label);
        let interface = |key: &str| annotation(key)?.parse::<Interface>().ok();
        let sources = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
        let lan = kilo.internal_address().and_then(|address| {
            let mut found = sources.into_iter().filter_map(interface);
            found.find(|it| it.address == address)
        });
        let ranges = annotation(annotation::ALLOWED_LOCATION_IPS).unwrap_or_default();
        let keepalive = annotation(annotation::PERSISTENT_KEEPALIVE);
        Self {
            name: node.name.clone(),
            lan: lan.map(|it| it.network),
            keepalive: keepalive.and_then(|text| text.parse().ok()).unwrap_or(0),
            location_ranges: ranges.split(',').filter_map(AllowedIp::read).collect(),
            announced: interface(annotation::WIREGUARD_IP),
            segment: None,
            kilo,
        }
    }

    /// Returns whether Kilo has to ask for its address by name.
    fn has_name(&self) -> bool {
        let host = self.kilo.endpoint.as_ref().map(|it| &it.host);
        matches!(host, Some(Host::Dns(_)))
    }

    /// Returns where its own cluster dials it.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.kilo.endpoint.as_ref()
    }
}

fn segments(nodes: &[OwnNode], granularity: Granularity) -> Vec<OwnSegment> {
    // What Kilo does not count is not there.
    let ready: Vec<usize> = (0..nodes.len())
        .filter(|&node| nodes.get(node).is_some_and(|it| it.kilo.is_ready()))
        .collect();
    let mut seen = Vec::new();
    for node in ready.iter().filter_map(|&node| nodes.get(node)) {
        seen.push((&*node.name, node.kilo.clone()));
    }
    let mut anew = seen.clone();
    for (_, kilo) in &mut anew {
        kilo.has_wireguard_ip = false;
    }
    let formed = |kilos: &[(&str, KiloNode)]| {
        let kilos: Vec<_> = kilos.iter().map(|(name, kilo)| (*name, kilo)).collect();
        segment::segments(&kilos, granularity).formed
    };
    let node = |index: usize| ready.get(index).copied().unwrap_or_default();
    let both = formed(&seen).into_iter().zip(formed(&anew));
    both.map(|(seen, anew)| {
        let members: Vec<usize> = seen.members.into_iter().map(node).collect();
        let of_members: Vec<&OwnNode> = members.iter().filter_map(|&it| nodes.get(it)).collect();
        OwnSegment {
            key: seen.key,
            leader: leader(&of_members, node(seen.leader), node(anew.leader)),
            wireguard_ip: WireguardIp::None,
            allowed_ips: allowed_ips(&of_members),
            location_ranges: location_ranges(&of_members),
            members,
        }
    })
    .collect()
}

/// Returns who leads, given the one that an announced address points to and the one that an election
/// without names would give.
fn leader(members: &[&OwnNode], seen: usize, elected: usize) -> Leader {
    let has_name = members.iter().any(|it| it.has_name());
    let holders = members.iter().filter(|it| it.kilo.has_wireguard_ip).count();
    match holders {
        _ if members.len() == 1 => Leader::Certain(seen),
        1 if has_name => Leader::Certain(seen),
        _ if has_name || seen != elected => Leader::Ambiguous(elected),
        _ => Leader::Certain(elected),
    }
}

fn allowed_ips(members: &[&OwnNode]) -> Vec<AllowedIp> {
    let mut allowed = Vec::with_capacity(2 * members.len());
    for member in members {
        let pods = member.kilo.pod_cidr.map(AllowedIp::of);
        let internal = member.kilo.internal_address().map(AllowedIp::host);
        allowed.extend(pods.into_iter().chain(internal));
    }
    allowed
}

/// Of equal texts one, in the order of the texts.
fn location_ranges(members: &[&OwnNode]) -> Vec<AllowedIp> {
    let all = members.iter().flat_map(|it| &it.location_ranges);
    let texts: BTreeMap<String, AllowedIp> = all.map(|it| (it.to_string(), *it)).collect();
    texts.into_values().collect()
}

/// Gives each segment its address: the first of the subnet and one for each segment before it.
/// Returns whether they are too many.
fn number(segments: &mut [OwnSegment], nodes: &[OwnNode]) -> bool {
    let subnet = Span::of(subnet(nodes));
    let mut is_exhausted = false;
    for (segment, offset) in segments.iter_mut().zip(1u128..) {
        let number = subnet.first.checked_add(offset);
        is_exhausted |= number.is_none_or(|it| subnet.last.saturating_add(1) < it);
        let Some(number) = number.filter(|&it| it <= subnet.last) else {
            continue;
        };
        let computed = Span {
            first: number,
            ..subnet
        };
        let computed = computed.first_address();
        let leader = nodes.get(segment.leader.node());
        segment.wireguard_ip = match leader.and_then(|it| it.announced) {
            Some(announced) if announced.address != computed => WireguardIp::Ambiguous {
                computed,
                announced: announced.address,
            },
            _ => WireguardIp::Certain(computed),
        };
    }
    is_exhausted
}

/// Returns the Kilo subnet: addresses are announced with its length. Where nodes disagree, what most
/// of them say; the others' addresses are then not those that follow.
fn subnet(nodes: &[OwnNode]) -> Cidr {
    let mut counts: BTreeMap<Cidr, usize> = BTreeMap::new();
    for announced in nodes.iter().filter_map(|it| it.announced) {
        *counts.entry(announced.network).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let (address, length) = SUBNET;
    let usual = Interface::new(address.into(), length).map(|it| it.network);
    let most = most.map(|(network, _)| network);
    most.or(usual).unwrap_or_else(|| Cidr::host(address.into()))
}

/// All location ranges, and for each the last segment with one that it meets.
struct Later {
    ranges: Prefixes<usize>,
    last: Vec<usize>,
}

impl Later {
    fn new(segments: &[OwnSegment]) -> Self {
        let mut claims = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let ranges = segment.location_ranges.iter();
            claims.extend(ranges.map(|it| (it.interface.network, index)));
        }
        let ranges = Prefixes::new(&claims);
        let own: Vec<usize> = ranges
            .iter()
            .map(|(_, claims)| claims.iter().copied().max().unwrap_or_default())
            .collect();
        // From what is inside to what is around it, and back: each step only once.
        let mut last = own.clone();
        for slot in (0..last.len()).rev() {
            raise(&mut last, ranges.parent(slot), slot);
        }
        let mut around = own;
        for slot in 0..around.len() {
            if let Some(parent) = ranges.parent(slot) {
                raise(&mut around, Some(slot), parent);
            }
        }
        for (last, around) in last.iter_mut().zip(around) {
            *last = around.max(*last);
        }
        Self { ranges, last }
    }

    fn meets(&self, range: &AllowedIp, index: usize) -> bool {
        let slot = self.ranges.exactly(range.interface.network);
        let last = slot.and_then(|slot| self.last.get(slot));
        last.is_some_and(|&last| index < last)
    }
}

fn raise(numbers: &mut [usize], slot: Option<usize>, to: usize) {
    let floor = numbers.get(to).copied().unwrap_or_default();
    if let Some(number) = slot.and_then(|slot| numbers.get_mut(slot)) {
        *number = floor.max(*number);
    }
}

#[cfg(test)]
mod tests;
