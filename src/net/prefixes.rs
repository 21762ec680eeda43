//! Prefixes: ranges in the order of their addresses, found by the longest that holds one.
//!
//! Two ranges are disjoint or one contains the other. When sorted, a range is followed by those
//! that it contains, and the boundaries of all ranges cut the addresses into pieces in which
//! nothing changes.

use std::net::IpAddr;

use super::{Cidr, Family, merged};
use crate::id::{Id, Numbered};

mod span;

pub use span::Span;

/// The ranges of a table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfSlot {}

/// The number of a range in its table: a range has a smaller one than those that it contains.
pub type SlotId = Id<OfSlot>;

/// Claims of the ranges of a table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum OfClaim {}

/// Ranges, each with what is claimed of it.
#[derive(Clone, Debug)]
pub struct Prefixes<T> {
    slots: Numbered<OfSlot, Slot>,
    /// In the order of the ranges.
    claims: Numbered<OfClaim, T>,
}

/// One range.
#[derive(Clone, Debug)]
struct Slot {
    cidr: Cidr,
    /// Its addresses, which every step of a search compares.
    span: Span,
    /// The next wider range that holds it.
    parent: Option<SlotId>,
    /// The first of its claims. They end where those of the next range begin.
    first_claim: Id<OfClaim>,
}

/// Addresses whose longest prefix is one and the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// The addresses.
    pub span: Span,
    /// The longest prefix that holds them, if any does.
    pub slot: Option<SlotId>,
}

/// The entry of a table for some addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PrefixLook {
    /// The longest prefix that holds all of them.
    pub longest: Option<SlotId>,
    /// Whether it is the same for each address: no range begins or ends among them.
    pub is_whole: bool,
}

impl Slot {
    /// Returns whether it begins before `span`, or holds it from its beginning.
    fn precedes(&self, span: Span) -> bool {
        if self.span.family != span.family || self.span.first != span.first {
            return (self.span.family, self.span.first) < (span.family, span.first);
        }
        span.last <= self.span.last
    }
}

impl<T> Prefixes<T> {
    /// Sorts ranges; the claims of one range keep their order.
    pub fn new(claims: impl IntoIterator<Item = (Cidr, T)>) -> Self {
        let mut claims: Vec<Option<(Cidr, T)>> = claims.into_iter().map(Some).collect();
        let ranges = claims.iter().flatten().map(|it| it.0);
        let order = Order::sort(ranges.map(|it| (it.first(), it.prefix_length())));
        let sorted = order.numbers().filter_map(|it| claims.get_mut(it)?.take());
        Self::from_sorted(order.len(), sorted)
    }

    /// Takes at most `count` ranges that are sorted by family, address and length.
    pub(crate) fn from_sorted(count: usize, claims: impl Iterator<Item = (Cidr, T)>) -> Self {
        let mut prefixes = Self {
            slots: Numbered::new(Vec::with_capacity(count)),
            claims: Numbered::new(Vec::with_capacity(count)),
        };
        let mut open: Vec<SlotId> = Vec::new();
        for (cidr, claim) in claims {
            let span = Span::new(cidr);
            let first_claim = prefixes.claims.push(claim);
            if prefixes.slots.last().is_some_and(|last| last.cidr == cidr) {
                continue;
            }
            while let Some(&top) = open.last()
                && !prefixes.slots[top].span.holds(span)
            {
                open.pop();
            }
            open.push(prefixes.slots.push(Slot {
                cidr,
                span,
                parent: open.last().copied(),
                first_claim,
            }));
        }
        prefixes
    }

    /// Returns how many different ranges there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns whether no range is claimed twice.
    pub fn are_unique(&self) -> bool {
        self.slots.len() == self.claims.len()
    }

    /// Returns a range and what is claimed of it, in the order in which it was.
    pub fn at(&self, slot: SlotId) -> (Cidr, &[T]) {
        let end =
            self.slots.get(slot.index() + 1).map_or(self.claims.len(), |it| it.first_claim.index());
        let Slot { cidr, first_claim, .. } = self.slots[slot];
        let claims = self.claims.get(first_claim.index()..end);
        (cidr, claims.unwrap_or_default())
    }

    /// Returns the largest number of claims of one range.
    pub fn most_claims(&self) -> usize {
        if self.are_unique() {
            return usize::from(!self.is_empty());
        }
        self.iter().map(|(_, claims)| claims.len()).max().unwrap_or_default()
    }

