//! Spans: addresses from one to another.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use crate::net::{Cidr, Family, family};

/// Addresses of one family, both ends included.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Span {
    /// The address family.
    pub family: Family,
    /// The first, as a number.
    pub first: u128,
    /// The last, as a number.
    pub last: u128,
}

impl Span {
    /// Returns the addresses of a range.
    pub fn new(cidr: Cidr) -> Self {
        Self { family: cidr.family(), first: number(cidr.first()), last: number(cidr.last()) }
    }

    /// Returns a single address.
    pub fn host(address: IpAddr) -> Self {
        let number = number(address);
        Self { family: family(address), first: number, last: number }
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

    /// Returns whether each of its addresses is in one of these.
    pub fn is_covered_by(self, others: impl Iterator<Item = Self>) -> bool {
        let mut common: Vec<Self> = others.filter_map(|it| it.common(self)).collect();
        common.sort_by_key(|it| it.first);
        let mut next = Some(self.first);
        for it in common {
            if next.is_some_and(|next| it.first <= next && next <= it.last) {
                next = it.last.checked_add(1);
            }
        }
        next.is_none_or(|next| self.last < next)
    }

    /// Cuts it at the boundaries of these ranges.
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
        starts.iter().zip(ends).map(|(&first, last)| Self { first, last, ..self }).collect()
    }

    /// Returns whether it is a single prefix.
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

/// As a prefix if it is one, else from the first address to the last.
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
            let last = Self { first: self.last, ..*self };
            write!(formatter, "{first}-{}", last.first_address())
        }
    }
}

pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
