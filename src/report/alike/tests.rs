//! Alike clusters in small networks of arrows.

use super::*;

/// Returns the rows of arrows in words such as `a b 1`, even if there are few.
fn folded_rows(arrows: &str) -> Vec<String> {
    let arrows = arrows.split(", ").map(|it| {
        let mut words = it.split(' ');
        let mut word = || words.next().unwrap();
        Arrow { from: word(), to: word(), label: word() }
    });
    let arrows: Vec<Arrow<&str>> = arrows.collect();
    let rows = folded_above(&arrows, 0);
    let shown = rows.iter().map(|it| {
        let (from, to) = (it.from.join("+"), it.to.join("+"));
        format!("{from} {to} {} {}", it.label, it.number())
    });
    shown.collect()
}

#[test]
fn clusters_with_the_same_arrows_are_alike() {
    for (arrows, expected) in [
        ("a h 1, b h 1", &["a+b h 1 2"][..]),
        ("a h 1, b h 2", &["a h 1 1", "b h 2 1"]),
        ("a h 1, h b 1", &["a h 1 1", "h b 1 1"]),
        ("a h 1, h a 2, h b 2, b h 1", &["a+b h 1 2", "h a+b 2 2"]),
        ("a h 1, b h 1, a k 2, b k 2", &["a+b h 1 2", "a+b k 2 2"]),
        ("a h 1, b h 1, b c 1", &["a h 1 1", "b h 1 1", "b c 1 1"]),
        ("a b 1, b a 1", &["a b 1 1", "b a 1 1"]),
        ("a b 1, b a 2", &["a b 1 1", "b a 2 1"]),
        ("a b 1, b c 1, c a 1, b a 1, c b 1, a c 1", &["a+b+c a+b+c 1 6"]),
        ("a b 1, c d 1", &["a b 1 1", "c d 1 1"]),
        ("a a 1, b b 1, a h 1, b h 1", &["a+b a+b 1 2", "a+b h 1 2"]),
        ("a a 1, b b 2, a h 1, b h 1", &["a a 1 0", "b b 2 0", "a h 1 1", "b h 1 1"]),
    ] {
        assert_eq!(folded_rows(arrows), expected, "{arrows}");
    }
}

#[test]
fn few_rows_stay_apart() {
    let few: Vec<(u8, usize)> = (0..FEW).map(|it| (1, it)).collect();
    assert_eq!(rows(few.clone()).len(), FEW);
    let more = rows(few.into_iter().chain([(2, FEW)]));
    assert_eq!(more, [(1, (0..FEW).collect()), (2, vec![FEW])]);
}

#[test]
fn keys_stay_in_their_order() {
    let groups = grouped([("b", 1), ("a", 2), ("b", 3)]);
    assert_eq!(groups, [("b", vec![1, 3]), ("a", vec![2])]);
}
