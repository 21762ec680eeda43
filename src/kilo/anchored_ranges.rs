//! Anchored ranges: those of the nodes that anchors carry as a whole.

use std::net::IpAddr;

use crate::mesh::{Anchor, Entry, Networks, PodRanges, Range, WireguardAddresses};
use crate::net::Cidr;

/// The ranges of the nodes of a cluster that anchors carry as a whole.
#[derive(Clone, Debug, Default)]
pub struct AnchoredRanges {
    /// The pod ranges. Of a flat list, all ranges that anchors name: none of them goes to another node, so that no
    /// node decides by its addresses what a range is for.
    pub pods: Vec<Cidr>,
    /// Those of them without pods of the segment of a named node, such as the range of services.
    pub networks: Vec<Cidr>,
    /// Kilo's subnet.
    pub subnet: Option<Cidr>,
}

/// The addresses of the nodes of a segment by their kinds.
pub(super) struct SegmentAddresses<'a> {
    /// The names of its nodes.
    pub(super) names: Vec<&'a str>,
    pub(super) pods: Vec<Cidr>,
    pub(super) wireguard: Option<IpAddr>,
    pub(super) hosts: Vec<IpAddr>,
}

impl SegmentAddresses<'_> {
    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Cidr> {
        let hosts = self.wireguard.iter().chain(&self.hosts);
        hosts.copied().map(Cidr::host).chain(self.pods.iter().copied())
    }
}

impl AnchoredRanges {
    /// Returns those that an entry declares.
    pub(super) fn new(entry: &Entry, segments: &[SegmentAddresses]) -> Self {
        let Entry { advertise, networks, .. } = entry;
        match networks {
            Networks::Typed { .. } => Self {
                pods: cidrs(advertise.anchored_pods(networks).iter()),
                networks: Vec::new(),
                subnet: advertise.anchored_subnet(networks).map(|it| it.cidr),
            },
            Networks::Flat { allowed } => {
                let named = allowed.iter().filter(|it| is_named(&entry.anchors, it));
                let named = cidrs(named);
                let subnet = subnet(&named, segments);
                let pods = named.into_iter().filter(|it| Some(*it) != subnet);
                let is_declared = advertise.pods == PodRanges::Declared;
                let is_carrier = advertise.wireguard == WireguardAddresses::Carrier;
                let pods: Vec<Cidr> = pods.filter(|_| is_declared).collect();
                let networks = pods.iter().copied();
                Self {
                    networks: networks.filter(|it| is_network(entry, *it, segments)).collect(),
                    pods,
                    subnet: subnet.filter(|_| is_carrier),
                }
            }
        }
    }
}

fn cidrs<'r>(ranges: impl Iterator<Item = &'r Range>) -> Vec<Cidr> {
    ranges.map(|it| it.cidr).collect()
}

/// Returns whether one location carries a range, as an anchor names it.
fn is_named(anchors: &[Anchor], range: &Range) -> bool {
    let names = |it: &Anchor| (it.ranges.as_ref()).is_some_and(|it| it.contains(&range.cidr));
    anchors.iter().any(|it| names(it) && it.spread == 0 && !it.nodes.is_empty())
}

/// Returns whether the first named node that is there carries a range in which its segment has no pods.
fn is_network(entry: &Entry, range: Cidr, segments: &[SegmentAddresses]) -> bool {
    let nodes = Anchor::of(&entry.anchors, range).map_or(&[][..], |it| &it.nodes);
    let mut nodes = nodes.iter().map(|it| it.name.as_str());
    let segment = nodes.find_map(|name| segments.iter().find(|it| it.names.contains(&name)));
    segment.is_some_and(|it| !it.pods.iter().any(|it| range.contains(*it)))
}

/// Returns the range with the WireGuard addresses of more than half of the segments, and with pods of fewer.
fn subnet(ranges: &[Cidr], segments: &[SegmentAddresses]) -> Option<Cidr> {
    let most = |has: &dyn Fn(&SegmentAddresses) -> bool| {
        segments.len() < 2 * segments.iter().filter(|it| has(it)).count()
    };
    ranges.iter().copied().find(|range| {
        most(&|it| it.wireguard.is_some_and(|it| range.holds(it)))
            && !most(&|it| it.pods.iter().any(|it| range.contains(*it)))
    })
}
