//! Nests: which of some ranges hold an address, or are in a range, however deep they are nested.

use std::net::IpAddr;

use super::Cidr;

/// Ranges, each with what is known of it. Those that are in each other are all kept.
#[derive(Clone, Debug)]
pub struct Nest<T> {
    /// By first address, the wider first, so that what is in a range follows it.
    ranges: Vec<(Cidr, T)>,
    /// The narrowest range before each that contains it.
    around: Vec<Option<usize>>,
}

impl<T> Nest<T> {
    /// Returns the ranges that hold `address`, the narrowest first.
    pub fn holders(&self, address: IpAddr) -> impl Iterator<Item = (Cidr, &T)> {
        let after = self
            .ranges
            .partition_point(|(cidr, _)| cidr.first() <= address);
        // The nearest before it is in every range that holds it.
        let mut next = after.checked_sub(1);
        std::iter::from_fn(move || {
            let index = next?;
            next = self.around.get(index).copied().flatten();
            self.ranges.get(index)
        })
        .filter(move |(cidr, _)| cidr.holds(address))
        .map(|(cidr, known)| (*cidr, known))
    }

    /// Returns the ranges that contain all of `range`, the narrowest first.
    pub fn around(&self, range: Cidr) -> impl Iterator<Item = (Cidr, &T)> {
        self.holders(range.first())
            .filter(move |(cidr, _)| cidr.contains(range))
    }

    /// Returns the ranges that are in `range`, by address.
    pub fn inside(&self, range: Cidr) -> impl Iterator<Item = (Cidr, &T)> {
        let begin = (range.first(), range.prefix_length());
        let start = self
            .ranges
            .partition_point(|(cidr, _)| (cidr.first(), cidr.prefix_length()) < begin);
        let following = self.ranges.get(start..).unwrap_or_default().iter();
        following
            .take_while(move |(cidr, _)| range.contains(*cidr))
            .map(|(cidr, known)| (*cidr, known))
    }
}

impl<T> FromIterator<(Cidr, T)> for Nest<T> {
    fn from_iter<I: IntoIterator<Item = (Cidr, T)>>(ranges: I) -> Self {
        let mut ranges: Vec<(Cidr, T)> = ranges.into_iter().collect();
        ranges.sort_by_key(|(cidr, _)| (cidr.first(), cidr.prefix_length()));
        let mut open: Vec<(Cidr, usize)> = Vec::new();
        let mut around = Vec::with_capacity(ranges.len());
        for (index, (cidr, _)) in ranges.iter().enumerate() {
            while open.last().is_some_and(|(outer, _)| !outer.contains(*cidr)) {
                open.pop();
            }
            around.push(open.last().map(|(_, index)| *index));
            open.push((*cidr, index));
        }
        Self { ranges, around }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::range;

    proptest! {
        #[test]
        fn finds_what_asking_every_range_finds(
            ranges in proptest::collection::vec(range(), 0..20),
            asked in range(),
        ) {
            let nest: Nest<usize> = ranges.iter().enumerate().map(|(i, it)| (*it, i)).collect();
            let (address, range) = (asked.first(), asked);
            let all = |is_meant: &dyn Fn(Cidr) -> bool| -> BTreeSet<usize> {
                let meant = ranges.iter().enumerate().filter(|(_, it)| is_meant(**it));
                meant.map(|(i, _)| i).collect()
            };
            let known = |found: Vec<(Cidr, &usize)>| -> BTreeSet<usize> {
                assert!(found.iter().all(|(it, i)| ranges[**i] == *it));
                found.into_iter().map(|(_, i)| *i).collect()
            };
            prop_assert_eq!(known(nest.holders(address).collect()), all(&|it| it.holds(address)));
            prop_assert_eq!(known(nest.around(range).collect()), all(&|it| it.contains(range)));
            prop_assert_eq!(known(nest.inside(range).collect()), all(&|it| range.contains(it)));
        }
    }
}
