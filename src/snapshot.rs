//! Snapshots: the values that the nodes of a cluster report, as kept in git.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::diagnostic::{Quoted, plain_json};
use crate::name::ClusterName;
use crate::place::Place;
use crate::schema::{self, pattern};

mod api;
pub mod difference;
pub mod dump;
pub mod listing;
pub mod stray;

/// The version of the format; a reader knows exactly its own.
pub const API_VERSION: &str = "kilo-clustermesh.io/v1";

/// The kind of a snapshot file.
pub const KIND: &str = "NodeSnapshot";

/// The largest snapshot that is read, in bytes.
pub const SIZE_LIMIT: u64 = 64 << 20;

/// The nodes of one cluster, by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Snapshot {
    /// The cluster.
    pub cluster: ClusterName,
    /// Prefixes of labels that its nodes have and that were left out.
    pub dropped_labels: Vec<String>,
    /// Labels under prefixes to leave out that were kept, because a mesh uses them.
    pub kept_labels: Vec<String>,
    /// Its nodes, sorted by unique name.
    pub nodes: Vec<Node>,
}

/// A node. Its values are not checked here.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Node {
    /// Internal and external addresses, in the API's order.
    #[serde(default, deserialize_with = "objects")]
    pub addresses: Vec<Address>,
    /// Kilo's annotations.
    #[serde(default, deserialize_with = "without_duplicates")]
    pub annotations: BTreeMap<String, String>,
    /// Its Kilo agent was away, so the annotations are those of an earlier snapshot.
    #[serde(default, skip_serializing_if = "is_false")]
    pub carried_over: bool,
    /// The labels, without those under the prefixes in `droppedLabels` that are not in `keptLabels`.
    #[serde(default, deserialize_with = "without_duplicates")]
    pub labels: BTreeMap<String, String>,
    /// The name.
    pub name: String,
    /// Its index in its file.
    #[serde(skip)]
    pub position: usize,
    /// The pod CIDRs that Kubernetes assigned.
    #[schemars(example = ["10.42.0.0/24"])]
    #[serde(default, rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    /// Kilo ignores the node, because its heartbeat is too old.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stale: bool,
    /// The UID of the object. The node cannot change it.
    #[serde(default)]
    pub uid: String,
}

/// An address that a node reports.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The address as text.
    #[schemars(example = &"203.0.113.10")]
    pub address: String,
    /// Whether the address is internal or external.
    #[serde(rename = "type")]
    pub kind: AddressKind,
}

/// Whether an address is internal or external.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum AddressKind {
    /// An address inside the cluster.
    InternalIP,
    /// An address that is reachable from outside.
    ExternalIP,
}

