use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::testing::range;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn table(ranges: &[Cidr]) -> Prefixes<usize> {
    let claims: Vec<(Cidr, usize)> = ranges.iter().copied().zip(0..).collect();
    Prefixes::new(claims)
}

fn longest(ranges: &[Cidr], address: IpAddr) -> Option<Cidr> {
    let holding = ranges.iter().filter(|it| it.holds(address));
    holding.max_by_key(|it| it.prefix_length()).copied()
}

#[test]
fn the_ends_of_all_addresses_are_addresses() {
    let all = table(&[cidr("::/0"), cidr("ffff::/16"), cidr("0.0.0.0/0"), cidr("::/128")]);
    let pieces = |text| all.pieces(Span::new(cidr(text)));
    assert_eq!(pieces("::/0").len(), 3);
    assert_eq!(pieces("::/0").last().unwrap().span.last, u128::MAX);
    assert_eq!(pieces("255.0.0.0/8").len(), 1);
    let last = all.exactly(cidr("::/128")).unwrap();
    assert_eq!(last.index(), 2);
    assert_eq!(all.exactly(cidr("::/127")), None);
    assert_eq!(all.parent(last).map(SlotId::index), Some(1));
}

#[test]
fn a_span_is_shown_as_short_as_it_can_be() {
    let span = |family, first, last| {
        let span = Span { family, first, last };
        span.to_string()
    };
    assert_eq!(span(Family::V4, 256, 511), "0.0.1.0/24");
    assert_eq!(span(Family::V4, 257, 511), "0.0.1.1-0.0.1.255");
    assert_eq!(span(Family::V4, 9, 9), "0.0.0.9");
    assert_eq!(span(Family::V6, 0, u128::MAX), "::/0");
    assert_eq!(Span::new(cidr("0.0.0.0/0")).to_string(), "0.0.0.0/0");
}

fn ranges() -> impl Strategy<Value = Vec<Cidr>> {
    prop::collection::vec(range(), 0..30)
}

proptest! {
    #[test]
    fn agrees_with_looking_at_every_range(ranges in ranges(), asked in ranges(), bits in 0u32..600) {
        let prefixes = table(&ranges);
        for address in [IpAddr::from(Ipv4Addr::from(bits)), IpAddr::from(u128::from(bits).to_be_bytes())] {
            let found = prefixes.holding(address).next().map(|it| prefixes.at(it));
            prop_assert_eq!(found.map(|it| it.0), longest(&ranges, address));
        }
        for asked in asked {
            let span = Span::new(asked);
            prop_assert_eq!(prefixes.meets(span), ranges.iter().any(|it| it.overlaps(asked)));
            prop_assert_eq!(prefixes.look(span).longest, prefixes.around(span).next());
            prop_assert_eq!(prefixes.exactly(asked).is_some(), ranges.contains(&asked));
            let around: Vec<SlotId> = prefixes.around(span).collect();
            let inside = prefixes.within(span).filter(|it| !around.contains(it));
            let met: Vec<SlotId> = around.iter().copied().chain(inside).collect();
            prop_assert_eq!(prefixes.meeting(span).collect::<Vec<_>>(), met);
            let inner: usize = prefixes.within(span).map(|it| prefixes.at(it)).map(|it| it.1.len()).sum();
            prop_assert_eq!(inner, ranges.iter().filter(|it| asked.contains(**it)).count());
            let around: usize = prefixes.around(span).map(|it| prefixes.at(it)).map(|it| it.1.len()).sum();
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
                    let found = piece.slot.map(|it| prefixes.at(it).0);
                    prop_assert_eq!(found, longest(&ranges, at.first_address()));
                }
            }
            prop_assert_eq!(next, span.last + 1);
        }
    }
}

#[test]
fn a_span_is_covered_if_each_address_is_in_another() {
    let span = |range: &str| Span::new(range.parse().unwrap());
    let covers = |ranges: &[&str]| {
        let all = ranges.iter().map(|it| span(it));
        span("10.0.0.0/16").is_covered_by(all)
    };
    assert!(covers(&["10.0.128.0/17", "10.0.0.0/17"]));
    assert!(covers(&["10.0.0.0/8"]));
    assert!(covers(&["10.0.0.0/17", "10.0.64.0/18", "10.0.128.0/17"]));
    assert!(!covers(&["10.0.0.0/17", "10.0.192.0/18"]));
    assert!(!covers(&["10.0.128.0/17"]));
    assert!(!covers(&["fd00::/16"]));
    assert!(!covers(&[]));
    let all = span("::/0");
    assert!(all.is_covered_by([all].into_iter()));
}

proptest! {
    #[test]
    fn claims_are_those_that_asking_every_range_finds(ranges in ranges(), asked in range()) {
        let table: Prefixes<usize> = ranges.iter().copied().zip(0..).collect();
        let all = |is_meant: &dyn Fn(Cidr) -> bool| -> BTreeSet<usize> {
            let meant = ranges.iter().enumerate().filter(|(_, it)| is_meant(**it));
            meant.map(|(i, _)| i).collect()
        };
        let known = |found: Vec<(Cidr, &usize)>| -> BTreeSet<usize> {
            assert!(found.iter().all(|(it, i)| ranges[**i] == *it));
            found.into_iter().map(|(_, i)| *i).collect()
        };
        let address = asked.first();
        prop_assert_eq!(known(table.holders(address).collect()), all(&|it| it.holds(address)));
        prop_assert_eq!(known(table.containing(asked).collect()), all(&|it| it.contains(asked)));
        prop_assert_eq!(known(table.inside(asked).collect()), all(&|it| asked.contains(it)));
        prop_assert_eq!(table.contain(asked), ranges.iter().any(|it| it.contains(asked)));
        let common = table.common(asked);
        prop_assert_eq!(common.is_empty(), !ranges.iter().any(|it| it.overlaps(asked)));
        for part in &common {
            prop_assert!(asked.contains(*part) && table.contain(*part));
            prop_assert!(*part == asked || ranges.contains(part));
            prop_assert!(common.iter().all(|it| it == part || !it.overlaps(*part)));
        }
    }
}
