//! The load with clusters that join, and with more clusters like one of the mesh.

use clustermesh::capacity::{Ledger, Outgrowth};
use clustermesh::joining::{self, JoinedLoad, Joiner, Joining};

/// The load beyond the mesh of today.
pub(super) struct JoinOutlook {
    /// Clusters that cannot join before they have a snapshot.
    pub(super) waiting: Vec<Joiner>,
    /// The load with all others; nothing if there are none.
    pub(super) together: Option<JoinedLoad>,
    /// The number of clusters that can be added; nothing if no cluster gets Peers.
    pub(super) outgrowth: Option<Outgrowth>,
}

impl JoinOutlook {
    /// Computes the load with all clusters that join.
    pub(super) fn new(
        joining: &Joining,
        ledger: &Ledger,
        outgrowth: Option<Outgrowth>,
    ) -> anyhow::Result<Self> {
        Ok(Self { waiting: joining.waiting(), together: joining.load(ledger)?, outgrowth })
    }

    /// Leaves out the clusters that are not asked for.
    pub(super) fn retain(&mut self, is_asked: impl Fn(&str) -> bool) {
        if let Some(together) = &mut self.together {
            together.costs.retain(|it| is_asked(&it.cluster));
        }
    }
}

/// Returns the clusters that are not counted.
pub(super) fn waiting(waiting: &[Joiner]) -> String {
    if waiting.is_empty() {
        return String::new();
    }
    let names = joining::listed(waiting);
    format!("\nNot counted, because a snapshot is missing: {names}.\n")
}
