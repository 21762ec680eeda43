//! Node dumps: what `kubectl get nodes -o json` (or `yaml`) prints, made into a snapshot.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use super::{Address, AddressKind, Node, Snapshot, SnapshotError};
use crate::diagnostic::Quoted;
use crate::name::ClusterName;

/// What begins the annotations that Kilo reads and writes.
const KILO: &str = "kilo.squat.ai/";

/// When the agent was last seen, in Unix seconds.
const LAST_SEEN: &str = "kilo.squat.ai/last-seen";

/// What changes all the time without meaning anything to a mesh.
const VOLATILE: [&str; 2] = [LAST_SEEN, "kilo.squat.ai/discovered-endpoints"];

/// How far a node may lag behind the newest of its cluster before Kilo has long dropped it.
const STALE_AFTER_SECONDS: i64 = 5 * 60;

/// Why a text is no dump of nodes.
#[derive(Debug, Error)]
pub enum DumpError {
    /// Not JSON, though it begins like it.
    #[error("it is not the JSON of a node list: {0}")]
    Json(#[from] serde_json::Error),
    /// Not YAML.
    #[error("it is not the YAML of a node list: {}", first_line(.0))]
    Yaml(String),
    /// Some other object.
    #[error("expected a NodeList, a List of Nodes or a Node, as `kubectl get nodes -o json` prints, found {}", kind(.0))]
    Kind(String),
    /// A list with something else in it.
    #[error("item {index} of the list is of kind {}, not a Node", Quoted(.kind))]
    Item {
        /// Counted from zero.
        index: usize,
        /// Its kind.
        kind: String,
    },
    /// A page of a longer list.
    #[error(
        "the list goes on (it has a continue token); get it whole, as `kubectl get nodes` does"
    )]
    Incomplete,
    /// No node in it.
    #[error("the list has no node; an empty snapshot would take the cluster out of its mesh")]
    Empty,
    /// A node without a name.
    #[error("item {0} of the list has no name")]
    Nameless(usize),
    /// Not a consistent set of nodes.
    #[error(transparent)]
    Nodes(#[from] SnapshotError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    kind: Option<String>,
    metadata: Option<Metadata>,
    items: Option<Vec<Self>>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    labels: Option<BTreeMap<String, Option<String>>>,
    annotations: Option<BTreeMap<String, Option<String>>>,
    #[serde(rename = "continue")]
    more: Option<String>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(rename = "podCIDR")]
    pod_cidr: Option<String>,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Status {
    addresses: Option<Vec<StatusAddress>>,
}

#[derive(Deserialize)]
struct StatusAddress {
    #[serde(default)]
    address: String,
    #[serde(default, rename = "type")]
    kind: String,
}

/// Makes the snapshot of `cluster` from a dump: a `NodeList`, a `List` of Nodes, or one Node.
///
/// # Errors
/// Anything else, also a list that is empty or not whole.
pub fn snapshot(cluster: ClusterName, text: &str) -> Result<Snapshot, DumpError> {
    let objects = nodes(parse(text)?)?;
    if objects.is_empty() {
        return Err(DumpError::Empty);
    }
    let newest = newest(objects.iter().filter_map(last_seen).collect());
    let nodes = objects
        .into_iter()
        .enumerate()
        .map(|(index, object)| node(object, newest).ok_or(DumpError::Nameless(index)))
        .collect::<Result<_, _>>()?;
    Ok(Snapshot::new(cluster, nodes)?)
}

fn parse(text: &str) -> Result<Object, DumpError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return Ok(serde_json::from_str(text)?);
    }
    // A machine wrote it, so its size is no sign of malice, but no honest text has more nodes than
    // characters: aliases that multiply are still refused.
    let size = text.len().max(1 << 20);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 2 * size,
            max_nodes: size,
            max_total_scalar_bytes: size,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| DumpError::Yaml(error.to_string()))
}

fn nodes(object: Object) -> Result<Vec<Object>, DumpError> {
    match object.kind.as_deref() {
        Some("Node") => return Ok(vec![object]),
        Some("NodeList" | "List") => {}
        other => return Err(DumpError::Kind(other.unwrap_or_default().to_owned())),
    }
    let token = object.metadata.and_then(|metadata| metadata.more);
    if token.is_some_and(|token| !token.is_empty()) {
        return Err(DumpError::Incomplete);
    }
    let is_node_list = object.kind.as_deref() == Some("NodeList");
    let items = object.items.unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        // The items of a typed list may leave their kind out.
        let kind = item.kind.as_deref();
        if kind != Some("Node") && !(is_node_list && kind.is_none()) {
            let kind = kind.unwrap_or_default().to_owned();
            return Err(DumpError::Item { index, kind });
        }
    }
    Ok(items)
}

/// Returns the newest time that at least half of the times are not far behind.
///
/// One node that claims to come from the future does not make the others stale.
fn newest(mut times: Vec<i64>) -> Option<i64> {
    times.sort_unstable();
    let half = times.len() / 2;
    times
        .iter()
        .rev()
        .copied()
        .find(|&newest| times.partition_point(|&seen| is_behind(seen, newest)) <= half)
}