/// The reason why a text is not the snapshot of a cluster.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Not JSON, or not these fields.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version of this program.
    #[error("unsupported apiVersion {}; this version reads `{API_VERSION}`", Quoted(.0))]
    Version(String),
    /// Something else than a snapshot.
    #[error("unsupported kind {}, expected `{KIND}`; create snapshots with `clustermesh snapshot \
        CLUSTER --from FILE`", Quoted(.0))]
    Kind(String),
    /// Nodes as the API server lists them.
    #[error("not a snapshot, but nodes as `kubectl get nodes` prints them")]
    NodeList,
    /// Another cluster's file.
    #[error("it contains cluster {}, but the file is named after `{expected}`", Quoted(.found))]
    Cluster {
        /// The cluster in the file.
        found: String,
        /// The cluster of the file's name.
        expected: ClusterName,
    },
    /// One name for two nodes.
    #[error("duplicate node name {}", Quoted(.0))]
    DuplicateNode(String),
}

/// The nodes of one cluster, as `clustermesh snapshot` writes them to `snapshots/<cluster>.json`.
///
/// The values are copied from the API and not checked here.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NodeSnapshot", example = example())]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SnapshotFields {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The name of the cluster, which is also the name of the file.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    cluster: String,
    /// Prefixes of labels that the nodes have and that were left out, because `snapshot.dropLabels` in
    /// the config lists them.
    #[schemars(example = ["feature.node.kubernetes.io/"])]
    #[serde(default)]
    dropped_labels: Vec<String>,
    /// Labels under the prefixes in `snapshot.dropLabels` that were not left out, because the
    /// `nodeSelector` or `topologyLabel` of a mesh uses them.
    #[schemars(example = ["feature.node.kubernetes.io/network-sriov.capable"])]
    #[serde(default)]
    kept_labels: Vec<String>,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// Its nodes, sorted by unique name.
    #[serde(deserialize_with = "objects")]
    nodes: Vec<Node>,
}

/// The same to write, in the order of its keys.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSnapshot<'a> {
    api_version: &'a str,
    cluster: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    dropped_labels: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    kept_labels: &'a [String],
    kind: &'a str,
    nodes: &'a [Node],
}

/// An object, which serde by itself would read from a list of its fields too.
struct UniqueObject<T>(T);

/// The part of a file that shows whether it was meant as a snapshot.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotHeader {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl SnapshotError {
    /// Returns whether the text is not JSON at all, so that it could not be read.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Json(error) if !error.is_data())
    }
}

impl Snapshot {
    /// Returns a snapshot of `nodes`, sorted.
    ///
    /// # Errors
    /// Two nodes of one name.
    pub fn new(cluster: ClusterName, mut nodes: Vec<Node>) -> Result<Self, SnapshotError> {
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in nodes.windows(2) {
            if let [first, second] = pair
                && first.name == second.name
            {
                return Err(SnapshotError::DuplicateNode(first.name.clone()));
            }
        }
        Ok(Self {
            cluster,
            dropped_labels: Vec::new(),
            kept_labels: Vec::new(),
            nodes,
        })
    }

    /// Leaves out the labels under these prefixes, except the `used` ones, and remembers both: which
    /// prefixes there were, and which labels are complete although they are under a prefix. What is
    /// complete depends on no node.
    #[must_use]
    pub fn without_labels(mut self, prefixes: &[String], used: &BTreeSet<&str>) -> Self {
        let is_under = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
        let kept = used.iter().filter(|key| is_under(key));
        self.kept_labels = kept.map(|key| (*key).to_owned()).collect();
        let mut dropped: BTreeSet<String> = self.dropped_labels.into_iter().collect();
        for node in &mut self.nodes {
            node.labels.retain(|key, _| {
                let prefix = prefixes
                    .iter()
                    .find(|prefix| key.starts_with(*prefix))
                    .filter(|_| !used.contains(key.as_str()));
                dropped.extend(prefix.cloned());
                prefix.is_none()
            });
        }
        self.dropped_labels = dropped.into_iter().collect();
        self
    }

    /// Returns the prefix under which a label was left out, if any node had it.
    pub fn dropped(&self, key: &str) -> Option<&str> {
        if self.kept_labels.iter().any(|kept| kept == key) {
            return None;
        }
        let prefixes = self.dropped_labels.iter().map(String::as_str);
        prefixes.into_iter().find(|prefix| key.starts_with(prefix))
    }

    /// Reads the snapshot file of `cluster`.
    ///
    /// # Errors
    /// Anything but a snapshot of that cluster in this version, complete and without surplus.
    pub fn read(cluster: &ClusterName, text: &str) -> Result<Self, SnapshotError> {
        let file: SnapshotFields = match serde_json::from_str(text) {
            Ok(UniqueObject(file)) => file,
            Err(error) => return Err(other_version(text).unwrap_or(SnapshotError::Json(error))),
        };
        check_header(&file.api_version, &file.kind)?;
        if file.cluster != cluster.as_str() {
            return Err(SnapshotError::Cluster {
                found: file.cluster,
                expected: cluster.clone(),
            });
        }
        let mut nodes = file.nodes;
        for (position, node) in nodes.iter_mut().enumerate() {
            node.position = position;
        }
        Ok(Self {
            dropped_labels: file.dropped_labels,
            kept_labels: file.kept_labels,
            ..Self::new(cluster.clone(), nodes)?
        })
    }

    /// Returns the file's text: one way to write it, so that a diff shows what changed.
    ///
    /// # Errors
    /// None that these types can cause.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(&WrittenSnapshot {
            api_version: API_VERSION,
            cluster: self.cluster.as_str(),
            dropped_labels: &self.dropped_labels,
            kept_labels: &self.kept_labels,
            kind: KIND,
            nodes: &self.nodes,
        })?;
        text.push('\n');
        Ok(plain_json(text))
    }

    /// Returns the node of a name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        let position = self.nodes.binary_search_by(|it| it.name.as_str().cmp(name));
        self.nodes.get(position.ok()?)
    }

    /// Returns where in the snapshot file called `source` the node at `position` stands.
    pub fn place(source: &Arc<str>, position: usize) -> Place {
        Place::document(source, 0).key("nodes").index(position)
    }
}

/// Returns the JSON Schema of a snapshot file.
pub fn schema() -> Schema {
    schema::of_input::<SnapshotFields>()
}

/// A snapshot of one node.
fn example() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "cluster": "east",
        "kind": KIND,
        "nodes": [{
            "addresses": [
                { "address": "10.0.1.1", "type": "InternalIP" },
                { "address": "203.0.113.10", "type": "ExternalIP" },
            ],
            "annotations": {
                "kilo.squat.ai/endpoint": "203.0.113.10:51820",
                "kilo.squat.ai/key": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
                "kilo.squat.ai/wireguard-ip": "10.4.0.1/16",
            },
            "labels": { "kubernetes.io/hostname": "east-1" },
            "name": "east-1",
            "podCIDRs": ["10.42.0.0/24"],
            "uid": "7b0f2c1e-6d60-4f9c-9f0b-0b6f2f3f5a11",
        }],
    })
}

/// An unknown field may belong to another version, so the version is reported first.
fn other_version(text: &str) -> Option<SnapshotError> {
    if stray::is_node_list(text) {
        return Some(SnapshotError::NodeList);
    }
    let header: SnapshotHeader = serde_json::from_str(text).ok()?;
    check_header(&header.api_version, &header.kind).err()
}

fn check_header(api_version: &str, kind: &str) -> Result<(), SnapshotError> {
    if kind != KIND {
        return Err(SnapshotError::Kind(kind.to_owned()));
    }
    if api_version != API_VERSION {
        return Err(SnapshotError::Version(api_version.to_owned()));
    }
    Ok(())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Reads a list of objects.
fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<UniqueObject<T>>::deserialize(deserializer)?;
    Ok(objects
        .into_iter()
        .map(|UniqueObject(value)| value)
        .collect())
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(access))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// Reads a map whose keys are all different; JSON itself lets the last one win.
fn without_duplicates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    struct Unique;

    impl<'de> Visitor<'de> for Unique {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            formatter.write_str("a map of texts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = access.next_entry::<String, String>()? {
                match map.entry(key) {
                    Entry::Vacant(place) => drop(place.insert(value)),
                    Entry::Occupied(known) => {
                        let message = format!("duplicate key {}", Quoted(known.key()));
                        return Err(A::Error::custom(message));
                    }
                }
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Unique)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Snapshot, SnapshotError> {
        Snapshot::read(&"east".parse().unwrap(), text)
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn text_round_trips() {
        let text = r#"{
  "apiVersion": "kilo-clustermesh.io/v1",
  "cluster": "east",
  "kind": "NodeSnapshot",
  "nodes": [
    {
      "addresses": [
        {
          "address": "192.168.1.1",
          "type": "InternalIP"
        }
      ],
      "annotations": {
        "kilo.squat.ai/key": "k"
      },
      "labels": {},
      "name": "a",
      "podCIDRs": [
        "10.42.0.0/24"
      ],
      "stale": true,
      "uid": "1"
    }
  ]
}
"#;
        assert_eq!(read(text).unwrap().to_json().unwrap(), text);
    }

    #[test]
    fn nothing_is_hidden_from_a_reviewer() {
        let node = Node {
            name: "a\u{202e}b\u{e0041}\u{1b}".to_owned(),
            ..Node::default()
        };
        let snapshot = Snapshot::new("east".parse().unwrap(), vec![node]).unwrap();
        let text = snapshot.to_json().unwrap();
        assert!(text.contains(r#""a\u202eb\udb40\udc41\u001b""#), "{text}");
        assert_eq!(read(&text).unwrap(), snapshot);
    }

    #[test]
    fn says_what_is_wrong() {
        let header =
            r#""apiVersion":"kilo-clustermesh.io/v1","cluster":"east","kind":"NodeSnapshot""#;
        insta::assert_snapshot!(error("{}"), @"unsupported kind ``, expected `NodeSnapshot`; create snapshots with `clustermesh snapshot CLUSTER --from FILE`");
        insta::assert_snapshot!(error(r#"{"apiVersion":"kilo-clustermesh.io/v2","kind":"NodeSnapshot","new":1}"#), @"unsupported apiVersion `kilo-clustermesh.io/v2`; this version reads `kilo-clustermesh.io/v1`");
        insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a"}},{{"name":"a"}}]}}"#)), @"duplicate node name `a`");
        insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a","labels":{{"x":"1","x":"2"}}}}]}}"#)), @"duplicate key `x` at line 1 column 125");
        insta::assert_snapshot!(error(&format!(r#"{{{header},"nodes":[{{"name":"a","podCidrs":[]}}]}}"#)), @"unknown field `podCidrs`, expected one of `addresses`, `annotations`, `carriedOver`, `labels`, `name`, `podCIDRs`, `stale`, `uid` at line 1 column 109");
        insta::assert_snapshot!(error(&header.replace("east", "west").replacen('"', "{\"nodes\":[],\"", 1).replace("Snapshot\"", "Snapshot\"}")), @"it contains cluster `west`, but the file is named after `east`");
        insta::assert_snapshot!(error(r#"["kilo-clustermesh.io/v1","east","NodeSnapshot",[]]"#), @"invalid type: sequence, expected an object at line 1 column 0");
        assert!(read("{").unwrap_err().is_syntax());
    }
}
