//! States: what is known of a cluster.

use super::peers::{ComparedPeers, RenderedFolder};
use crate::name::ClusterName;
use crate::rules::Finding;
use schemars::JsonSchema;
use serde::Serialize;

/// A cluster, compared with what is rendered for it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Cluster")]
pub struct ClusterStatus {
    /// Its name.
    #[schemars(with = "&str", example = &"east")]
    pub cluster: ClusterName,
    /// The reason why it could not be read. Then the other fields are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<UnreadCluster>,
    /// Its state, if it could be read.
    #[serde(flatten)]
    pub found: Option<ClusterState>,
    /// The command that reaches it, if this machine has one.
    #[serde(skip)]
    pub kubectl: Option<String>,
    /// Reasons for which another server may have answered, and the Peers that Kilo does not take.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// The reason why a cluster could not be read.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Error")]
pub struct UnreadCluster {
    /// The name of the rule.
    #[schemars(example = &"forbidden")]
    rule: &'static str,
    /// The message.
    message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    /// True if another attempt would end the same.
    #[serde(skip)]
    is_final: bool,
}

/// The state of a cluster.
#[derive(Default, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// The versions of Kilo's CRD; empty if it is not installed.
    pub crd_versions: Vec<String>,
    /// The Peers in the cluster, compared with the rendered ones.
    pub peers: ComparedPeers,
    /// The nodes of the cluster, compared with the snapshot.
    #[serde(rename = "snapshot")]
    pub nodes: NodeCounts,
    /// The guard in the cluster, compared with what `clustermesh guard` prints now and with `guards/<cluster>.yaml`.
    pub guard: GuardStatus,
}

/// The guard in a cluster.
#[derive(Default, JsonSchema, Serialize)]
#[schemars(rename = "Guard")]
pub struct GuardStatus {
    /// Whether the guard is there and current.
    pub state: GuardState,
    /// The reason, unless the guard is current or not expected.
    #[serde(flatten)]
    pub problem: Option<GuardProblem>,
}

impl GuardStatus {
    /// Returns whether it does not count as a difference. A guard only warns at first, as the page on guards describes.
    fn is_clean(&self) -> bool {
        let is_notice = matches!(self.state, GuardState::Unknown | GuardState::Warning);
        self.problem.is_none() || is_notice
    }
}

/// A problem of a guard.
#[derive(JsonSchema, Serialize)]
pub struct GuardProblem {
    /// The difference, or the reason why it could not be read; absent if there is nothing to do.
    #[serde(rename = "problem")]
    pub message: String,
    /// The remedy.
    pub help: String,
}

/// The state of a guard.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardState {
    /// The cluster has no guard.
    #[default]
    Absent,
    /// It is what `clustermesh guard` prints now, and what its file has.
    Current,
    /// It is current, and only warns.
    Warning,
    /// It differs.
    Outdated,
    /// It could not be read.
    Unknown,
}

/// The nodes of a cluster, compared with the snapshot.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Snapshot")]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// Whether the snapshot is up to date.
    pub is_current: bool,
    /// The differences, as `clustermesh snapshot --check` prints them.
    pub differences: Vec<String>,
    /// The reason why the nodes make no snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl NodeCounts {
    /// Returns the differences, a line each, or the reason why there is no snapshot.
    pub fn new(compared: Result<Vec<String>, String>) -> Self {
        let is_current = compared.as_ref().is_ok_and(Vec::is_empty);
        let error = compared.as_ref().err().cloned();
        Self { is_current, differences: compared.unwrap_or_default(), error }
    }
}

impl Default for NodeCounts {
    fn default() -> Self {
        Self::new(Ok(Vec::new()))
    }
}

impl UnreadCluster {
    /// Returns a reason, and whether another attempt would end the same.
    pub fn new(finding: &Finding, is_final: bool) -> Self {
        Self {
            rule: finding.rule.name(),
            message: finding.message.to_string(),
            help: finding.help.clone(),
            is_final,
        }
    }

    /// Returns what people read of it.
    pub(super) fn note(&self) -> Note {
        Note { about: self.rule, lines: vec![self.message.clone()], help: self.help.clone() }
    }
}

/// A problem of a cluster, or a notice.
pub(super) struct Note {
    /// The subject.
    pub(super) about: &'static str,
    /// The lines of the message.
    pub(super) lines: Vec<String>,
    /// The remedy.
    pub(super) help: Option<String>,
}

impl ClusterStatus {
    /// Returns a cluster that has not been read yet.
    pub fn new(cluster: &ClusterName, kubectl: Option<String>) -> Self {
        Self {
            cluster: cluster.clone(),
            kubectl,
            error: None,
            found: Some(ClusterState::default()),
            findings: Vec::new(),
        }
    }

    /// Returns whether it may become what is rendered without anyone changing the rendered tree or
    /// the access.
    pub fn is_pending(&self) -> bool {
        let is_undelivered = |it: &ClusterState| !it.peers.inventory.is_delivered();
        let is_final = self.error.as_ref().is_some_and(|it| it.is_final);
        self.found.as_ref().map_or(!is_final, is_undelivered)
    }

    /// Returns whether it could be read, with nodes that make a snapshot.
    pub fn is_readable(&self) -> bool {
        self.found.as_ref().is_some_and(|it| it.nodes.error.is_none())
    }

    /// Returns whether there is nothing to act on.
    pub fn is_clean(&self) -> bool {
        self.found.as_ref().is_some_and(ClusterState::is_clean)
    }
}

impl ClusterState {
    /// Returns whether there is nothing to act on.
    fn is_clean(&self) -> bool {
        self.peers.rendered == RenderedFolder::Whole
            && !self.crd_versions.is_empty()
            && self.peers.inventory.is_clean()
            && self.guard.is_clean()
            && self.nodes.is_current
    }

    /// Returns the version of the CRD, for people.
    pub(super) fn version(&self) -> String {
        match self.crd_versions.as_slice() {
            [] => "none".to_owned(),
            versions => versions.join(", "),
        }
    }
}
