use super::limit::Passing::{self, Names, Ranges, UpTo};
use super::*;

#[test]
fn a_missing_limit_accepts_everything_and_a_missing_permission_nothing() {
    let names = |names: &[&str]| {
        Names(Some(names.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>()))
    };
    let ranges = |texts: &[&str]| Ranges(texts.iter().map(|it| it.parse().unwrap()).collect());
    let wide = ranges(&["10.0.0.0/8"]);
    let narrow = ranges(&["10.1.0.0/16"]);
    assert!(wide.includes(&narrow) && !narrow.includes(&wide));
    assert!(names(&["a", "b"]).includes(&names(&["a"])));
    assert!(!names(&["a"]).includes(&names(&["a", "b"])));
    assert!(!names(&["a"]).includes(&Names(None)) && Names(None).includes(&names(&["a"])));
    assert!(!names(&[]).includes(&names(&["shop"])));
    assert!(Passing::Peers(None).includes(&Passing::Peers(None)));
}

#[test]
fn a_number_that_ends_is_compared_before_and_after_its_end() {
    let until = |most: u64, day: &str, then: u64| UpTo(most, Some((day.parse().unwrap(), then)));
    let (short, long) = (until(2, "2027-01-31", 1), until(2, "2027-02-01", 1));
    assert!(!short.includes(&long) && long.includes(&short));
    assert!(!short.includes(&UpTo(2, None)) && UpTo(2, None).includes(&short));
    // A stricter level that ends is looser than one that does not.
    assert!(!UpTo(0, None).includes(&until(0, "2027-01-31", 1)));
    assert!(until(0, "2027-01-31", 1).includes(&UpTo(0, None)));
    assert!(!until(0, "2027-01-31", 1).includes(&UpTo(1, None)));
}
