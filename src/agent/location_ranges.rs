//! Location ranges: what Kilo drops of them, given the Peers.

use crate::kilo::id::{Numbered, SegmentId, Segments};
use crate::kilo::topology::{KiloTopology, TopologySegment};
use crate::net::Cidr;
use crate::net::prefixes::{OfSlot, Prefixes, SlotId, Span};

/// A location range that Kilo drops because a later segment has one that overlaps it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outranked {
    /// The segment whose range is dropped.
    pub segment: SegmentId,
    /// The range.
    pub range: Cidr,
    /// The last segment with a range that overlaps it.
    pub by: SegmentId,
    /// The range of the segment `by`.
    pub stronger: Cidr,
}

impl KiloTopology {
    /// Returns the location ranges that Kilo drops because of those of other segments, in the order of
    /// segments. Peers are the other reason to drop them; see [`KiloTopology::filter_location_ranges`].
    pub fn outranked_location_ranges(&self) -> Vec<Outranked> {
        let later = Later::new(&self.segments);
        let ranges = self.segments.numbered().flat_map(|(segment, it)| {
            it.location_ranges.iter().map(move |range| (segment, range.interface.network))
        });
        ranges
            .filter_map(|(segment, range)| {
                let (by, stronger) = later.meeting(range, segment)?;
                Some(Outranked { segment, range, by, stronger })
            })
            .collect()
    }

    /// Drops what Kilo drops of the location ranges (`filterAllowedLocationIPs`, `kilo.md` §4.3).
    ///
    /// Segments are looked at in their order, each against the remaining ranges of those before it.
    /// These meet none of its ranges, or they would have been dropped; so a range is dropped if it
    /// meets one of any later segment.
    pub fn filter_location_ranges(&mut self, peers: &Prefixes<impl Sized>) {
        let later = Later::new(&self.segments);
        let mut allowed = Vec::new();
        for (id, segment) in self.segments.numbered() {
            let of_nodes = segment.allowed_ips.iter().map(|it| (it.interface.network, None));
            allowed.extend(of_nodes);
            allowed.extend(
                segment.wireguard_ip.computed().map(|address| (Cidr::host(address), Some(id))),
            );
        }
        let allowed = Prefixes::new(allowed);
        for (id, segment) in self.segments.numbered_mut() {
            segment.location_ranges.retain(|range| {
                let span = Span::new(range.interface.network);
                // Only where it begins is looked at, and later segments have no address yet.
                let is_allowed = allowed.holding(range.interface.address).any(|slot| {
                    let (_, claims) = allowed.at(slot);
                    claims.iter().any(|it| it.is_none_or(|it| it <= id))
                });
                let is_outranked = later.meeting(range.interface.network, id).is_some();
                !is_allowed && !is_outranked && !peers.meets(span)
            });
        }
    }
}

/// A segment, and the slot of a range of it.
type Last = (Option<SegmentId>, SlotId);

/// All location ranges, and for each the last segment with one that it meets.
struct Later {
    ranges: Prefixes<SegmentId>,
    /// The last segment for each range, and the slot of its range.
    last: Numbered<OfSlot, Last>,
}

impl Later {
    fn new(segments: &Segments<TopologySegment>) -> Self {
        let mut claims = Vec::new();
        for (id, segment) in segments.numbered() {
            claims.extend(segment.location_ranges.iter().map(|it| (it.interface.network, id)));
        }
        let ranges = Prefixes::new(claims);
        let own = ranges.ids().map(|slot| {
            let (_, claims) = ranges.at(slot);
            (claims.iter().copied().max(), slot)
        });
        let own: Numbered<OfSlot, Last> = Numbered::new(own.collect());
        // From what is inside to what is around it, and back: each step only once.
        let mut last = own.clone();
        for slot in ranges.ids().rev() {
            if let Some(parent) = ranges.parent(slot) {
                last[parent] = last[parent].max(last[slot]);
            }
        }
        let mut around = own;
        for slot in ranges.ids() {
            if let Some(parent) = ranges.parent(slot) {
                around[slot] = around[slot].max(around[parent]);
            }
        }
        let last = last.map_ids(|slot| last[slot].max(around[slot]));
        Self { ranges, last }
    }

    /// Returns the last segment behind this one that has a range which `range` meets, and that range.
    fn meeting(&self, range: Cidr, segment: SegmentId) -> Option<(SegmentId, Cidr)> {
        let slot = self.ranges.exactly(range)?;
        let (last, at) = self.last[slot];
        let (stronger, _) = self.ranges.at(at);
        let last = last.filter(|it| segment < *it)?;
        Some((last, stronger))
    }
}

#[cfg(test)]
mod tests;
