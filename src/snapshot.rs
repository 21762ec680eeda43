//! Snapshots: the values that the nodes of a cluster report, as kept in git.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::diagnostic::{Quoted, plain_json};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::string_map::StringMap;
use crate::text::{CONFLICT, conflict};

mod api;
pub mod difference;
pub mod dump;
mod file;
pub mod handshakes;
pub mod listing;
pub mod plugin;
pub mod pods;
pub mod services;
pub mod stray;

pub(crate) use api::bounded_list;
pub use file::schema;
use file::{SnapshotFields, SnapshotOutput, UniqueObject, check_header, objects, other_version};
use plugin::ShownPlugin;

/// The version of the format; a reader knows exactly its own.
pub const API_VERSION: &str = "kilo-clustermesh.io/v1";

/// The kind of a snapshot file.
pub const KIND: &str = "NodeSnapshot";

/// The kind of a file with Services.
pub const SERVICES_KIND: &str = "ServiceSnapshot";

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
    #[schemars(with = "BTreeMap<String, String>")]
    #[serde(default)]
    pub annotations: StringMap,
    /// Its Kilo agent was away, so the annotations are those of an earlier snapshot.
    #[serde(default, skip_serializing_if = "is_false")]
    pub carried_over: bool,
    /// The labels, without those under the prefixes in `droppedLabels` that are not in `keptLabels`.
    #[schemars(with = "BTreeMap<String, String>")]
    #[serde(default)]
    pub labels: StringMap,
    /// Its Kilo agent fell silent or stopped while it led its location, and another node leads now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lost_lead: bool,
    /// The name.
    pub name: String,
    /// Its index in its file.
    #[serde(skip)]
    pub position: usize,
    /// The network plugin that annotations of the node show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<ShownPlugin>,
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

impl Node {
    /// Returns the valid pod CIDRs. The checks of a node report the others.
    pub fn valid_pod_cidrs(&self) -> impl Iterator<Item = Cidr> {
        self.pod_cidrs.iter().filter_map(|it| it.parse().ok())
    }
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
    /// A merge that was not finished.
    #[error("{CONFLICT}")]
    Conflict(Range<usize>),
    /// Written by another version of this program.
    #[error("unsupported apiVersion {}; this version reads `{API_VERSION}`", Quoted(.0))]
    Version(String),
    /// Something else than a snapshot.
    #[error("unsupported kind {}, expected `{KIND}`; create snapshots with `clustermesh snapshot \
        --from CLUSTER=FILE`", Quoted(.0))]
    Kind(String),
    /// Nodes as the API server lists them.
    #[error("not a snapshot, but nodes as `kubectl get nodes` prints them")]
    NodeList,
    /// Another cluster's file.
    #[error("this is the snapshot of {}, but the file is named after `{expected}`", Quoted(.found))]
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
        Ok(Self { cluster, dropped_labels: Vec::new(), kept_labels: Vec::new(), nodes })
    }

    /// Leaves out the labels under these prefixes, except the `used` ones, and remembers both: which
    /// prefixes there were, and which labels are complete although they are under a prefix. The
    /// latter do not depend on nodes.
    #[must_use]
    pub fn without_labels(mut self, prefixes: &[String], used: &BTreeSet<&str>) -> Self {
        let is_under = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
        self.kept_labels =
            used.iter().filter(|key| is_under(key)).map(|key| (*key).to_owned()).collect();
        let mut dropped: BTreeSet<String> = self.dropped_labels.into_iter().collect();
        for node in &mut self.nodes {
            node.labels.retain(|key, _| {
                let prefix = prefixes
                    .iter()
                    .find(|prefix| key.starts_with(*prefix))
                    .filter(|_| !used.contains(key));
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
            Err(error) => {
                let known =
                    conflict(text).map(SnapshotError::Conflict).or_else(|| other_version(text));
                return Err(known.unwrap_or(SnapshotError::Json(error)));
            }
        };
        check_header(&file.api_version, &file.kind)?;
        if file.cluster != cluster.as_str() {
            return Err(SnapshotError::Cluster { found: file.cluster, expected: cluster.clone() });
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
        let mut text = serde_json::to_string_pretty(&SnapshotOutput {
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests;
