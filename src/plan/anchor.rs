//! Anchors: who carries the ranges that belong to a cluster as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::carrier::Carrier;
use super::contenders::Contenders;
use super::named;
use super::range_network::{RangeNetworks, RangeSegments};
use super::succession::{self, Tier};
use super::withheld::{DistantAnchor, FewerAnchors, SilentAnchor, TargetReason};
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::membership::Unready;
use crate::mesh::Anchor;
use crate::net::Cidr;

/// Some of the ranges, and who carries them.
struct AnchorShare<'a> {
    /// None for ranges that no anchor is for.
    anchor: Option<&'a Anchor>,
    /// Those that it names, by their places among those that are left, the best first; nothing for one
    /// that is not there.
    named: Vec<Option<usize>>,
    /// Those and all others in order of preference, for ranges in the network of no segment.
    tiers: Vec<Tier>,
}

/// The ranges of the cluster as a whole, assigned to those who carry them.
#[derive(Default)]
struct AssignedRanges {
    parts: Vec<CarriedPart>,
    /// Ranges in the network of one node that another one carries.
    distant: BTreeMap<Distance, Vec<Cidr>>,
}

/// A range, or a part of one, and who carries it.
struct CarriedPart {
    carrier: usize,
    range: Cidr,
}

/// A node in whose network ranges are, and who carries them.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Distance {
    node: NodeId,
    /// The segment of the node.
    segment: usize,
    carrier: usize,
}

/// Assigns the ranges to those who carry them, and returns what is carried: their parts, where they
/// are spread.
///
/// WireGuard knows one peer of a key, so they are folded into the Peers that are there.
pub(super) fn carry(
    source: &Member,
    left: &mut [Carrier],
    ranges: Vec<Cidr>,
    reasons: &mut Vec<TargetReason>,
) -> Vec<Cidr> {
    let claimed: BTreeSet<Cidr> = left.iter().flat_map(Carrier::ranges).collect();
    let mut ranges = ranges;
    ranges.retain(|range| !claimed.contains(range));
    if ranges.is_empty() {
        return ranges;
    }
    // An external peer is one host, which keeps the way to itself open if no cluster can dial it.
    if source.entry.name.is_external() {
        return match left {
            [host] => {
                host.others.extend(&ranges);
                ranges
            }
            _ => Vec::new(),
        };
    }
    let contenders = Contenders::new(left);
    if !contenders.has_able() {
        if !source.membership.candidates.is_empty() {
            reasons.push(TargetReason::NoAnchor { ranges });
        }
        return Vec::new();
    }
    let mut assigned = assign(source, left, &contenders, ranges, reasons);
    // A node carries its own ranges itself.
    assigned.parts.retain(|it| !claimed.contains(&it.range));
    for (distance, ranges) in assigned.distant {
        reasons.extend(distant_anchor(source, left, &distance, ranges));
    }
    reasons.extend(silent_anchors(left, &assigned.parts));
    let subnet = source.cluster.anchored.subnet;
    for &CarriedPart { carrier, range } in &assigned.parts {
        if let Some(carrier) = left.get_mut(carrier) {
            if subnet.is_some_and(|it| it.contains(range)) {
                carrier.others.retain(|it| !range.contains(*it));
            }
            carrier.others.push(range);
        }
    }
    assigned.parts.into_iter().map(|it| it.range).collect()
}

/// Decides who carries each of the ranges.
fn assign(
    source: &Member,
    left: &[Carrier],
    contenders: &Contenders,
    ranges: Vec<Cidr>,
    reasons: &mut Vec<TargetReason>,
) -> AssignedRanges {
    let shares = shares(source, left, contenders, &ranges, reasons);
    let rest = AnchorShare::new(None, Vec::new(), contenders);
    let networks = RangeNetworks::new(source, left, contenders);
    let mut assigned = AssignedRanges::default();
    for range in ranges {
        let share = shares.iter().find(|share| share.is_for(range));
        let share = share.unwrap_or(&rest);
        let segments = networks.at(range);
        let tiers = match &segments {
            RangeSegments::Several(near) => Cow::Owned(contenders.tiers(&share.named, near)),
            RangeSegments::One { .. } | RangeSegments::Nobody => Cow::Borrowed(&share.tiers),
        };
        let spread = share.spread(&tiers, contenders, range, reasons);
        let parts = range.parts(spread);
        let carriers = succession::carriers(&tiers, parts.len());
        if let (RangeSegments::One { node, segment }, true) = (segments, share.named.is_empty())
            && contenders.is_able(segment)
            && let Some(&carrier) = carriers.first()
            && !carriers.contains(&segment)
        {
            let distance = Distance { node, segment, carrier };
            assigned.distant.entry(distance).or_default().push(range);
        }
        assigned.parts.extend(
            carriers.into_iter().zip(parts).map(|(carrier, range)| CarriedPart { carrier, range }),
        );
    }
    assigned
}

