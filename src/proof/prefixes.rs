//! Prefixes: ranges in the order of their addresses, found by the longest that holds one.
//!
//! Two ranges are apart or one holds the other. Sorted, what a range holds follows it, and the
//! boundaries of all of them cut the addresses into pieces in each of which nothing changes.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use crate::net::{Cidr, Family, family};
pub(super) use order::Order;

mod order;

/// Ranges, each with what is claimed of it.
#[derive(Clone, Debug)]
pub struct Prefixes<T> {
    slots: Vec<Slot>,
    claims: Vec<T>,
}

/// One range.
#[derive(Clone, Debug)]
struct Slot {
    cidr: Cidr,
    /// The next wider range that holds it.
    parent: Option<usize>,
    claims: Range<usize>,
}

/// Addresses of one family, both ends included.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Span {
    /// Which kind.
    pub family: Family,
    /// The first, as a number.
    pub first: u128,
    /// The last, as a number.
    pub last: u128,
}

/// Addresses whose longest prefix is one and the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// The addresses.
    pub span: Span,
    /// The longest prefix that holds them, if any does.
    pub slot: Option<usize>,
}

/// What a table has to say of some addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Look {
    /// The longest prefix that holds all of them.
    pub longest: Option<usize>,
    /// Whether it says the same of each: nothing begins or ends among them.
    pub is_whole: bool,
}

impl Span {
    /// Returns the addresses of a range.
    pub fn of(cidr: Cidr) -> Self {
        Self {
            family: cidr.family(),
            first: number(cidr.first()),
            last: number(cidr.last()),
        }
    }

    /// Returns a single address.
    pub fn host(address: IpAddr) -> Self {
        let number = number(address);
        Self {
            family: family(address),
            first: number,
            last: number,
        }
    }

    /// Returns whether all of `inner` is in this.
    pub fn holds(self, inner: Self) -> bool {
        self.family == inner.family && self.first <= inner.first && inner.last <= self.last
    }

    /// Returns the addresses that are in both.
    pub fn common(self, other: Self) -> Option<Self> {
        let common = Self {
            family: self.family,
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        };
        (self.family == other.family && common.first <= common.last).then_some(common)
    }

    /// Cuts it wherever one of some ranges begins or ends.
    pub fn cut(self, ranges: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut starts = BTreeSet::from([self.first]);
        for inner in ranges {
            starts.insert(inner.first.max(self.first));
            if inner.last < self.last && self.first <= inner.last {
                starts.insert(inner.last + 1);
            }
        }
        let starts: Vec<u128> = starts.into_iter().collect();
        let ends = starts.iter().skip(1).map(|it| it - 1).chain([self.last]);
        let both = starts.iter().zip(ends);
        both.map(|(&first, last)| Self {
            first,
            last,
            ..self
        })
        .collect()
    }

    /// Returns whether a prefix says all of it.
    fn is_range(self) -> bool {
        let others = self.last - self.first;
        others & others.wrapping_add(1) == 0 && self.first & others == 0
    }

    /// Returns the first address.
    pub fn first_address(self) -> IpAddr {
        match (self.family, u32::try_from(self.first)) {
            (Family::V4, Ok(bits)) => IpAddr::from(bits.to_be_bytes()),
            _ => IpAddr::from(self.first.to_be_bytes()),
        }
    }
}

/// As a range where a prefix says it, else from the first to the last.
impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let first = self.first_address();
        let bits: u32 = match self.family {
            Family::V4 => 32,
            Family::V6 => 128,
        };
        let others = self.last - self.first;
        if others == 0 {
            write!(formatter, "{first}")
        } else if self.is_range() {
            write!(formatter, "{first}/{}", bits - others.count_ones())
        } else {
            let last = Self {
                first: self.last,
                ..*self
            };
            write!(formatter, "{first}-{}", last.first_address())
        }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl Slot {
    fn span(&self) -> Span {
        Span::of(self.cidr)
    }

    /// Returns whether it begins before `span`, or holds it from its beginning.
    fn precedes(&self, span: Span) -> bool {
        let begins = (self.cidr.family(), number(self.cidr.first()));
        match begins.cmp(&(span.family, span.first)) {
            Ordering::Less => true,
            Ordering::Equal => span.last <= number(self.cidr.last()),
            Ordering::Greater => false,
        }
    }
}

