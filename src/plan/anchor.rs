//! Anchors: who carries the ranges that belong to a cluster as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::carrier::Carrier;
use super::seat::{Seat, Seats};
use super::withheld::{DistantAnchor, FewerAnchors, TargetReason, UnknownAnchor};
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::mesh::Anchor;
use crate::net::Cidr;

/// Some of the ranges, and who carries them.
struct AnchorShare<'a> {
    anchor: &'a Anchor,
    /// Those that it names, by their places among those that are left, the best first.
    named: Vec<usize>,
}

/// Hands the ranges to those who carry them, and returns what is carried: their parts, where they
/// are spread.
///
/// WireGuard knows one peer of a key, so they are folded into the Peers that are there.
pub(super) fn carry(
    source: &Member,
    left: &mut [Carrier],
    ranges: Vec<Cidr>,
    reasons: &mut Vec<TargetReason>,
) -> Vec<Cidr> {
    let claimed: BTreeSet<Cidr> = left
        .iter()
        .flat_map(|it| it.ranges.iter().copied())
        .collect();
    let mut ranges = ranges;
    ranges.retain(|range| !claimed.contains(range));
    if ranges.is_empty() {
        return ranges;
    }
    let by_rank = by_rank(left);
    if by_rank.is_empty() {
        if !source.membership.candidates.is_empty() {
            reasons.push(TargetReason::NoAnchor { ranges });
        }
        return Vec::new();
    }
    let shares = shares(source, left, &by_rank, &ranges, reasons);
    let seats = Seats::new(source, left);
    let mut distant: BTreeMap<(NodeId, usize, usize), Vec<Cidr>> = BTreeMap::new();
    let mut carried = Vec::new();
    for range in ranges {
        let share = shares.iter().find(|share| share.is_for(range));
        let anchor = share.map(|it| it.anchor);
        let named = share.map_or(&[][..], |it| &it.named);
        let seat = seats.at(range);
        let near = match &seat {
            Seat::Several(segments) => segments.as_slice(),
            Seat::One { .. } | Seat::Nobody => &[],
        };
        let spread = spread(anchor, by_rank.len(), range, reasons);
        let parts = range.parts(spread);
        let mut known = BTreeSet::new();
        let carriers: Vec<usize> = named
            .iter()
            .chain(near)
            .chain(&by_rank)
            .copied()
            .filter(|it| known.insert(*it))
            .take(parts.len())
            .collect();
        if let (Seat::One { node, carrier }, true) = (seat, named.is_empty())
            && let Some(&first) = carriers.first()
            && !carriers.contains(&carrier)
        {
            distant
                .entry((node, carrier, first))
                .or_default()
                .push(range);
        }
        for (part, index) in parts.into_iter().zip(carriers) {
            // A node carries its own ranges itself.
            if let (false, Some(carrier)) = (claimed.contains(&part), left.get_mut(index)) {
                carrier.ranges.push(part);
                carried.push(part);
            }
        }
    }
    for ((node, carrier, first), ranges) in distant {
        reasons.extend(distant_anchor(source, left, node, carrier, first, ranges));
    }
    carried
}

/// Returns those that can be dialled, by their places: first those with at least half as many nodes
/// as the one with most, then the others, both in order of name. So a node with a location of its own
/// does not come first, and one that comes or goes rarely changes who does.
fn by_rank(left: &[Carrier]) -> Vec<usize> {
    let dialled: Vec<(usize, usize)> = left
        .iter()
        .enumerate()
        .filter(|(_, it)| it.candidate.endpoint.is_some())
        .map(|(at, it)| (at, it.candidate.nodes))
        .collect();
    let most = dialled.iter().map(|it| it.1).max().unwrap_or_default();
    // Speakers are in order of name.
    let (large, small): (Vec<_>, Vec<_>) = dialled.into_iter().partition(|it| most <= 2 * it.1);
    large.into_iter().chain(small).map(|it| it.0).collect()
}

fn distant_anchor(
    source: &Member,
    left: &[Carrier],
    node: NodeId,
    carrier: usize,
    first: usize,
    ranges: Vec<Cidr>,
) -> Option<TargetReason> {
    let (node, place) = source.node_at(node);
    let leader = |carrier: usize| Some(left.get(carrier)?.candidate.leader.clone());
    Some(TargetReason::DistantAnchor(DistantAnchor {
        ranges,
        node: node.name.clone(),
        place,
        leader: leader(carrier)?,
        carrier: leader(first)?,
    }))
}

/// Returns who carries what, for each anchor that has something to carry: those that name ranges
/// before the one that has the rest.
fn shares<'a>(
    source: &Member<'a>,
    left: &[Carrier],
    dialled: &[usize],
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
            shares.push(AnchorShare {
                anchor,
                named: named(source, anchor, left, dialled, reasons),
            });
        }
    }
    shares
}

/// Returns those that an anchor names and that can carry something.
fn named(
    source: &Member,
    anchor: &Anchor,
    left: &[Carrier],
    dialled: &[usize],
    reasons: &mut Vec<TargetReason>,
) -> Vec<usize> {
    let mut carriers = Vec::new();
    for named in &anchor.nodes {
        let is_named = |index: &&usize| {
            let carrier = left.get(**index);
            carrier.is_some_and(|it| it.candidate.leader.as_str() == named.name)
        };
        match dialled.iter().find(is_named) {
            Some(index) => carriers.push(*index),
            None => reasons.push(TargetReason::UnknownAnchor(UnknownAnchor {
                node: named.name.clone(),
                place: named.place.clone(),
                node_place: source.node_place(&named.name),
            })),
        }
    }
    carriers
}

/// Returns among how many nodes a range is split, as a power of two: the requested number, if there
/// are enough nodes and addresses.
fn spread(
    anchor: Option<&Anchor>,
    carriers: usize,
    range: Cidr,
    reasons: &mut Vec<TargetReason>,
) -> u8 {
    let Some(anchor) = anchor else { return 0 };
    let by_nodes = u8::try_from(carriers.max(1).ilog2()).unwrap_or(u8::MAX);
    let spread = anchor.spread.min(by_nodes).min(range.host_bits());
    if spread < anchor.spread {
        reasons.push(TargetReason::FewerAnchors(FewerAnchors {
            range,
            wanted: 1 << anchor.spread,
            got: 1 << spread,
            is_narrow: range.host_bits() < by_nodes,
            place: anchor.place.clone(),
        }));
    }
    spread
}

impl AnchorShare<'_> {
    fn is_for(&self, range: Cidr) -> bool {
        let ranges = self.anchor.ranges.as_ref();
        ranges.is_none_or(|it| it.contains(&range))
    }
}
