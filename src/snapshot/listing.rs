//! Listings: a cluster's nodes as the API lists them, page by page, on their way to a snapshot.

use serde::Deserialize;
use std::collections::BTreeMap;

use thiserror::Error;

use super::api::{Listed, Object};
use super::{Node, SIZE_LIMIT, Snapshot, SnapshotError};
use crate::diagnostic::Quoted;
use crate::name::ClusterName;

/// Nodes that were listed, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    nodes: Vec<Listed>,
    bytes: usize,
}

/// A node that Kilo no longer counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stale {
    /// Its name, as it claims.
    pub node: String,
    /// Its delay behind the time at which its cluster was seen.
    pub seconds: i64,
}

/// The reason why a response is not a page of a list of nodes.
#[derive(Debug, Error)]
pub enum PageError {
    /// Not JSON, or not that of a list.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Some other object.
    #[error("expected a NodeList, found {}", kind(.0))]
    Kind(String),
    /// A list with something else in it.
    #[error("item {index} of the list has kind {}, expected Node", Quoted(.kind))]
    Item {
        /// Counted from zero.
        index: usize,
        /// Its kind.
        kind: String,
    },
    /// A node without a name.
    #[error("item {0} of the list has no name")]
    Nameless(usize),
    /// More than a snapshot may hold.
    #[error("the nodes exceed the snapshot limit of {SIZE_LIMIT} bytes")]
    TooLarge,
}

/// As much as everything in the API has.
#[derive(Deserialize)]
struct ListKind {
    kind: String,
}

impl PageError {
    /// Returns what is wrong with JSON that is not a list. Other kinds have other fields.
    fn from_json(error: serde_json::Error, json: &[u8]) -> Self {
        match serde_json::from_slice(json) {
            Ok(ListKind { kind }) if kind != "NodeList" => Self::Kind(kind),
            _ => Self::Json(error),
        }
    }
}

impl Listing {
    /// Adds a page of `GET /api/v1/nodes` and returns where the list goes on, if it does.
    ///
    /// # Errors
    /// Anything but a whole page.
    pub fn page(&mut self, json: &[u8]) -> Result<Option<String>, PageError> {
        let mut page: Object =
            serde_json::from_slice(json).map_err(|error| PageError::from_json(error, json))?;
        let metadata = page.metadata.as_mut();
        let more = metadata.and_then(|metadata| metadata.more.take());
        if page.kind.as_deref() != Some("NodeList") {
            return Err(PageError::Kind(page.kind.unwrap_or_default()));
        }
        self.add(page)?;
        Ok(more.filter(|token| !token.is_empty()))
    }

    /// Returns how many nodes there are so far.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there is no node so far.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds the nodes of a `NodeList`, or of a `List`.
    pub(super) fn add(&mut self, list: Object) -> Result<(), PageError> {
        let is_node_list = list.kind.as_deref() == Some("NodeList");
        self.nodes.reserve(list.items.len());
        for (index, item) in list.items.into_iter().enumerate() {
            // The items of a typed list may leave their kind out.
            let kind = item.kind.as_deref();
            if kind != Some("Node") && !(is_node_list && kind.is_none()) {
                let kind = kind.unwrap_or_default().to_owned();
                return Err(PageError::Item { index, kind });
            }
            let node = item.node.ok_or(PageError::Nameless(index))?;
            self.add_node(node);
            if SIZE_LIMIT < self.bytes as u64 {
                return Err(PageError::TooLarge);
            }
        }
        Ok(())
    }

    pub(super) fn add_node(&mut self, listed: Listed) {
        self.bytes += size(&listed.node);
        self.nodes.push(listed);
    }

    /// Returns the texts that a snapshot would keep, decoded, of the nodes after the first `nodes`.
    pub fn texts_after(&self, nodes: usize) -> impl Iterator<Item = &str> {
        let added = self.nodes.iter().skip(nodes);
        added.flat_map(|listed| texts(&listed.node))
    }

    /// Returns the snapshot, with the nodes marked stale that lag more than `stale_after` seconds
    /// behind the time at which the cluster was seen, and which ones these are.
    ///
    /// `now` is the time in Unix seconds if the nodes were listed just now; a dump may be of any
    /// age.
    ///
    /// # Errors
    /// Two nodes of one name.
    pub fn snapshot(
        self,
        cluster: ClusterName,
        stale_after: u32,
        now: Option<i64>,
    ) -> Result<(Snapshot, Vec<Stale>), SnapshotError> {
        let stale_after = i64::from(stale_after);
        let times: Vec<i64> = self.nodes.iter().filter_map(|it| it.last_seen).collect();
        let seen_at = seen_at(times, stale_after, now);
        let (mut nodes, mut stale) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        for Listed {
            mut node,
            last_seen,
        } in self.nodes
        {
            let behind = last_seen
                .zip(seen_at)
                .map_or(0, |(seen, newest)| newest.saturating_sub(seen));
            if stale_after < behind {
                node.stale = true;
                stale.push(Stale {
                    node: node.name.clone(),
                    seconds: behind,
                });
            }
            nodes.push(node);
        }
        stale.sort_by(|a, b| a.node.cmp(&b.node));
        Ok((Snapshot::new(cluster, nodes)?, stale))
    }
}

