//! Carried ranges: those of the nodes that anchors carry as a whole.

use std::net::IpAddr;

use crate::mesh::{Anchor, Entry, Networks, PodRanges, Range, WireguardAddresses};
use crate::net::Cidr;

/// The ranges of the nodes of a cluster that anchors carry as a whole.
#[derive(Clone, Debug, Default)]
pub struct CarriedRanges {
    /// The pod ranges.
    pub pods: Vec<Cidr>,
    /// Kilo's subnet.
    pub subnet: Option<Cidr>,
}

/// The addresses of the nodes of a segment by their kinds.
pub(super) struct SegmentAddresses {
    pub(super) pods: Vec<Cidr>,
    pub(super) wireguard: Option<IpAddr>,
    pub(super) hosts: Vec<IpAddr>,
}

impl SegmentAddresses {
    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Cidr> {
        let hosts = self.wireguard.iter().chain(&self.hosts);
        hosts
            .copied()
            .map(Cidr::host)
            .chain(self.pods.iter().copied())
    }
}

/// The kinds of address that most of the segments with addresses in a range have there.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Kinds {
    pods: bool,
    wireguard: bool,
    hosts: bool,
}

impl Kinds {
    const PODS: Self = Self {
        pods: true,
        wireguard: false,
        hosts: false,
    };
    const WIREGUARD: Self = Self {
        pods: false,
        wireguard: true,
        hosts: false,
    };

    fn of(range: Cidr, segments: &[SegmentAddresses]) -> Self {
        let count =
            |has: &dyn Fn(&SegmentAddresses) -> bool| segments.iter().filter(|it| has(it)).count();
        let holders = count(&|it| it.all().any(|it| range.contains(it)));
        let most = |has: &dyn Fn(&SegmentAddresses) -> bool| holders < 2 * count(has);
        Self {
            pods: most(&|it| it.pods.iter().any(|it| range.contains(*it))),
            wireguard: most(&|it| it.wireguard.is_some_and(|it| range.holds(it))),
            hosts: most(&|it| it.hosts.iter().any(|it| range.holds(*it))),
        }
    }
}

impl CarriedRanges {
    /// Returns those that an entry declares. A flat list does not contain the purpose of a range: one that an anchor names
    /// counts if most segments with addresses in it have some of that kind there, and of no other.
    pub(super) fn new(entry: &Entry, segments: &[SegmentAddresses]) -> Self {
        let is_declared = entry.advertise.pods == PodRanges::Declared;
        let is_carrier = entry.advertise.wireguard == WireguardAddresses::Carrier;
        match &entry.networks {
            Networks::Typed {
                pods, wireguard, ..
            } => Self {
                pods: pods
                    .iter()
                    .filter(|_| is_declared)
                    .map(|it| it.cidr)
                    .collect(),
                subnet: is_carrier.then_some(wireguard.cidr),
            },
            Networks::Flat { allowed } if is_declared || is_carrier => {
                let named = allowed.iter().filter(|it| is_named(&entry.anchors, it));
                let of = |kinds| {
                    let named = named.clone().map(|it| it.cidr);
                    named.filter(move |it| Kinds::of(*it, segments) == kinds)
                };
                Self {
                    pods: of(Kinds::PODS).filter(|_| is_declared).collect(),
                    subnet: of(Kinds::WIREGUARD).find(|_| is_carrier),
                }
            }
            Networks::Flat { .. } => Self::default(),
        }
    }
}

/// Returns whether one location carries a range, as an anchor names it.
fn is_named(anchors: &[Anchor], range: &Range) -> bool {
    let names = |it: &Anchor| {
        it.ranges
            .as_ref()
            .is_some_and(|it| it.contains(&range.cidr))
    };
    let mut anchors = anchors.iter();
    anchors.any(|it| names(it) && it.spread == 0 && !it.nodes.is_empty())
}
