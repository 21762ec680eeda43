//! The document of `graph`, as far as the page shows it.

use serde::{Deserialize, Serialize};

/// The clusters and their links.
#[derive(Deserialize)]
pub(super) struct PageGraph {
    pub(super) clusters: Vec<PageCluster>,
    pub(super) links: Vec<PageLink>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageCluster {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_hub: bool,
    pub(super) is_unread: bool,
    pub(super) meshes: Vec<String>,
    pub(super) granularity: Option<String>,
    pub(super) ranges: Vec<PageRange>,
    #[serde(default)]
    pub(super) segments: Vec<PageSegment>,
    #[serde(default)]
    pub(super) nodes: Vec<PageNode>,
    pub(super) gets: Vec<PageSupply>,
}

/// A declared range.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageRange {
    pub(super) range: String,
    /// The use of its addresses; none if they are for all uses.
    pub(super) class: Option<String>,
}

/// A segment of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(super) struct PageSegment {
    pub(super) leader: String,
    pub(super) endpoint: Option<String>,
    pub(super) is_behind_nat: bool,
    pub(super) anchors: Vec<String>,
    pub(super) node_count: usize,
    #[serde(default)]
    pub(super) nodes: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageNode {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) location: String,
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Vec<String>,
    #[serde(rename = "internalIP")]
    pub(super) internal_ip: Option<String>,
    pub(super) reason: Option<String>,
}

/// The Peers that a cluster gets of another one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageSupply {
    pub(super) from: String,
    pub(super) peers: u64,
}

/// A link between two clusters.
#[derive(Deserialize)]
pub(super) struct PageLink {
    pub(super) clusters: [String; 2],
}