fn distant_anchor(
    source: &Member,
    left: &[Carrier],
    distance: &Distance,
    ranges: Vec<Cidr>,
) -> Option<TargetReason> {
    let (node, place) = source.node_at(distance.node);
    let leader = |segment: usize| Some(left.get(segment)?.candidate.leader.clone());
    Some(TargetReason::DistantAnchor(DistantAnchor {
        ranges,
        node: node.name.clone(),
        place,
        leader: leader(distance.segment)?,
        carrier: leader(distance.carrier)?,
    }))
}

/// Finds the carriers that are silent: they have ranges only if no other segment can carry any.
fn silent_anchors(left: &[Carrier], parts: &[CarriedPart]) -> Vec<TargetReason> {
    let mut carried: BTreeMap<usize, Vec<Cidr>> = BTreeMap::new();
    for &CarriedPart { carrier, range } in parts {
        carried.entry(carrier).or_default().push(range);
    }
    carried
        .into_iter()
        .filter_map(|(carrier, ranges)| Some((left.get(carrier)?.candidate, ranges)))
        .filter(|(candidate, _)| candidate.unready == Some(Unready::Stale))
        .map(|(candidate, ranges)| {
            TargetReason::SilentAnchor(SilentAnchor {
                ranges,
                node: candidate.leader.clone(),
                place: candidate.place.clone(),
            })
        })
        .collect()
}

/// Returns who carries what, for each anchor that has something to carry: those that name ranges
/// before the one that has the rest.
fn shares<'a>(
    source: &Member<'a>,
    left: &[Carrier],
    contenders: &Contenders,
    ranges: &[Cidr],
    reasons: &mut Vec<TargetReason>,
) -> Vec<AnchorShare<'a>> {
    let mut anchors: Vec<&Anchor> = source.entry.anchors.iter().collect();
    anchors.sort_by_key(|anchor| anchor.ranges.is_none());
    let mut rest: BTreeSet<Cidr> = ranges.iter().copied().collect();
    let mut shares = Vec::new();
    for anchor in anchors {
        let own = match &anchor.ranges {
            Some(ranges) => ranges.iter().filter(|it| rest.remove(it)).count(),
            None => rest.len(),
        };
        if 0 < own {
            let mut named = Vec::new();
            for node in &anchor.nodes {
                let at = named::position(source, left, &node.name);
                let contender = at.and_then(|it| contenders.get(it));
                let problem = named::problem(source, node, contender);
                named::report(source, node, problem, reasons);
                // Two nodes of one segment are one carrier.
                if at.is_none() || !named.contains(&at) {
                    named.push(at);
                }
            }
            shares.push(AnchorShare::new(Some(anchor), named, contenders));
        }
    }
    shares
}

impl<'a> AnchorShare<'a> {
    fn new(anchor: Option<&'a Anchor>, named: Vec<Option<usize>>, contenders: &Contenders) -> Self {
        Self { anchor, tiers: contenders.tiers(&named, &[]), named }
    }

    fn is_for(&self, range: Cidr) -> bool {
        self.anchor.and_then(|it| it.ranges.as_ref()).is_none_or(|it| it.contains(&range))
    }

    /// Returns among how many nodes a range is split, as a power of two: the requested number, if there
    /// are enough nodes and addresses.
    fn spread(
        &self,
        tiers: &[Tier],
        contenders: &Contenders,
        range: Cidr,
        reasons: &mut Vec<TargetReason>,
    ) -> u8 {
        let Some(anchor) = self.anchor else { return 0 };
        let carriers = tiers.iter().flatten().flatten().count();
        let by_nodes = u8::try_from(carriers.max(1).ilog2()).unwrap_or(u8::MAX);
        let spread = anchor.spread.min(by_nodes).min(range.host_bits());
        if spread < anchor.spread {
            reasons.push(TargetReason::FewerAnchors(FewerAnchors {
                range,
                wanted: 1 << anchor.spread,
                got: 1 << spread,
                is_narrow: range.host_bits() < by_nodes,
                carriers,
                unready: contenders.unable(),
                place: anchor.place.clone(),
            }));
        }
        spread
    }
}
