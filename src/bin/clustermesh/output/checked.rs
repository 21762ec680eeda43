//! The numbers of checked items, for the last line of a run without findings.

use std::fmt;

use clustermesh::agent::fabric::Fabric;
use clustermesh::fleet::Fleet;
use clustermesh::plan::{Plan, Target};
use clustermesh::text;

/// The numbers of checked items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CheckedCounts {
    clusters: usize,
    nodes: usize,
    peers: usize,
}

impl CheckedCounts {
    /// Counts what a plan was made of, and its Peers.
    pub(crate) fn plan(fleet: &Fleet, plan: &Plan) -> Self {
        let nodes = fleet.first_memberships();
        Self {
            clusters: fleet.clusters().count(),
            nodes: nodes.map(|it| it.file.snapshot.nodes.len()).sum(),
            peers: plan.targets.iter().map(|it| peers(plan, it)).sum(),
        }
    }

    /// Counts what a proof is about.
    pub(crate) fn fabric(fabric: &Fabric) -> Self {
        let sites = || fabric.sites.iter().filter(|it| !it.cluster.is_external());
        let peers = |file: &clustermesh::agent::applied::AppliedFile| file.content.peers.len();
        Self {
            clusters: sites().count(),
            nodes: sites().map(|it| it.snapshot.nodes.len()).sum(),
            peers: sites().flat_map(|it| it.files).map(peers).sum(),
        }
    }
}

impl fmt::Display for CheckedCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(
            formatter,
            "{}, {}, {}",
            text::count(self.clusters, "cluster"),
            text::count(self.nodes, "node"),
            text::count(self.peers, "Peer")
        )
    }
}

/// Returns how many Peers a target has.
pub(super) fn peers(plan: &Plan, target: &Target) -> usize {
    plan.sets_of(target).map(|it| it.peers.len()).sum()
}

/// Returns the line for a run without findings.
pub(super) fn no_problems(checked: Option<&CheckedCounts>) -> String {
    match checked {
        Some(checked) => format!("No problems found ({checked})."),
        None => "No problems found.".to_owned(),
    }
}