fn is_behind(seen: i64, newest: i64) -> bool {
    STALE_AFTER_SECONDS < newest.saturating_sub(seen)
}

/// Returns `None` for a node without a name.
fn node(object: Object, newest: Option<i64>) -> Option<Node> {
    let stale = last_seen(&object)
        .zip(newest)
        .is_some_and(|(seen, newest)| is_behind(seen, newest));
    let metadata = object.metadata?;
    let mut annotations = texts(metadata.annotations);
    annotations.retain(|key, _| key.starts_with(KILO) && !VOLATILE.contains(&key.as_str()));
    Some(Node {
        addresses: object.status.map(addresses).unwrap_or_default(),
        annotations,
        carried_over: false,
        labels: texts(metadata.labels),
        name: metadata.name.filter(|name| !name.is_empty())?,
        pod_cidrs: object.spec.map(pod_cidrs).unwrap_or_default(),
        position: 0,
        stale,
        uid: metadata.uid.unwrap_or_default(),
    })
}

/// Returns when a node's agent says it was last there; Kilo reads nonsense as zero.
fn last_seen(object: &Object) -> Option<i64> {
    let annotations = object.metadata.as_ref()?.annotations.as_ref()?;
    let text = annotations.get(LAST_SEEN)?.as_deref().unwrap_or_default();
    Some(text.parse().unwrap_or(0))
}

fn texts(map: Option<BTreeMap<String, Option<String>>>) -> BTreeMap<String, String> {
    map.unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key, value.unwrap_or_default()))
        .collect()
}

fn pod_cidrs(spec: Spec) -> Vec<String> {
    match spec.pod_cidrs {
        Some(cidrs) if !cidrs.is_empty() => cidrs,
        _ => spec
            .pod_cidr
            .into_iter()
            .filter(|cidr| !cidr.is_empty())
            .collect(),
    }
}

fn addresses(status: Status) -> Vec<Address> {
    status
        .addresses
        .unwrap_or_default()
        .into_iter()
        .filter_map(|StatusAddress { address, kind }| {
            let kind = match kind.as_str() {
                "InternalIP" => AddressKind::InternalIP,
                "ExternalIP" => AddressKind::ExternalIP,
                _ => return None,
            };
            Some(Address { address, kind })
        })
        .collect()
}

fn kind(kind: &str) -> String {
    match kind {
        "" => "an object without a kind".to_owned(),
        kind => format!("the kind {}", Quoted(kind)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(text: &str) -> Result<Snapshot, DumpError> {
        snapshot("east".parse().unwrap(), text)
    }

    fn error(text: &str) -> String {
        dump(text).unwrap_err().to_string()
    }

    #[test]
    fn keeps_kilo_s_annotations_but_the_volatile_ones() {
        let node = &dump(
            "
kind: Node
metadata:
  name: a
  annotations:
    kilo.squat.ai/key: k
    kilo.squat.ai/last-seen: '1763600000'
    kilo.squat.ai/discovered-endpoints: '{}'
    other.io/key: x
spec: { podCIDR: 10.42.0.0/24 }
status: { addresses: [{ type: Hostname, address: a }, { type: InternalIP, address: 10.0.0.1 }] }
",
        )
        .unwrap()
        .nodes[0];
        assert_eq!(
            node.annotations.keys().collect::<Vec<_>>(),
            ["kilo.squat.ai/key"]
        );
        assert_eq!(node.pod_cidrs, ["10.42.0.0/24"]);
        assert_eq!(node.addresses.len(), 1);
        assert!(!node.stale);
    }

    /// Returns which nodes are stale, by their times; an empty one is not there.
    fn stale(times: &[&str]) -> Vec<bool> {
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
        dump(&text)
            .unwrap()
            .nodes
            .iter()
            .map(|it| it.stale)
            .collect()
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
        assert_eq!(stale(&times), [false, false, false, true, true, false]);
        assert_eq!(stale(&["1763600000", "1"]), [false, true]);
    }

    #[test]
    fn a_node_from_the_future_makes_nobody_stale() {
        let times = ["9763600000", "1763600000", "1763599990", "1763590000"];
        assert_eq!(stale(&times), [false, false, false, true]);
    }

    #[test]
    fn refuses_what_is_no_whole_list_of_nodes() {
        insta::assert_snapshot!(error(r#"{"nodes":[]}"#), @"expected a NodeList, a List of Nodes or a Node, as `kubectl get nodes -o json` prints, found an object without a kind");
        insta::assert_snapshot!(error("kind: Peer"), @"expected a NodeList, a List of Nodes or a Node, as `kubectl get nodes -o json` prints, found the kind `Peer`");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","items":[]}"#), @"the list has no node; an empty snapshot would take the cluster out of its mesh");
        insta::assert_snapshot!(error(r#"{"kind":"List","items":[{"kind":"Pod"}]}"#), @"item 0 of the list is of kind `Pod`, not a Node");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","metadata":{"continue":"x"},"items":[]}"#), @"the list goes on (it has a continue token); get it whole, as `kubectl get nodes` does");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","items":[{"#), @"it is not the JSON of a node list: EOF while parsing an object at line 1 column 29");
    }
}
