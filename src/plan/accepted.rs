//! Accepted ranges: a target accepts only ranges whose addresses are all in each of its lists.

use crate::mesh::Range;
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, merged};
use crate::place::Place;

/// The lists of a target by one of its memberships; at least one.
pub(super) struct Accepted<'f> {
    lists: Vec<AcceptedList<'f>>,
}

struct AcceptedList<'f> {
    ranges: Prefixes<()>,
    first: Option<&'f Range>,
}

/// Returns what of some ranges a target with these lists takes, as the fewest ranges.
pub fn accepted_of<'f>(
    lists: impl Iterator<Item = &'f [Range]>,
    ranges: impl Iterator<Item = Cidr>,
) -> Vec<Cidr> {
    match Accepted::new(lists) {
        Some(accepted) => merged(ranges.flat_map(|it| accepted.common(it))),
        None => merged(ranges),
    }
}

impl<'f> Accepted<'f> {
    /// Returns the lists, if there are any.
    pub(super) fn new(lists: impl Iterator<Item = &'f [Range]>) -> Option<Self> {
        let lists: Vec<AcceptedList> = lists
            .map(|ranges| AcceptedList {
                ranges: Prefixes::union(ranges.iter().map(|range| range.cidr)),
                first: ranges.first(),
            })
            .collect();
        (!lists.is_empty()).then_some(Self { lists })
    }

    /// Returns whether every list takes a range.
    pub(super) fn takes(&self, range: Cidr) -> bool {
        self.lists.iter().all(|list| list.ranges.contain(range))
    }

    /// Returns what of a range every list takes.
    pub(super) fn common(&self, range: Cidr) -> Vec<Cidr> {
        self.lists.iter().fold(vec![range], |left, list| {
            left.into_iter().flat_map(|it| list.ranges.common(it)).collect()
        })
    }

    /// Returns the first list that does not take a range, by where it begins.
    pub(super) fn refusal(&self, range: Cidr) -> Option<&Place> {
        let refusing = self.lists.iter().find(|list| !list.ranges.contain(range))?;
        Some(&refusing.first?.place)
    }
}
