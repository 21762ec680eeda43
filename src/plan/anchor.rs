//! Anchors: who carries the ranges that belong to a cluster as a whole.

use std::collections::BTreeSet;

use super::cut::{CutOff, FewerAnchors, UnknownAnchor};
use crate::fleet::Member;
use crate::mesh::Anchor;
use crate::net::Cidr;
use crate::roster::Speaker;

/// A speaker that is left for a target, and what it gives.
pub(super) struct Carrier<'f> {
    pub(super) speaker: &'f Speaker,
    pub(super) ranges: Vec<Cidr>,
}

/// Some of the ranges, and who carries them.
struct Share<'a> {
    anchor: Option<&'a Anchor>,
    /// By their places among those that are left, the best first.
    carriers: Vec<usize>,
}

impl Carrier<'_> {
    /// Returns whether it can be dialled and has something of its own to give.
    pub(super) fn is_dialled_for_its_own(&self) -> bool {
        self.speaker.endpoint.is_some() && !self.ranges.is_empty()
    }
}

/// Hands the ranges to those who carry them, and returns what is carried: their parts, where they
/// are spread.
///
/// WireGuard knows one peer of a key, so they are folded into the Peers that are there.
pub(super) fn carry(
    source: &Member,
    left: &mut [Carrier],
    ranges: Vec<Cidr>,
    cuts: &mut Vec<CutOff>,
) -> Vec<Cidr> {
    let claimed = left.iter().flat_map(|it| it.ranges.iter().copied());
    let claimed: BTreeSet<Cidr> = claimed.collect();
    let mut ranges = ranges;
    ranges.retain(|range| !claimed.contains(range));
    // Speakers are in order of name.
    let dialled = left.iter().enumerate();
    let dialled = dialled.filter(|(_, it)| it.speaker.endpoint.is_some());
    let dialled: Vec<usize> = dialled.map(|(index, _)| index).collect();
    if ranges.is_empty() {
        return ranges;
    }
    if dialled.is_empty() {
        if !source.roster.speakers.is_empty() {
            cuts.push(CutOff::NoAnchor { ranges });
        }
        return Vec::new();
    }
    let shares = shares(source, left, &dialled, &ranges, cuts);
    let mut carried = Vec::new();
    for range in ranges {
        let share = shares.iter().find(|share| share.is_for(range));
        let (anchor, carriers) = match share {
            Some(share) => (share.anchor, share.carriers.as_slice()),
            None => (None, dialled.as_slice()),
        };
        let spread = spread(anchor, carriers.len(), range, cuts);
        for (part, index) in range.parts(spread).into_iter().zip(carriers) {
            // What a node has as its own, it carries by itself.
            if let (false, Some(carrier)) = (claimed.contains(&part), left.get_mut(*index)) {
                carrier.ranges.push(part);
                carried.push(part);
            }
        }
    }
    carried
}

/// Returns who carries what, for each anchor that has something to carry: those that name ranges
/// before the one that has the rest.
fn shares<'a>(
    source: &Member<'a>,
    left: &[Carrier],
    dialled: &[usize],
    ranges: &[Cidr],
    cuts: &mut Vec<CutOff>,
) -> Vec<Share<'a>> {
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
            shares.push(Share {
                anchor: Some(anchor),
                carriers: carriers(source, anchor, left, dialled, cuts),
            });
        }
    }
    shares
}

/// Returns those who can carry something: the named ones first, then the others by name.
fn carriers(
    source: &Member,
    anchor: &Anchor,
    left: &[Carrier],
    dialled: &[usize],
    cuts: &mut Vec<CutOff>,
) -> Vec<usize> {
    let mut carriers = Vec::new();
    for named in &anchor.nodes {
        let is_named = |index: &&usize| {
            let carrier = left.get(**index);
            carrier.is_some_and(|it| it.speaker.leader.as_str() == named.name)
        };
        match dialled.iter().find(is_named) {
            Some(index) => carriers.push(*index),
            None => cuts.push(CutOff::UnknownAnchor(UnknownAnchor {
                node: named.name.clone(),
                place: named.place.clone(),
                node_place: source.node_place(&named.name),
            })),
        }
    }
    let known: BTreeSet<usize> = carriers.iter().copied().collect();
    carriers.extend(dialled.iter().filter(|it| !known.contains(it)));
    carriers
}

/// Returns over how many a range is spread, as a power of two: as many as somebody asked for, if
/// there are so many nodes and addresses.
fn spread(anchor: Option<&Anchor>, carriers: usize, range: Cidr, cuts: &mut Vec<CutOff>) -> u8 {
    let Some(anchor) = anchor else { return 0 };
    let by_nodes = u8::try_from(carriers.max(1).ilog2()).unwrap_or(u8::MAX);
    let spread = anchor.spread.min(by_nodes).min(range.host_bits());
    if spread < anchor.spread {
        cuts.push(CutOff::FewerAnchors(FewerAnchors {
            range,
            wanted: 1 << anchor.spread,
            got: 1 << spread,
            is_narrow: range.host_bits() < by_nodes,
            place: anchor.place.clone(),
        }));
    }
    spread
}

impl Share<'_> {
    fn is_for(&self, range: Cidr) -> bool {
        let ranges = self.anchor.map(|it| &it.ranges);
        ranges.is_some_and(|it| it.as_ref().is_none_or(|it| it.contains(&range)))
    }
}