impl<T: Clone> Prefixes<T> {
    /// Sorts ranges; the claims of one range keep their order.
    pub fn new(claims: &[(Cidr, T)]) -> Self {
        let ranges = claims
            .iter()
            .map(|(cidr, _)| (cidr.first(), cidr.prefix_length()));
        let mut prefixes = Self {
            slots: Vec::with_capacity(claims.len()),
            claims: Vec::with_capacity(claims.len()),
        };
        let mut open: Vec<usize> = Vec::new();
        for number in Order::of(ranges).numbers() {
            let Some((cidr, claim)) = claims.get(number) else {
                continue;
            };
            let (cidr, span) = (*cidr, Span::of(*cidr));
            prefixes.claims.push(claim.clone());
            let end = prefixes.claims.len();
            if let Some(last) = prefixes.slots.last_mut()
                && last.cidr == cidr
            {
                last.claims.end = end;
                continue;
            }
            let here = prefixes.slots.len();
            while let Some(&top) = open.last()
                && !prefixes
                    .slots
                    .get(top)
                    .is_some_and(|it| it.span().holds(span))
            {
                open.pop();
            }
            prefixes.slots.push(Slot {
                cidr,
                parent: open.last().copied(),
                claims: end - 1..end,
            });
            open.push(here);
        }
        prefixes
    }
}

impl<T> Prefixes<T> {
    /// Returns how many different ranges there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns a range and what is claimed of it, in the order in which it was.
    pub fn get(&self, slot: usize) -> Option<(Cidr, &[T])> {
        let slot = self.slots.get(slot)?;
        let claims = self.claims.get(slot.claims.clone())?;
        Some((slot.cidr, claims))
    }

    /// Returns all ranges with their claims, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Cidr, &[T])> {
        (0..self.len()).filter_map(|slot| self.get(slot))
    }

    /// Returns the ranges that hold `address`, the longest prefix first.
    pub fn holding(&self, address: IpAddr) -> impl Iterator<Item = usize> {
        self.around(Span::host(address))
    }

    /// Returns the ranges that hold all of `span`, the longest prefix first.
    pub fn around(&self, span: Span) -> impl Iterator<Item = usize> {
        let behind = self.slots.partition_point(|it| it.precedes(span));
        let mut next = behind.checked_sub(1);
        std::iter::from_fn(move || {
            loop {
                let slot = next?;
                let found = self.slots.get(slot)?;
                next = found.parent;
                if found.span().holds(span) {
                    return Some(slot);
                }
            }
        })
    }

    /// Returns what there is to `span` with one search.
    pub fn look(&self, span: Span) -> Look {
        let behind = self.slots.partition_point(|it| it.precedes(span));
        let next = self.slots.get(behind).map(Slot::span);
        let begins = next.is_some_and(|it| it.family == span.family && it.first <= span.last);
        let mut look = Look {
            longest: None,
            is_whole: !begins,
        };
        let mut slot = behind.checked_sub(1);
        while let Some(found) = slot.and_then(|it| self.slots.get(it)) {
            let around = found.span();
            if around.holds(span) {
                look.longest = slot;
                break;
            }
            look.is_whole &= around.family != span.family || around.last < span.first;
            slot = found.parent;
        }
        look
    }

    /// Returns the ranges that may begin or end among the addresses of `span`.
    pub fn across(&self, span: Span) -> impl Iterator<Item = Span> {
        let one = |address: u128| Span {
            first: address,
            last: address,
            ..span
        };
        let ends = self
            .around(one(span.first))
            .chain(self.around(one(span.last)));
        let slots = self.within(span).chain(ends);
        slots.filter_map(|slot| Some(self.slots.get(slot)?.span()))
    }

    /// Returns the slots of the ranges that lie in `span`, one equal to it included.
    pub fn within(&self, span: Span) -> Range<usize> {
        let start = self
            .slots
            .partition_point(|it| it.precedes(span) && it.span() != span);
        let end = self.slots.partition_point(|it| {
            (it.cidr.family(), number(it.cidr.first())) <= (span.family, span.last)
        });
        start..end.max(start)
    }

    /// Returns whether any range shares an address with `span`.
    pub fn meets(&self, span: Span) -> bool {
        !self.within(span).is_empty() || self.around(span).next().is_some()
    }

    /// Returns the range itself, if it is there.
    pub fn exactly(&self, cidr: Cidr) -> Option<usize> {
        let start = self.within(Span::of(cidr)).start;
        self.slots.get(start).filter(|it| it.cidr == cidr)?;
        Some(start)
    }

    /// Returns the next wider range that holds that of `slot`.
    pub fn parent(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot)?.parent
    }

    /// Cuts `span` into pieces, in order: what holds for one address of a piece holds for all.
    pub fn pieces(&self, span: Span) -> Vec<Piece> {
        let mut cut = Cut {
            pieces: Vec::new(),
            family: span.family,
            next: Some(span.first),
        };
        let mut open: Vec<(u128, usize)> = Vec::new();
        let outside = self
            .around(span)
            .find(|&slot| self.slots.get(slot).is_some_and(|it| it.span() != span));
        for slot in self.within(span) {
            let Some(inner) = self.slots.get(slot).map(Slot::span) else {
                continue;
            };
            while let Some(&(last, done)) = open.last()
                && last < inner.first
            {
                cut.up_to(last, Some(done));
                open.pop();
            }
            if let Some(before) = inner.first.checked_sub(1) {
                cut.up_to(before, open.last().map(|it| it.1).or(outside));
            }
            open.push((inner.last, slot));
        }
        while let Some((last, done)) = open.pop() {
            cut.up_to(last, Some(done));
        }
        cut.up_to(span.last, outside);
        cut.pieces
    }
}

