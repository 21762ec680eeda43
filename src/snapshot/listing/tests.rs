use super::*;

/// Returns which nodes are stale, by their times; an empty one is not there.
fn stale(times: &[&str], after: u32) -> Vec<bool> {
    stale_at(None, times, after)
}

fn stale_at(now: Option<i64>, times: &[&str], after: u32) -> Vec<bool> {
    let items: Vec<String> = times
        .iter()
        .enumerate()
        .map(|(number, time)| {
            let seen = match *time {
                "" => String::new(),
                time => format!(r#""kilo.squat.ai/last-seen":"{time}""#),
            };
            format!(r#"{{"metadata":{{"name":"n{number:02}","annotations":{{{seen}}}}}}}"#)
        })
        .collect();
    let text = format!(r#"{{"kind":"NodeList","items":[{}]}}"#, items.join(","));
    let mut listing = Listing::default();
    listing.page(text.as_bytes()).unwrap();
    let (snapshot, stale) = listing.snapshot("east".parse().unwrap(), after, now).unwrap();
    let marks: Vec<bool> = snapshot.nodes.iter().map(|it| it.stale).collect();
    assert_eq!(stale.len(), marks.iter().filter(|it| **it).count());
    marks
}

#[test]
fn marks_nodes_that_kilo_no_longer_counts() {
    let times =
        ["1763600000", "1763600000", "1763600000", "1763599700", "1763599699", "nonsense", ""];
    assert_eq!(stale(&times, 300), [false, false, false, false, true, true, false]);
    assert_eq!(stale(&times, 301), [false, false, false, false, false, true, false]);
}

#[test]
fn a_minority_makes_nobody_stale() {
    // Two hours old, and some claim the time at which it is read.
    let old = ["1763592800", "1763592790", "1763592780"];
    let with = |claims: &[&'static str]| stale(&[claims, old.as_slice()].concat(), 300);
    for claim in ["1763600000", "1763593090", "1763593110", "9763600000", "9223372036854775807"] {
        assert_eq!(with(&[claim]), [false; 4], "{claim}");
        assert_eq!(with(&[claim, claim]), [false; 5], "{claim}");
    }
    for claim in ["1", "0", "-1", "-9223372036854775808", "9223372036854775808"] {
        assert_eq!(with(&[claim]), [true, false, false, false], "{claim}");
        assert_eq!(with(&[claim, claim]), [true, true, false, false, false], "{claim}");
    }
    let extremes = ["-9223372036854775808", "9223372036854775807"];
    assert_eq!(with(&extremes), [true, false, false, false, false]);
}

#[test]
fn of_two_nodes_none_decides() {
    assert_eq!(stale(&["1763600000", "1"], 300), [false, false]);
    assert_eq!(stale(&["1763600000"], 300), [false]);
    assert_eq!(stale(&["nonsense", "0"], 300), [false, false]);
    let halves = ["1763600000", "1763600001", "1763500000", "1763500001"];
    assert_eq!(stale(&halves, 300), [false; 4]);
}

#[test]
fn a_clock_knows_who_is_alive() {
    let now = Some(1_763_600_020);
    let at = |times: &[&str]| stale_at(now, times, 300);
    assert_eq!(at(&["1763600000", "9763600000"]), [false, false]);
    assert_eq!(at(&["1763600000", "1763600080"]), [false, false]);
    assert_eq!(at(&["1763600000", "1"]), [false, true]);
    // Most have long been gone.
    let gone = ["1763600000", "1763000000", "1763000000"];
    assert_eq!(at(&gone), [false, true, true]);
    // If most are of another time, then our clock is wrong.
    assert_eq!(at(&["1863000000", "1863000400", "1863000390"]), [true, false, false]);
    assert_eq!(at(&["1663000000", "1663000400", "1663000390"]), [true, false, false]);
}

/// More than half are alive, have checked in within a minute, and are honest.
#[test]
fn a_minority_decides_nothing() {
    use proptest::collection::vec;
    use proptest::prelude::*;
    const NOW: i64 = 1_763_600_000;
    let claim = || {
        prop_oneof![any::<i64>(), -2_000..2_000_i64]
            .prop_map(|it| if it.abs() < 2_000 { NOW + it } else { it })
    };
    let honest = vec(-60..=0_i64, 1..9);
    let clock = prop_oneof![Just(None), (-200..=200_i64).prop_map(|it| Some(NOW + it))];
    proptest!(|(honest in honest, claims in vec(claim(), 0..8), clock in clock)| {
        let claims = &claims[..claims.len().min(honest.len() - 1)];
        let times = honest.iter().map(|it| NOW + it).chain(claims.iter().copied());
        let written: Vec<String> = times.map(|it| it.to_string()).collect();
        let texts: Vec<&str> = written.iter().map(String::as_str).collect();
        let marks = stale_at(clock, &texts, 300);
        let (honest, claimed) = marks.split_at(honest.len());
        prop_assert!(!honest.contains(&true), "{:?}", texts);
        for (mark, claim) in claimed.iter().zip(claims) {
            prop_assert!(*mark || NOW - 360 <= *claim, "{} of {:?}", claim, texts);
        }
    });
}

#[test]
fn a_node_has_no_more_than_nodes_have() {
    let listed = |node: &str| {
        let page =
            format!(r#"{{"kind":"NodeList","items":[{{"metadata":{{"name":"a"}},{node}}}]}}"#);
        Listing::default().page(page.as_bytes())
    };
    let many = |item: &str| vec![item; 1001].join(",");
    let cidrs = listed(&format!(r#""spec":{{"podCIDRs":[{}]}}"#, many("\"\"")));
    insta::assert_snapshot!(cidrs.unwrap_err(), @"invalid length 1001, expected a list of at most 1000 items at line 1 column 3076");
    let addresses = listed(&format!(r#""status":{{"addresses":[{}]}}"#, many("{}")));
    insta::assert_snapshot!(addresses.unwrap_err(), @"invalid length 1001, expected a list of at most 1000 items at line 1 column 3079");
    assert!(listed(&format!(r#""other":[{}]"#, many("{}"))).is_ok());
}

#[test]
fn pages_add_up() {
    let mut listing = Listing::default();
    let first =
        br#"{"kind":"NodeList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"b"}}]}"#;
    assert_eq!(listing.page(first).unwrap().as_deref(), Some("x"));
    let last = br#"{"kind":"NodeList","metadata":{"continue":""},"items":[{"metadata":{"name":"a","annotations":null}}]}"#;
    assert_eq!(listing.page(last).unwrap(), None);
    let (snapshot, _) = listing.snapshot("east".parse().unwrap(), 300, None).unwrap();
    let names: Vec<&str> = snapshot.nodes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_page_is_a_list_of_nodes() {
    let refusal = |text: &str| {
        let page = Listing::default().page(text.as_bytes());
        page.unwrap_err().to_string()
    };
    insta::assert_snapshot!(refusal(r#"{"kind":"Status","status":"Failure"}"#), @"expected a NodeList, found the kind `Status`");
    insta::assert_snapshot!(refusal("{}"), @"expected a NodeList, found an object without a kind");
    insta::assert_snapshot!(refusal(r#"{"kind":"NodeList","items":[{"kind":"Pod"}]}"#), @"item 0 of the list has kind `Pod`, expected Node");
    insta::assert_snapshot!(refusal(r#"{"kind":"NodeList","items":[{"metadata":{}}]}"#), @"item 0 of the list has no name");
    insta::assert_snapshot!(refusal(r#"{"kind":"NodeList","items":[{"#), @"EOF while parsing an object at line 1 column 29");
}
