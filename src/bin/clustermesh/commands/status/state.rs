//! States: what is known of a cluster.

use clustermesh::agent::inventory::Inventory;
use clustermesh::name::ClusterName;
use clustermesh::rules::Finding;

use crate::Outcome;

/// What is known of a cluster.
pub(super) struct State {
    /// Its name.
    pub(super) cluster: ClusterName,
    /// What was found, or why it could not be read.
    pub(super) found: Result<ClusterState, Finding>,
    /// Why it may not have been the cluster that answered.
    pub(super) weaknesses: Vec<Finding>,
}

/// What was found in a cluster.
#[derive(Default)]
pub(super) struct ClusterState {
    /// The versions of Kilo's CRD; none without a CRD.
    pub(super) versions: Vec<String>,
    /// Whether the rendered tree has a folder for it.
    pub(super) is_rendered: bool,
    /// Its Peers.
    pub(super) inventory: Inventory,
    /// Its nodes.
    pub(super) nodes: NodeCounts,
}

/// How the nodes compare with the snapshot.
pub(super) enum NodeCounts {
    /// What differs, a line each.
    Compared(Vec<String>),
    /// They make no snapshot, and why.
    Unreadable(String),
}

impl Default for NodeCounts {
    fn default() -> Self {
        Self::Compared(Vec::new())
    }
}

impl State {
    pub(super) fn new(cluster: &ClusterName) -> Self {
        Self {
            cluster: cluster.clone(),
            found: Ok(ClusterState::default()),
            weaknesses: Vec::new(),
        }
    }

    /// Returns whether everything that is rendered is applied.
    pub(super) fn is_delivered(&self) -> bool {
        let found = self.found.as_ref();
        found.is_ok_and(|it| it.inventory.is_delivered())
    }

    /// Returns the outcome.
    pub(super) fn outcome(&self) -> Outcome {
        match &self.found {
            Err(_)
            | Ok(ClusterState {
                nodes: NodeCounts::Unreadable(_),
                ..
            }) => Outcome::Unreadable,
            Ok(found) if found.is_clean() => Outcome::Clean,
            Ok(_) => Outcome::Findings,
        }
    }
}

impl ClusterState {
    /// Returns whether there is nothing to act on.
    fn is_clean(&self) -> bool {
        self.is_rendered
            && !self.versions.is_empty()
            && self.inventory.is_clean()
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
