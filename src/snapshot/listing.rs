//! Listings: a cluster's nodes as the API lists them, page by page, on their way to a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use thiserror::Error;

use super::api::{ListedNode, NodeObject};
use super::handshakes::HandshakeKeys;
use super::{Node, SIZE_LIMIT, Snapshot, SnapshotError};
use crate::diagnostic::Quoted;
use crate::name::ClusterName;
use crate::string_map::StringMap;

/// The most handshakes of the nodes of a cluster that are kept. Of further nodes, the reports are not read.
const HANDSHAKES: usize = 1_000_000;

/// Nodes that were listed, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    nodes: Vec<ListedNode>,
    bytes: usize,
    /// The number of reported handshakes.
    handshakes: usize,
    /// Whether it is one node, and not a list.
    pub is_single: bool,
}

/// A node that Kilo no longer counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stale {
    /// Its name, as it claims.
    pub node: String,
    /// Its delay behind the time at which its cluster was seen.
    pub seconds: i64,
}

/// The times of the last heartbeats of agents, as their nodes report them, and the time at which the list began. All are in
/// Unix seconds.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    times: BTreeMap<String, i64>,
    now: i64,
}

impl Heartbeats {
    /// Returns the heartbeats of these nodes, in a list that began at the time `now`.
    pub fn new(times: impl IntoIterator<Item = (String, i64)>, now: i64) -> Self {
        Self { times: times.into_iter().collect(), now }
    }

    /// Returns the time at which the list began.
    pub fn listed_at(&self) -> i64 {
        self.now
    }

    /// Returns the time at which the agent of a node was last seen, by its own clock.
    pub fn seen_at(&self, node: &str) -> Option<i64> {
        self.times.get(node).copied()
    }

    /// Returns how long before the list the agent of a node was last seen, in seconds. Kilo reads a missing time as zero.
    pub fn lateness(&self, node: &str) -> i64 {
        self.now.saturating_sub(self.times.get(node).copied().unwrap_or_default())
    }

    /// Returns how long before the list most agents were last seen, in seconds: the age of a dump, if its agents were alive.
    pub fn age(&self) -> Option<i64> {
        let seen_at = by_most(self.times.values().copied().collect())?;
        Some(self.now.saturating_sub(seen_at))
    }

    /// Returns whether the agent of a node was seen in the last minute.
    pub fn is_fresh(&self, node: &str) -> bool {
        (-SKEW..=60).contains(&self.lateness(node))
    }

    /// Returns whether most of the agents were seen in the last minute, except those of some nodes: the clock is right then.
    pub fn are_fresh_without(&self, nodes: &BTreeSet<&str>) -> bool {
        let others: Vec<&str> =
            self.times.keys().map(String::as_str).filter(|it| !nodes.contains(it)).collect();
        let fresh = others.iter().filter(|it| self.is_fresh(it)).count();
        others.len() < 2 * fresh
    }

    /// Returns whether at least half of the agents were seen in the last minute. One silent node of two does not make the
    /// clock doubtful.
    pub fn agree_with_the_clock(&self) -> bool {
        let fresh = self.times.keys().filter(|it| self.is_fresh(it)).count();
        self.times.len() <= 2 * fresh
    }
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
        let mut page: NodeObject =
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

    /// Returns the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().map(|it| &it.node)
    }

    /// Returns the heartbeats of the agents, in nodes that were listed at the time `now`.
    pub fn heartbeats(&self, now: i64) -> Heartbeats {
        let times = self.nodes.iter().filter_map(|it| Some((it.node.name.clone(), it.last_seen?)));
        Heartbeats::new(times, now)
    }

    /// Returns the keys with which agents report handshakes, by the names of their nodes.
    pub fn handshakes(&self) -> BTreeMap<String, HandshakeKeys> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|it| Some((it.node.name.clone(), it.handshakes.clone()?))).collect()
    }

    /// Adds the nodes of a `NodeList`, or of a `List`.
    pub(super) fn add(&mut self, list: NodeObject) -> Result<(), PageError> {
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

    pub(super) fn add_node(&mut self, mut listed: ListedNode) {
        self.bytes += size(&listed.node);
        self.handshakes += listed.handshakes.as_ref().map_or(0, HandshakeKeys::len);
        if HANDSHAKES < self.handshakes {
            listed.handshakes = None;
        }
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
        for ListedNode { mut node, last_seen, .. } in self.nodes {
            let behind =
                last_seen.zip(seen_at).map_or(0, |(seen, newest)| newest.saturating_sub(seen));
            if stale_after < behind {
                node.stale = true;
                stale.push(Stale { node: node.name.clone(), seconds: behind });
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
fn seen_at(times: Vec<i64>, stale_after: i64, now: Option<i64>) -> Option<i64> {
    let by_most = by_most(times.clone())?;
    let Some(now) = now else {
        return Some(by_most);
    };
    let alive = now.saturating_sub(stale_after)..=now.saturating_add(SKEW);
    // Only if most nodes are dead. A clock that is behind does not make them so.
    if *alive.start() <= by_most {
        return Some(by_most);
    }
    let newest = times.into_iter().filter(|time| alive.contains(time)).max();
    Some(newest.unwrap_or(by_most))
}

/// Returns the newest of some times that more than half of the nodes have reached.
fn by_most(mut times: Vec<i64>) -> Option<i64> {
    // Kilo reads an invalid value as zero, and no agent was there before.
    times.retain(|time| 0 < *time);
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}

/// Returns every text of a node that a snapshot keeps.
fn texts(node: &Node) -> impl Iterator<Item = &str> {
    let maps =
        node.annotations.iter().chain(node.labels.iter()).flat_map(|(key, value)| [key, value]);
    [node.name.as_str(), node.uid.as_str()]
        .into_iter()
        .chain(node.pod_cidrs.iter().map(String::as_str))
        .chain(node.addresses.iter().map(|it| it.address.as_str()))
        .chain(maps)
}

/// Returns about how many bytes a node has in a snapshot, what is around its texts included.
fn size(node: &Node) -> usize {
    /// The smallest number of bytes around a text.
    const AROUND: usize = 16;
    let texts = |map: &StringMap| -> usize {
        map.iter().map(|(key, value)| key.len() + value.len() + AROUND).sum()
    };
    let addresses = node.addresses.iter().map(|it| it.address.len() + 4 * AROUND);
    let pod_cidrs = node.pod_cidrs.iter().map(|it| it.len() + AROUND);
    let lists: usize = addresses.chain(pod_cidrs).sum();
    let own = node.name.len() + node.uid.len() + 10 * AROUND;
    let plugin = node.plugin.as_ref().map_or(0, |it| (3 + it.pod_addresses.len()) * 4 * AROUND);
    texts(&node.annotations) + texts(&node.labels) + lists + own + plugin
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
mod tests;
