//! Covers: which of some ranges holds an address, in the time of a binary search.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Cidr;

/// Ranges, each with what is known of it. Of nested ranges the widest is kept, of equal ones the
/// first.
#[derive(Clone, Debug)]
pub struct Cover<T> {
    /// Disjoint, by first address.
    widest: BTreeMap<IpAddr, (Cidr, T)>,
}

impl<T> Cover<T> {
    /// Returns the range that holds `address`, and what is known of it.
    pub fn holder(&self, address: IpAddr) -> Option<(Cidr, &T)> {
        let (_, (cidr, known)) = self.widest.range(..=address).next_back()?;
        cidr.holds(address).then_some((*cidr, known))
    }

    /// Returns the first range that shares an address with `range`, and what is known of it.
    pub fn meeting(&self, range: Cidr) -> Option<(Cidr, &T)> {
        let inside = || {
            let (_, (cidr, known)) = self.widest.range(range.first()..=range.last()).next()?;
            Some((*cidr, known))
        };
        self.holder(range.first()).or_else(inside)
    }

    /// Returns what of `range` it holds.
    pub fn common(&self, range: Cidr) -> Vec<Cidr> {
        match self.holder(range.first()) {
            Some((cidr, _)) if cidr.contains(range) => vec![range],
            _ => {
                let inside = self.widest.range(range.first()..=range.last());
                inside.map(|(_, (cidr, _))| *cidr).collect()
            }
        }
    }

    /// Returns whether it holds no address at all.
    pub fn is_empty(&self) -> bool {
        self.widest.is_empty()
    }
}

impl<T> FromIterator<(Cidr, T)> for Cover<T> {
    fn from_iter<I: IntoIterator<Item = (Cidr, T)>>(ranges: I) -> Self {
        let mut ranges: Vec<(Cidr, T)> = ranges.into_iter().collect();
        // Stable, so that the first of equal ranges stays the first.
        ranges.sort_by_key(|(cidr, _)| (cidr.first(), cidr.prefix_length()));
        ranges.dedup_by(|later, earlier| earlier.0.contains(later.0));
        Self {
            widest: ranges.into_iter().map(|it| (it.0.first(), it)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::range;

    proptest! {
        #[test]
        fn finds_what_asking_every_range_finds(
            ranges in proptest::collection::vec(range(), 0..20),
            asked in range(),
        ) {
            let cover: Cover<usize> = ranges.iter().enumerate().map(|(i, it)| (*it, i)).collect();
            let (address, range) = (asked.first(), asked);
            let found = cover.holder(address);
            prop_assert_eq!(found.is_some(), ranges.iter().any(|it| it.holds(address)));
            prop_assert!(found.is_none_or(|(it, &i)| it.holds(address) && ranges[i] == it));
            let met = cover.meeting(range);
            prop_assert_eq!(met.is_some(), ranges.iter().any(|it| it.overlaps(range)));
            prop_assert!(met.is_none_or(|(it, &i)| it.overlaps(range) && ranges[i] == it));
            let common = cover.common(range);
            prop_assert_eq!(common.is_empty(), met.is_none());
            for part in common {
                prop_assert!(range.contains(part) && ranges.iter().any(|it| it.contains(part)));
                prop_assert!(part == range || ranges.contains(&part));
            }
        }
    }
}
