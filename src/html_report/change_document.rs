//! The document of `diff`, as far as the page shows it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

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