/// The largest accepted difference of clocks, in seconds.
const SKEW: i64 = 60;

/// Returns the time at which a cluster was seen: the newest `last-seen` that more than half of the
/// nodes have reached. As long as more than half of the nodes are alive and honest, it is the time
/// of one of them, regardless of the claims of the others. So no node can make the others stale,
/// also in a cluster of two nodes.
///
/// If most of the nodes of a live cluster have not been seen for long, our own clock shows whether
/// the others are right. A dump may be of any age, so it cannot be compared with a clock.
fn seen_at(mut times: Vec<i64>, stale_after: i64, now: Option<i64>) -> Option<i64> {
    // Kilo reads an invalid value as zero, and no agent was there before.
    times.retain(|time| 0 < *time);
    times.sort_unstable();
    let by_most = *times.get(times.len().checked_sub(1)? / 2)?;
    let Some(now) = now else {
        return Some(by_most);
    };
    let alive = now.saturating_sub(stale_after)..=now.saturating_add(SKEW);
    // Only if most nodes are dead. A clock that is behind does not make them so.
    if *alive.start() <= by_most {
        return Some(by_most);
    }
    let newest = times.into_iter().rev().find(|time| alive.contains(time));
    Some(newest.unwrap_or(by_most))
}

/// Returns every text of a node that a snapshot keeps.
fn texts(node: &Node) -> impl Iterator<Item = &str> {
    let maps = node
        .annotations
        .iter()
        .chain(&node.labels)
        .flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    let addresses = node.addresses.iter().map(|it| it.address.as_str());
    [node.name.as_str(), node.uid.as_str()]
        .into_iter()
        .chain(node.pod_cidrs.iter().map(String::as_str))
        .chain(addresses)
        .chain(maps)
}

/// Returns about how many bytes a node has in a snapshot, what is around its texts included.
fn size(node: &Node) -> usize {
    /// The smallest number of bytes around a text.
    const AROUND: usize = 16;
    let texts = |map: &BTreeMap<String, String>| -> usize {
        let sizes = map
            .iter()
            .map(|(key, value)| key.len() + value.len() + AROUND);
        sizes.sum()
    };
    let addresses = node
        .addresses
        .iter()
        .map(|it| it.address.len() + 4 * AROUND);
    let pod_cidrs = node.pod_cidrs.iter().map(|it| it.len() + AROUND);
    let lists: usize = addresses.chain(pod_cidrs).sum();
    let own = node.name.len() + node.uid.len() + 10 * AROUND;
    texts(&node.annotations) + texts(&node.labels) + lists + own
}

/// Names the kind of an object, if it looks like a kind, because the text may be any file.
pub(super) fn kind(kind: &str) -> String {
    let is_kind = kind.starts_with(|it: char| it.is_ascii_uppercase())
        && kind.len() <= 63
        && kind.bytes().all(|it| it.is_ascii_alphabetic());
    match kind {
        "" => "an object without a kind".to_owned(),
        kind if is_kind => format!("the kind {}", Quoted(kind)),
        _ => "another kind".to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
        let (snapshot, stale) = listing
            .snapshot("east".parse().unwrap(), after, now)
            .unwrap();
        let marks: Vec<bool> = snapshot.nodes.iter().map(|it| it.stale).collect();
        assert_eq!(stale.len(), marks.iter().filter(|it| **it).count());
        marks
    }

    #[test]
    fn marks_nodes_that_kilo_no_longer_counts() {
        let times = [
            "1763600000",
            "1763600000",
            "1763600000",
            "1763599700",
            "1763599699",
            "nonsense",
            "",
        ];
        assert_eq!(
            stale(&times, 300),
            [false, false, false, false, true, true, false]
        );
        assert_eq!(
            stale(&times, 301),
            [false, false, false, false, false, true, false]
        );
    }

    #[test]
    fn a_minority_makes_nobody_stale() {
        // Two hours old, and some claim the time at which it is read.
        let old = ["1763592800", "1763592790", "1763592780"];
        let with = |claims: &[&'static str]| stale(&[claims, old.as_slice()].concat(), 300);
        for claim in [
            "1763600000",
            "1763593090",
            "1763593110",
            "9763600000",
            "9223372036854775807",
        ] {
            assert_eq!(with(&[claim]), [false; 4], "{claim}");
            assert_eq!(with(&[claim, claim]), [false; 5], "{claim}");
        }
        for claim in [
            "1",
            "0",
            "-1",
            "-9223372036854775808",
            "9223372036854775808",
        ] {
            assert_eq!(with(&[claim]), [true, false, false, false], "{claim}");
            assert_eq!(
                with(&[claim, claim]),
                [true, true, false, false, false],
                "{claim}"
            );
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
        assert_eq!(
            at(&["1863000000", "1863000400", "1863000390"]),
            [true, false, false]
        );
        assert_eq!(
            at(&["1663000000", "1663000400", "1663000390"]),
            [true, false, false]
        );
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
        let (snapshot, _) = listing
            .snapshot("east".parse().unwrap(), 300, None)
            .unwrap();
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
}
