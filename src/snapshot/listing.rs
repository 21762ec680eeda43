//! Listings: a cluster's nodes as the API lists them, page by page, on their way to a snapshot.

use serde::Deserialize;
use std::collections::BTreeMap;

use thiserror::Error;

use super::api::Object;
use super::{Node, SIZE_LIMIT, Snapshot, SnapshotError};
use crate::diagnostic::Quoted;
use crate::name::ClusterName;

/// Nodes that were listed, in the order in which they came.
#[derive(Debug, Default)]
pub struct Listing {
    nodes: Vec<Listed>,
    bytes: usize,
}

/// A node of a list.
#[derive(Debug)]
struct Listed {
    node: Node,
    /// In Unix seconds, if its agent says.
    last_seen: Option<i64>,
}

/// A node that Kilo no longer counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stale {
    /// Its name, as it claims.
    pub node: String,
    /// How far it lags behind the newest of its cluster.
    pub seconds: i64,
}

/// Why an answer is no page of a list of nodes.
#[derive(Debug, Error)]
pub enum PageError {
    /// Not JSON, or not that of a list.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Some other object.
    #[error("expected a NodeList, found {}", kind(.0))]
    Kind(String),
    /// A list with something else in it.
    #[error("item {index} of the list is of kind {}, not a Node", Quoted(.kind))]
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
    #[error("the nodes have more than the {SIZE_LIMIT} bytes that a snapshot may hold")]
    TooLarge,
}

/// As much as everything in the API has.
#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl PageError {
    /// Returns what is wrong with JSON that is no list. Other kinds have other fields.
    fn of(error: serde_json::Error, json: &[u8]) -> Self {
        match serde_json::from_slice(json) {
            Ok(Kind { kind }) if kind != "NodeList" => Self::Kind(kind),
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
            serde_json::from_slice(json).map_err(|error| PageError::of(error, json))?;
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

    /// Adds a node, and when it was last seen.
    pub(super) fn add_node(&mut self, (node, last_seen): (Node, Option<i64>)) {
        self.bytes += size(&node);
        self.nodes.push(Listed { node, last_seen });
    }

    /// Returns the snapshot, with the nodes marked stale that lag more than `stale_after` seconds
    /// behind the newest, and which ones these are.
    ///
    /// `now` is the time in Unix seconds, if there is a clock: who claims to come from the future is
    /// then not the newest.
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
        let newest = now
            .and_then(|now| newest_by(now, &times))
            .or_else(|| newest(times, stale_after));
        let (mut nodes, mut stale) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        for Listed {
            mut node,
            last_seen,
        } in self.nodes
        {
            let behind = last_seen
                .zip(newest)
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

/// How far clocks may differ, in seconds.
const SKEW: i64 = 60;

/// Returns the newest time that is none of the future, if there is any.
fn newest_by(now: i64, times: &[i64]) -> Option<i64> {
    let times = times.iter().copied();
    times.filter(|&time| time <= now.saturating_add(SKEW)).max()
}

/// Returns the newest time that at least half of the times are not far behind.
///
/// One node that claims to come from the future does not make the others stale.
fn newest(mut times: Vec<i64>, stale_after: i64) -> Option<i64> {
    times.sort_unstable();
    let half = times.len() / 2;
    let is_behind = |seen: i64, newest: i64| stale_after < newest.saturating_sub(seen);
    times
        .iter()
        .rev()
        .copied()
        .find(|&newest| times.partition_point(|&seen| is_behind(seen, newest)) <= half)
}

/// Returns about how many bytes a node has in a snapshot, what is around its texts included.
fn size(node: &Node) -> usize {
    /// What is around a text, at the least.
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

/// Says of which kind something is.
pub(super) fn kind(kind: &str) -> String {
    match kind {
        "" => "an object without a kind".to_owned(),
        kind => format!("the kind {}", Quoted(kind)),
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
                format!(r#"{{"metadata":{{"name":"n{number}","annotations":{{{seen}}}}}}}"#)
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
            "1763599999",
            "1763599700",
            "1763599699",
            "nonsense",
            "",
        ];
        assert_eq!(stale(&times, 300), [false, false, false, true, true, false]);
        assert_eq!(stale(&["1763600000", "1"], 300), [false, true]);
        assert_eq!(stale(&["1763600000", "1763599699"], 301), [false, false]);
    }

    #[test]
    fn a_node_from_the_future_makes_nobody_stale() {
        let times = ["9763600000", "1763600000", "1763599990", "1763590000"];
        assert_eq!(stale(&times, 300), [false, false, false, true]);
    }

    #[test]
    fn a_clock_knows_the_future_from_the_past() {
        let now = Some(1_763_600_020);
        let at = |times: &[&str]| stale_at(now, times, 300);
        assert_eq!(at(&["1763600000", "9763600000"]), [false, false]);
        assert_eq!(at(&["1763600000", "1763600080"]), [false, false]);
        // Most have long been gone.
        let gone = ["1763600000", "1763000000", "1763000000"];
        assert_eq!(at(&gone), [false, true, true]);
        // If all are of the future, then our clock is wrong.
        assert_eq!(
            at(&["1863000000", "1863000400", "1863000390"]),
            [true, false, false]
        );
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
        let told = |text: &str| {
            let page = Listing::default().page(text.as_bytes());
            page.unwrap_err().to_string()
        };
        insta::assert_snapshot!(told(r#"{"kind":"Status","status":"Failure"}"#), @"expected a NodeList, found the kind `Status`");
        insta::assert_snapshot!(told("{}"), @"expected a NodeList, found an object without a kind");
        insta::assert_snapshot!(told(r#"{"kind":"NodeList","items":[{"kind":"Pod"}]}"#), @"item 0 of the list is of kind `Pod`, not a Node");
        insta::assert_snapshot!(told(r#"{"kind":"NodeList","items":[{"metadata":{}}]}"#), @"item 0 of the list has no name");
        insta::assert_snapshot!(told(r#"{"kind":"NodeList","items":[{"#), @"EOF while parsing an object at line 1 column 29");
    }
}
