//! Location ranges: what Kilo drops of them, given the Peers.

use super::prefixes::{Prefixes, Span};
use crate::kilo::own::{Own, OwnSegment};
use crate::kilo::peer::translation::AllowedIp;
use crate::net::Cidr;

impl Own {
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
