//! The document of `verify`, as far as the page shows it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding_document::PageFinding;

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
