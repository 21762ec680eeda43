//! Prefixes: ranges in the order of their addresses, found by the longest that holds one.
//!
//! Two ranges are disjoint or one contains the other. When sorted, a range is followed by those
//! that it contains, and the boundaries of all ranges cut the addresses into pieces in which
//! nothing changes.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::ops::Range;

use crate::net::{Cidr, Family};
use span::number;

pub(crate) use order::Order;
pub use span::Span;

mod order;
mod span;

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

/// Addresses whose longest prefix is one and the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// The addresses.
    pub span: Span,
    /// The longest prefix that holds them, if any does.
    pub slot: Option<usize>,
}

/// The entry of a table for some addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PrefixLook {
    /// The longest prefix that holds all of them.
    pub longest: Option<usize>,
    /// Whether it is the same for each address: no range begins or ends among them.
    pub is_whole: bool,
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
    pub fn look(&self, span: Span) -> PrefixLook {
        let behind = self.slots.partition_point(|it| it.precedes(span));
        let next = self.slots.get(behind).map(Slot::span);
        let begins = next.is_some_and(|it| it.family == span.family && it.first <= span.last);
        let mut look = PrefixLook {
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

    /// Returns the slots of the ranges that are in `span`, one equal to it included.
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
        let mut cut = PrefixCut {
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
struct PrefixCut {
    pieces: Vec<Piece>,
    family: Family,
    /// The first address that is in no piece yet; none behind the very last.
    next: Option<u128>,
}

impl PrefixCut {
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

/// Returns the ranges that are in no other, in order.
pub fn widest(ranges: impl IntoIterator<Item = Cidr>) -> Vec<Cidr> {
    let claims: Vec<(Cidr, ())> = ranges.into_iter().map(|it| (it, ())).collect();
    let sorted = Prefixes::new(&claims);
    let slots = (0..sorted.len()).filter(|slot| sorted.parent(*slot).is_none());
    slots.filter_map(|slot| Some(sorted.get(slot)?.0)).collect()
}

#[cfg(test)]
mod tests;
