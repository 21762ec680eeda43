//! The form of a snapshot file.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{API_VERSION, KIND, Node, SnapshotError, stray};
use crate::schema::{self, ExampleFile, pattern};

/// The nodes of one cluster, as `clustermesh snapshot` writes them to `snapshots/<cluster>.json`.
///
/// The values are copied from the API and not checked here.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NodeSnapshot", example = ExampleFile(include_str!("file/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SnapshotFields {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    pub(super) api_version: String,
    /// The name of the cluster, which is also the name of the file.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    pub(super) cluster: String,
    /// Prefixes of labels that the nodes have and that were left out, because `snapshot.dropLabels` in
    /// the config lists them.
    #[schemars(example = ["feature.node.kubernetes.io/"])]
    #[serde(default)]
    pub(super) dropped_labels: Vec<String>,
    /// Labels under the prefixes in `snapshot.dropLabels` that were not left out, because the
    /// `nodeSelector` or `topologyLabel` of a mesh uses them.
    #[schemars(example = ["feature.node.kubernetes.io/network-sriov.capable"])]
    #[serde(default)]
    pub(super) kept_labels: Vec<String>,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    pub(super) kind: String,
    /// Its nodes, sorted by unique name.
    #[serde(deserialize_with = "objects")]
    pub(super) nodes: Vec<Node>,
}

/// The same to write, in the order of its keys.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SnapshotOutput<'a> {
    pub(super) api_version: &'a str,
    pub(super) cluster: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) dropped_labels: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) kept_labels: &'a [String],
    pub(super) kind: &'a str,
    pub(super) nodes: &'a [Node],
}

/// An object, which serde by itself would read from a list of its fields too.
pub(super) struct UniqueObject<T>(pub(super) T);

/// The part of a file that shows whether it was meant as a snapshot.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotHeader {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// Returns the JSON Schema of a snapshot file.
pub fn schema() -> Schema {
    schema::of_input::<SnapshotFields>()
}

/// An unknown field may belong to another version, so the version is reported first.
pub(super) fn other_version(text: &str) -> Option<SnapshotError> {
    if stray::is_node_list(text) {
        return Some(SnapshotError::NodeList);
    }
    let header: SnapshotHeader = serde_json::from_str(text).ok()?;
    check_header(&header.api_version, &header.kind).err()
}

pub(super) fn check_header(api_version: &str, kind: &str) -> Result<(), SnapshotError> {
    if kind != KIND {
        return Err(SnapshotError::Kind(kind.to_owned()));
    }
    if api_version != API_VERSION {
        return Err(SnapshotError::Version(api_version.to_owned()));
    }
    Ok(())
}

/// Reads a list of objects.
pub(super) fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<UniqueObject<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|UniqueObject(value)| value).collect())
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
