use proptest::prelude::*;

use super::*;

/// Returns who carries the parts, if only some of the segments are there: those whose bit is set.
fn carriers_of(sizes: &[usize], parts: usize, there: u32) -> Vec<usize> {
    let mut numbers = 0..;
    let tiers: Vec<Tier> = sizes
        .iter()
        .map(|size| {
            let tier = numbers.by_ref().take(*size);
            tier.map(|it| Some(it).filter(|it| there >> it & 1 == 1)).collect()
        })
        .collect();
    carriers(&tiers, parts)
}

fn moved(before: &[usize], after: &[usize]) -> usize {
    before.iter().zip(after).filter(|(a, b)| a != b).count()
}

/// Returns how many parts one loss moves at most, by how many segments were lost before. A return is
/// the same, read backwards.
fn most_moved(sizes: &[usize], parts: usize) -> Vec<usize> {
    let all: usize = sizes.iter().sum();
    let count = |there: u32| usize::try_from(there.count_ones()).unwrap();
    let every = 1u32 << all;
    let chosen: Vec<Vec<usize>> = (0..every)
        .map(
            |there| {
                if count(there) < parts { Vec::new() } else { carriers_of(sizes, parts, there) }
            },
        )
        .collect();
    let mut most = vec![0; all - parts];
    for there in (0..every).filter(|it| parts < count(*it)) {
        let lost = all - count(there);
        let before = &chosen[there as usize];
        assert_eq!(before.len(), parts);
        for one in (0..all).filter(|it| there >> it & 1 == 1) {
            let after = &chosen[(there & !(1 << one)) as usize];
            most[lost] = most[lost].max(moved(before, after));
        }
    }
    most
}

/// Every loss and return, while enough segments are there for all parts.
#[test]
fn one_loss_moves_one_part_and_later_ones_few() {
    // The segments of the tiers, the parts, and the limit by what was lost before.
    let cases: [(&[usize], usize, &[usize]); 10] = [
        (&[10], 1, &[1; 9]),
        (&[10], 2, &[1; 8]),
        (&[6], 4, &[1, 2]),
        (&[8], 4, &[1, 1, 2, 2]),
        (&[10], 4, &[1, 1, 2, 2, 2, 3]),
        (&[10], 8, &[1, 2]),
        (&[12], 8, &[1, 2, 2, 3]),
        (&[3, 3], 2, &[1, 2, 2, 2]),
        (&[4, 3, 3], 4, &[1, 2, 2, 3, 3, 3]),
        (&[8, 4], 8, &[1, 2, 2, 3]),
    ];
    for (sizes, parts, limits) in cases {
        assert_eq!(most_moved(sizes, parts), limits, "{sizes:?} {parts}");
    }
}

#[test]
fn the_first_have_the_first_parts_and_the_next_replace_the_lost() {
    let all = (1 << 10) - 1;
    assert_eq!(carriers_of(&[10], 4, all), [0, 1, 2, 3]);
    assert_eq!(carriers_of(&[10], 4, all & !1), [4, 1, 2, 3]);
    assert_eq!(carriers_of(&[10], 4, all & !2), [0, 9, 2, 3]);
    assert_eq!(carriers_of(&[10], 4, all & !0b1100), [0, 1, 5, 8]);
    assert_eq!(carriers_of(&[10], 1, all & !0b111), [3]);
    // A worse tier waits until the better one is used up.
    assert_eq!(carriers_of(&[5, 5], 4, all & !2), [0, 4, 2, 3]);
    assert_eq!(carriers_of(&[5, 5], 4, all & !0b11), [4, 9, 2, 3]);
    assert_eq!(carriers_of(&[2, 3, 5], 4, all & !0b1_0001), [5, 1, 2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_part_has_a_carrier_of_its_own_that_is_there(
        tiers in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 0..40), 1..5),
        exponent in 0usize..8,
    ) {
        let mut numbers = 0..;
        let tiers: Vec<Tier> = tiers
            .iter()
            .map(|tier| tier.iter().zip(numbers.by_ref()).map(|(is_there, it)| is_there.then_some(it)).collect())
            .collect();
        let there: Vec<usize> = tiers.iter().flatten().copied().flatten().collect();
        let parts = 1 << exponent;
        prop_assume!(parts <= there.len());
        let chosen = carriers(&tiers, parts);
        prop_assert_eq!(chosen.len(), parts);
        prop_assert!(chosen.iter().all(|it| there.contains(it)));
        let mut distinct = chosen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), parts);
        // The best keep their parts as long as they are there.
        let best: Vec<Option<usize>> = tiers.iter().flatten().copied().take(parts).collect();
        for (part, best) in best.into_iter().enumerate().filter(|it| it.1.is_some()) {
            prop_assert_eq!(chosen.get(part).copied(), best);
        }
    }
}
