//! States: what is known of a cluster.

use clustermesh::agent::inventory::Inventory;
use clustermesh::name::ClusterName;
use clustermesh::rules::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Outcome;

/// A cluster, with its state if it could be read.
pub(super) struct ClusterStatus {
    pub(super) cluster: ClusterName,
    /// The state, or the reason for which the cluster could not be read.
    pub(super) found: Result<ClusterState, UnreadCluster>,
    /// The command that reaches it, if this machine has one.
    pub(super) kubectl: Option<String>,
    /// Reasons for which another server may have answered, and the Peers that Kilo does not take.
    pub(super) findings: Vec<Finding>,
}

/// A cluster that could not be read.
pub(super) struct UnreadCluster {
    /// The reason.
    pub(super) finding: Finding,
    /// True if another attempt would end the same.
    pub(super) is_final: bool,
}

/// The folder of a cluster in the rendered tree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum RenderedFolder {
    /// It is there, and all of it could be read.
    #[default]
    Whole,
    /// Some of it could not be read, so more may be rendered than is known.
    Damaged,
    /// It is not there.
    Absent,
}

/// The state of a cluster.
#[derive(Default)]
pub(super) struct ClusterState {
    /// The versions of Kilo's CRD; none without a CRD.
    pub(super) versions: Vec<String>,
    /// Its folder in the rendered tree.
    pub(super) rendered: RenderedFolder,
    /// Its Peers.
    pub(super) inventory: Inventory,
    pub(super) nodes: NodeCounts,
    pub(super) guard: GuardStatus,
}

/// The guard in a cluster, compared with the meshes and with its file in the repository.
#[derive(Default)]
pub(super) struct GuardStatus {
    /// The result.
    pub(super) state: GuardState,
    /// The reason, unless the guard is current or not expected.
    pub(super) problem: Option<GuardProblem>,
}

impl GuardStatus {
    /// Returns whether it does not count as a difference. A guard only warns at first, as the page on guards describes.
    fn is_clean(&self) -> bool {
        let is_notice = matches!(self.state, GuardState::Unknown | GuardState::Warning);
        self.problem.is_none() || is_notice
    }
}

/// A problem of a guard.
pub(super) struct GuardProblem {
    pub(super) message: String,
    /// The remedy.
    pub(super) help: String,
}

/// The state of a guard.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GuardState {
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

/// The comparison of the nodes with the snapshot.
pub(super) enum NodeCounts {
    /// The differences, a line each.
    Compared(Vec<String>),
    /// They make no snapshot, and why.
    Unreadable(String),
}

impl Default for NodeCounts {
    fn default() -> Self {
        Self::Compared(Vec::new())
    }
}

impl ClusterStatus {
    pub(super) fn new(cluster: &ClusterName, kubectl: Option<String>) -> Self {
        Self {
            cluster: cluster.clone(),
            kubectl,
            found: Ok(ClusterState::default()),
            findings: Vec::new(),
        }
    }

    /// Returns whether it may become what is rendered without anyone changing the rendered tree or
    /// the access.
    pub(super) fn is_pending(&self) -> bool {
        match &self.found {
            Ok(found) => !found.inventory.is_delivered(),
            Err(unread) => !unread.is_final,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match &self.found {
            Err(_) | Ok(ClusterState { nodes: NodeCounts::Unreadable(_), .. }) => {
                Outcome::Unreadable
            }
            Ok(found) if found.is_clean() => Outcome::Clean,
            Ok(_) => Outcome::Findings,
        }
    }
}

impl ClusterState {
    /// Returns whether there is nothing to act on.
    fn is_clean(&self) -> bool {
        self.rendered == RenderedFolder::Whole
            && !self.versions.is_empty()
            && self.inventory.is_clean()
            && self.guard.is_clean()
            && matches!(&self.nodes, NodeCounts::Compared(differences) if differences.is_empty())
    }

    /// Returns the version of the CRD, for people.
    pub(super) fn version(&self) -> String {
        match self.versions.as_slice() {
            [] => "none".to_owned(),
            versions => versions.join(", "),
        }
    }
}
