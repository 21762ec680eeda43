//! The documents of the commands, as far as the page shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The findings of a command.
#[derive(Deserialize)]
pub(super) struct PageReport {
    pub(super) findings: Vec<PageFinding>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageFinding {
    pub(super) rule: String,
    pub(super) severity: String,
    pub(super) message: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
    pub(super) help: Option<String>,
    pub(super) cause: Option<PageCause>,
    #[serde(default)]
    pub(super) places: Vec<PagePlace>,
}

/// The finding that causes another one.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PageCause {
    pub(super) rule: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PagePlace {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
    label: Option<String>,
    excerpt: Option<String>,
}

impl PageFinding {
    /// Returns it as the cause of others.
    pub(super) fn as_cause(&self) -> PageCause {
        PageCause {
            rule: self.rule.clone(),
            cluster: self.cluster.clone(),
            node: self.node.clone(),
        }
    }

    /// Returns its severity as a number, the most severe first.
    pub(super) fn rank(&self) -> usize {
        ["error", "warning", "notice"]
            .iter()
            .position(|it| *it == self.severity)
            .unwrap_or_default()
    }
}

/// The effects of a change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageDifference {
    pub(super) against: String,
    pub(super) notes: Vec<String>,
    pub(super) grade: String,
    pub(super) causes: Vec<Value>,
    pub(super) targets: Vec<PageTargetChange>,
    pub(super) paths: Vec<PagePathChange>,
    pub(super) services: Vec<Value>,
    pub(super) states: u64,
}

/// The change of the Peers of a cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageTargetChange {
    pub(super) cluster: String,
    pub(super) grade: String,
    pub(super) reasons: Vec<Value>,
    pub(super) peers_before: u64,
    pub(super) peers_after: u64,
    pub(super) added: u64,
    pub(super) changed: u64,
    pub(super) removed: u64,
    pub(super) help: Vec<String>,
    pub(super) busy_seconds: Option<f64>,
}

/// The changed paths from one cluster to another, by their fate.
#[derive(Deserialize)]
pub(super) struct PagePathChange {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) fates: BTreeMap<String, Value>,
}

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
    is_behind_nat: bool,
    anchors: Vec<String>,
    node_count: usize,
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

/// The losses.
#[derive(Deserialize)]
pub(super) struct PageOutage {
    pub(super) single: PageSurvey,
}

/// The effects of single losses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageSurvey {
    pub(super) parts: u64,
    pub(super) harmful: Vec<PageHarm>,
    pub(super) not_examined: Vec<PageUnexamined>,
}

/// A part that was not examined.
#[derive(Deserialize)]
pub(super) struct PageUnexamined {
    pub(super) part: String,
    pub(super) reason: String,
}

/// The effect of one loss.
#[derive(Deserialize)]
pub(super) struct PageHarm {
    pub(super) part: String,
    pub(super) paths: u64,
    pub(super) ended: Vec<PageEnded>,
}

/// The paths between two clusters that end.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageEnded {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) paths: u64,
    example: Option<[String; 2]>,
}

/// The proof.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageVerification {
    pub(super) holds: bool,
    pub(super) total: PageTally,
    pub(super) pairings: Vec<PagePairing>,
    pub(super) failures: Vec<PageFailure>,
    pub(super) assumptions: Vec<PageAssumption>,
    pub(super) expectations: Vec<Value>,
    pub(super) findings: Vec<PageFinding>,
}

/// Numbers of paths.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageTally {
    pub(super) declared: u64,
    pub(super) working: u64,
    pub(super) assumed: u64,
    #[serde(default)]
    pub(super) undeclared_working: u64,
}

/// The paths from one cluster to another.
#[derive(Deserialize)]
pub(super) struct PagePairing {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) linked: bool,
    pub(super) classes: Vec<ClassTally>,
}

/// The paths between two classes.
#[derive(Deserialize)]
pub(super) struct ClassTally {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) tally: PageTally,
}

/// Declared paths that fail for one cause.
#[derive(Deserialize)]
pub(super) struct PageFailure {
    pub(super) verdict: String,
    pub(super) from: PageNodeName,
    pub(super) source: String,
    pub(super) to: String,
    pub(super) destination: String,
    pub(super) pairs: u64,
    pub(super) between: Vec<[String; 2]>,
}

/// A node, by its cluster and its name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageNodeName {
    pub(super) cluster: String,
    pub(super) node: String,
}

/// Declared paths that depend on a condition.
#[derive(Deserialize)]
pub(super) struct PageAssumption {
    pub(super) premise: String,
    pub(super) nodes: Vec<PageNodeName>,
    pub(super) pairs: u64,
    pub(super) between: Vec<[String; 2]>,
}