/// A cut in progress.
struct Cut {
    pieces: Vec<Piece>,
    family: Family,
    /// The first address that is in no piece yet; none behind the very last.
    next: Option<u128>,
}

impl Cut {
    /// Ends a piece at `last`, unless something shorter was there to the end.
    fn up_to(&mut self, last: u128, slot: Option<usize>) {
        let Some(first) = self.next.filter(|&first| first <= last) else {
            return;
        };
        let family = self.family;
        let span = Span {
            family,
            first,
            last,
        };
        self.pieces.push(Piece { span, slot });
        self.next = last.checked_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    fn table(ranges: &[Cidr]) -> Prefixes<usize> {
        let claims: Vec<(Cidr, usize)> = ranges.iter().copied().zip(0..).collect();
        Prefixes::new(&claims)
    }

    fn longest(ranges: &[Cidr], address: IpAddr) -> Option<Cidr> {
        let holding = ranges.iter().filter(|it| it.holds(address));
        holding.max_by_key(|it| it.prefix_length()).copied()
    }

    #[test]
    fn the_ends_of_all_addresses_are_addresses() {
        let all = table(&[
            cidr("::/0"),
            cidr("ffff::/16"),
            cidr("0.0.0.0/0"),
            cidr("::/128"),
        ]);
        let pieces = |text| all.pieces(Span::of(cidr(text)));
        assert_eq!(pieces("::/0").len(), 3);
        assert_eq!(pieces("::/0").last().unwrap().span.last, u128::MAX);
        assert_eq!(pieces("255.0.0.0/8").len(), 1);
        assert_eq!(all.exactly(cidr("::/128")), Some(2));
        assert_eq!(all.exactly(cidr("::/127")), None);
        assert_eq!(all.parent(2), Some(1));
    }

    #[test]
    fn a_span_is_shown_as_short_as_it_can_be() {
        let span = |family, first, last| {
            let span = Span {
                family,
                first,
                last,
            };
            span.to_string()
        };
        assert_eq!(span(Family::V4, 256, 511), "0.0.1.0/24");
        assert_eq!(span(Family::V4, 257, 511), "0.0.1.1-0.0.1.255");
        assert_eq!(span(Family::V4, 9, 9), "0.0.0.9");
        assert_eq!(span(Family::V6, 0, u128::MAX), "::/0");
        assert_eq!(Span::of(cidr("0.0.0.0/0")).to_string(), "0.0.0.0/0");
    }

    fn ranges() -> impl Strategy<Value = Vec<Cidr>> {
        let range = (0u32..256, 24u8..=32, any::<bool>()).prop_map(|(bits, length, six)| {
            if six {
                cidr(&format!("::{bits:x}/{}", length + 96))
            } else {
                cidr(&format!("{}/{length}", Ipv4Addr::from(bits)))
            }
        });
        prop::collection::vec(range, 0..30)
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_range(ranges in ranges(), asked in ranges(), bits in 0u32..300) {
            let prefixes = table(&ranges);
            for address in [IpAddr::from(Ipv4Addr::from(bits)), IpAddr::from(u128::from(bits).to_be_bytes())] {
                let found = prefixes.holding(address).next().and_then(|it| prefixes.get(it));
                prop_assert_eq!(found.map(|it| it.0), longest(&ranges, address));
            }
            for asked in asked {
                let span = Span::of(asked);
                prop_assert_eq!(prefixes.meets(span), ranges.iter().any(|it| it.overlaps(asked)));
                prop_assert_eq!(prefixes.look(span).longest, prefixes.around(span).next());
                prop_assert_eq!(prefixes.exactly(asked).is_some(), ranges.contains(&asked));
                let inner = prefixes.within(span).filter_map(|it| prefixes.get(it));
                let inner: usize = inner.map(|it| it.1.len()).sum();
                prop_assert_eq!(inner, ranges.iter().filter(|it| asked.contains(**it)).count());
                let around = prefixes.around(span).filter_map(|it| prefixes.get(it));
                let around: usize = around.map(|it| it.1.len()).sum();
                prop_assert_eq!(around, ranges.iter().filter(|it| it.contains(asked)).count());
                let mut next = span.first;
                let pieces = prefixes.pieces(span);
                prop_assert!(!prefixes.look(span).is_whole || pieces.len() == 1);
                for piece in pieces {
                    prop_assert!(prefixes.look(piece.span).is_whole);
                    prop_assert_eq!(piece.span.first, next);
                    next = piece.span.last + 1;
                    for number in [piece.span.first, piece.span.last] {
                        let mut at = piece.span;
                        at.first = number;
                        let found = piece.slot.and_then(|it| prefixes.get(it)).map(|it| it.0);
                        prop_assert_eq!(found, longest(&ranges, at.first_address()));
                    }
                }
                prop_assert_eq!(next, span.last + 1);
            }
        }
    }
}
