//! The announcement of the plugin's parameters, which Argo CD shows in the form of an Application.

use std::collections::BTreeSet;

use anyhow::bail;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::text;
use serde::Serialize;

use super::parameters::{ALLOW_EMPTY, TARGET};

/// The number of clusters that are named.
const NAMED: usize = 50;

/// A parameter, as Argo CD's `ParameterAnnouncement`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Announcement {
    name: &'static str,
    title: &'static str,
    tooltip: String,
    required: bool,
    item_type: &'static str,
    collection_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    string: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Vec<String>>,
}

/// Returns the announcement for an Application whose path ends with `name`.
pub(super) fn text(meshes: &[Mesh], name: Option<&str>) -> anyhow::Result<String> {
    let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
    let targets: BTreeSet<&ClusterName> = entries.map(|entry| &entry.name).collect();
    if targets.is_empty() {
        bail!("the meshes contain no cluster");
    }
    let default = targets.iter().find(|it| Some(it.as_str()) == name);
    let announcements = [
        Announcement {
            name: TARGET,
            title: "Cluster",
            tooltip: format!(
                "The cluster whose Peers are delivered; default: the last part of the path. The \
                 clusters are {}",
                text::first(NAMED, &targets)
            ),
            required: default.is_none(),
            item_type: "string",
            collection_type: "string",
            string: default.map(ToString::to_string),
            array: None,
        },
        Announcement {
            name: ALLOW_EMPTY,
            title: "Allow losses",
            tooltip:
                "TARGET or TARGET/SOURCE: deliver even if the cluster loses all its Peers, or all \
                      Peers of one source. Remove the value afterwards"
                    .to_owned(),
            required: false,
            item_type: "string",
            collection_type: "array",
            string: None,
            array: Some(Vec::new()),
        },
    ];
    let mut text = serde_json::to_string_pretty(&announcements)?;
    text.push('\n');
    Ok(text)
}
