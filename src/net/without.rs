//! Subtraction: what stays of a range if parts are cut out of it.

use super::Cidr;

impl Cidr {
    /// Returns the fewest ranges that hold every address of this one except those in `holes`, in
    /// order of address.
    #[must_use]
    pub fn without<'h>(self, holes: impl IntoIterator<Item = &'h Self>) -> Vec<Self> {
        let mut left = Vec::new();
        let met = holes.into_iter().copied().filter(|it| it.overlaps(self));
        cut(self, &met.collect::<Vec<_>>(), &mut left);
        left
    }
}

/// Adds what stays of `range`, given the holes that meet it.
///
/// A half without a hole stays whole. The two halves of a range that is split never both stay
/// whole, so that no two results could be one range.
fn cut(range: Cidr, holes: &[Cidr], left: &mut Vec<Cidr>) {
    if holes.is_empty() {
        left.push(range);
    } else if !holes.iter().any(|hole| hole.contains(range)) {
        for half in range.parts(1) {
            let met = holes.iter().copied().filter(|it| it.overlaps(half));
            cut(half, &met.collect::<Vec<_>>(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::range;

    fn without(range: &str, holes: &[&str]) -> Vec<String> {
        let holes: Vec<Cidr> = holes.iter().map(|it| it.parse().unwrap()).collect();
        let range: Cidr = range.parse().unwrap();
        let left = range.without(&holes).into_iter();
        left.map(|it| it.to_string()).collect()
    }

    #[test]
    fn a_host_is_cut_out_and_the_prefixes_around_it_stay() {
        assert_eq!(
            without("10.50.0.0/29", &["10.50.0.5/32"]),
            ["10.50.0.0/30", "10.50.0.4/32", "10.50.0.6/31"]
        );
        assert_eq!(
            without("fd00::/126", &["fd00::/128", "fd00::3/128"]),
            ["fd00::1/128", "fd00::2/128"]
        );
        assert_eq!(without("10.0.0.0/8", &["10.64.0.0/10"]), ["10.0.0.0/10", "10.128.0.0/9"]);
    }

    #[test]
    fn what_is_elsewhere_changes_nothing_and_what_is_around_leaves_nothing() {
        assert_eq!(without("10.0.0.0/16", &["10.1.0.1/32", "::/0"]), ["10.0.0.0/16"]);
        assert_eq!(without("10.0.0.0/16", &["10.0.0.0/8"]), [""; 0]);
        assert_eq!(without("10.0.0.9/32", &["10.0.0.9/32"]), [""; 0]);
        assert_eq!(
            without("0.0.0.0/0", &["255.255.255.255/32"]).len(),
            32,
            "one prefix of each length"
        );
    }

    proptest! {
        #[test]
        fn it_keeps_exactly_the_other_addresses_in_the_fewest_ranges(
            whole in range(),
            holes in proptest::collection::vec(range(), 0..8),
            asked in range(),
        ) {
            let left = whole.without(&holes);
            // Every end of a range is where something could be off by one.
            let ends = holes.iter().chain([&whole, &asked]).chain(&left);
            for address in ends.flat_map(|it| [it.first(), it.last()]) {
                let stays = whole.holds(address) && !holes.iter().any(|it| it.holds(address));
                let held = left.iter().filter(|it| it.holds(address)).count();
                prop_assert_eq!(held, usize::from(stays), "{}", address);
            }
            for hole in &holes {
                prop_assert!(left.iter().all(|it| !it.overlaps(*hole)));
            }
            for pair in left.windows(2) {
                prop_assert!(pair[0].last() < pair[1].first(), "in order");
                let both = pair[0].widened(pair[0].prefix_length().saturating_sub(1)).unwrap();
                let are_one = pair[0].prefix_length() == pair[1].prefix_length() && both.contains(pair[1]);
                prop_assert!(!are_one || both == pair[0], "{} and {} are one range", pair[0], pair[1]);
            }
        }

        #[test]
        fn the_order_of_holes_makes_no_difference(
            whole in range(),
            holes in proptest::collection::btree_set(range(), 0..8),
        ) {
            let reversed: Vec<Cidr> = holes.iter().rev().copied().collect();
            let one_by_one = holes.iter().fold(BTreeSet::from([whole]), |left, hole| {
                left.into_iter().flat_map(|it| it.without([hole])).collect()
            });
            let left = whole.without(&holes);
            prop_assert_eq!(&left, &whole.without(&reversed));
            prop_assert_eq!(left, one_by_one.into_iter().collect::<Vec<_>>());
        }
    }
}