    /// Returns the numbers of all ranges, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SlotId> + ExactSizeIterator + use<T> {
        self.slots.ids()
    }

    /// Returns all ranges with their claims, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Cidr, &[T])> {
        self.ids().map(|slot| self.at(slot))
    }

    /// Returns the ranges that hold `address`, the longest prefix first.
    pub fn holding(&self, address: IpAddr) -> impl Iterator<Item = SlotId> {
        self.around(Span::host(address))
    }

    /// Returns the claims of the ranges that hold `address`, those of the longest prefix first and of one
    /// range the last claim first.
    pub fn holders(&self, address: IpAddr) -> impl Iterator<Item = (Cidr, &T)> {
        self.claims_around(Span::host(address))
    }

    /// Returns the claims of the ranges that contain all of `range`, in the order of [`Self::holders`].
    pub fn containing(&self, range: Cidr) -> impl Iterator<Item = (Cidr, &T)> {
        self.claims_around(Span::new(range))
    }

    fn claims_around(&self, span: Span) -> impl Iterator<Item = (Cidr, &T)> {
        self.around(span)
            .map(|slot| self.at(slot))
            .flat_map(|(cidr, claims)| claims.iter().rev().map(move |claim| (cidr, claim)))
    }

    /// Returns the claims of the ranges that are in `range`, by address.
    pub fn inside(&self, range: Cidr) -> impl Iterator<Item = (Cidr, &T)> {
        self.within(Span::new(range))
            .map(|slot| self.at(slot))
            .flat_map(|(cidr, claims)| claims.iter().map(move |claim| (cidr, claim)))
    }

    /// Returns whether a range contains all of `range`.
    pub fn contain(&self, range: Cidr) -> bool {
        self.around(Span::new(range)).next().is_some()
    }

    /// Returns the parts of `range` that are in ranges of the table, as wide as possible.
    pub fn common(&self, range: Cidr) -> Vec<Cidr> {
        if self.contain(range) {
            return vec![range];
        }
        self.within(Span::new(range))
            .filter(|slot| self.parent(*slot).is_none())
            .map(|slot| self.at(slot).0)
            .collect()
    }

    /// Returns the ranges that hold all of `span`, the longest prefix first.
    pub fn around(&self, span: Span) -> impl Iterator<Item = SlotId> {
        let nearest = self.slots.last_before(|it| it.precedes(span));
        std::iter::successors(nearest, |slot| self.parent(*slot))
            .filter(move |slot| self.slots[*slot].span.holds(span))
    }

    /// Returns what there is to `span` with one search.
    pub fn look(&self, span: Span) -> PrefixLook {
        let nearest = self.slots.last_before(|it| it.precedes(span));
        let behind = nearest.map_or(0, |it| it.index() + 1);
        let next = self.slots.get(behind).map(|it| it.span);
        let begins = next.is_some_and(|it| it.family == span.family && it.first <= span.last);
        let mut look = PrefixLook { longest: None, is_whole: !begins };
        for slot in std::iter::successors(nearest, |slot| self.parent(*slot)) {
            let around = self.slots[slot].span;
            if around.holds(span) {
                look.longest = Some(slot);
                break;
            }
            look.is_whole &= around.family != span.family || around.last < span.first;
        }
        look
    }

    /// Returns the ranges that may begin or end among the addresses of `span`.
    pub fn across(&self, span: Span) -> impl Iterator<Item = Span> {
        let one = |address: u128| Span { first: address, last: address, ..span };
        let ends = self.around(one(span.first)).chain(self.around(one(span.last)));
        let slots = self.within(span).chain(ends);
        slots.map(|slot| self.slots[slot].span)
    }

    /// Returns the slots of the ranges that are in `span`, one equal to it included.
    pub fn within(&self, span: Span) -> impl ExactSizeIterator<Item = SlotId> + use<T> {
        let start = self.slots.partition_point(|it| it.precedes(span) && it.span != span);
        let behind = self.slots.get(start..).unwrap_or_default();
        let begins = |it: &Slot| (it.span.family, it.span.first) <= (span.family, span.last);
        // Usually there are few.
        let mut most = 1;
        while behind.get(most - 1).is_some_and(begins) {
            most *= 2;
        }
        let near = behind.get(..most).unwrap_or(behind);
        self.slots.ids_at(start..start + near.partition_point(begins))
    }

    /// Returns the ranges around `span` and then those that begin in it, found with one search.
    pub fn meeting(&self, span: Span) -> impl Iterator<Item = SlotId> {
        let nearest = self.slots.last_before(|it| it.precedes(span));
        let around = std::iter::successors(nearest, |slot| self.parent(*slot))
            .filter(move |slot| self.slots[*slot].span.holds(span));
        let behind = nearest.map_or(0, |it| it.index() + 1);
        let begins = move |slot: &SlotId| {
            let inner = self.slots[*slot].span;
            inner.family == span.family && inner.first <= span.last
        };
        let inside = self.slots.ids_at(behind..self.len()).take_while(begins);
        around.chain(inside)
    }

    /// Returns whether any range shares an address with `span`.
    pub fn meets(&self, span: Span) -> bool {
        let look = self.look(span);
        look.longest.is_some() || !look.is_whole
    }

    /// Returns the range itself, if it is there.
    pub fn exactly(&self, cidr: Cidr) -> Option<SlotId> {
        let first = self.within(Span::new(cidr)).next()?;
        (self.slots[first].cidr == cidr).then_some(first)
    }

    /// Returns the next wider range that holds that of `slot`.
    pub fn parent(&self, slot: SlotId) -> Option<SlotId> {
        self.slots[slot].parent
    }

    /// Cuts `span` into pieces, in order: what holds for one address of a piece holds for all.
    pub fn pieces(&self, span: Span) -> Vec<Piece> {
        let mut cut = PrefixCut { pieces: Vec::new(), family: span.family, next: Some(span.first) };
        let mut open: Vec<(u128, SlotId)> = Vec::new();
        let outside = self.around(span).find(|slot| self.slots[*slot].span != span);
        for slot in self.within(span) {
            let inner = self.slots[slot].span;
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

impl<T> FromIterator<(Cidr, T)> for Prefixes<T> {
    fn from_iter<I: IntoIterator<Item = (Cidr, T)>>(claims: I) -> Self {
        Self::new(claims)
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
    fn up_to(&mut self, last: u128, slot: Option<SlotId>) {
        let Some(first) = self.next.filter(|&first| first <= last) else {
            return;
        };
        let family = self.family;
        let span = Span { family, first, last };
        self.pieces.push(Piece { span, slot });
        self.next = last.checked_add(1);
    }
}

impl Prefixes<()> {
    /// Returns the fewest ranges with exactly these addresses: one of them contains each range whose addresses
    /// are all among them.
    pub fn union(ranges: impl IntoIterator<Item = Cidr>) -> Self {
        merged(ranges).into_iter().map(|it| (it, ())).collect()
    }
}

/// Returns the ranges that are in no other, in order.
pub fn widest(ranges: impl IntoIterator<Item = Cidr>) -> Vec<Cidr> {
    let sorted: Prefixes<()> = ranges.into_iter().map(|it| (it, ())).collect();
    let slots = sorted.ids().filter(|slot| sorted.parent(*slot).is_none());
    slots.map(|slot| sorted.at(slot).0).collect()
}

/// Ranges in their order, as the numbers that they had before; equal ones in the order of those.
#[derive(Debug)]
pub(crate) struct Order {
    /// Address and length in one.
    v4: Vec<(u64, usize)>,
    v6: Vec<(u128, u8, usize)>,
}

impl Order {
    /// Sorts ranges, each an address, masked or not, and a length.
    pub(crate) fn sort(ranges: impl Iterator<Item = (IpAddr, u8)>) -> Self {
        let mut order = Self { v4: Vec::with_capacity(ranges.size_hint().0), v6: Vec::new() };
        for (number, (address, length)) in ranges.enumerate() {
            match address {
                IpAddr::V4(v4) => {
                    let packed = u64::from(v4.to_bits()) << 8 | u64::from(length);
                    order.v4.push((packed, number));
                }
                IpAddr::V6(v6) => order.v6.push((v6.to_bits(), length, number)),
            }
        }
        order.v4.sort_unstable();
        order.v6.sort_unstable();
        order
    }

    /// Returns how many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns the numbers in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.v4.iter().map(|it| it.1).chain(self.v6.iter().map(|it| it.2))
    }

    /// Returns the numbers of ranges that are there more than once, each range by itself.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = Vec<usize>> {
        let v4 = self
            .v4
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|run| 1 < run.len())
            .map(|run| run.iter().map(|it| it.1).collect());
        let v6 = self.v6.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|run| 1 < run.len());
        v4.chain(v6.map(|run| run.iter().map(|it| it.2).collect()))
    }
}

#[cfg(test)]
mod tests;
