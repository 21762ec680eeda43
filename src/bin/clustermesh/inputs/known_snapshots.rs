//! Known snapshots: those that were read already, so that each text is understood only once. Most
//! snapshots are the same in both versions of a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use clustermesh::name::ClusterName;
use clustermesh::snapshot::Snapshot;

/// The snapshots that were read, by cluster.
#[derive(Default)]
pub(crate) struct KnownSnapshots(BTreeMap<ClusterName, KnownSnapshot>);

/// A snapshot with its text.
pub(super) struct KnownSnapshot {
    pub(super) text: String,
    pub(super) snapshot: Arc<Snapshot>,
}

impl KnownSnapshots {
    /// Returns the snapshot of a cluster if it was read from the same text.
    pub(super) fn of_text(&self, cluster: &ClusterName, text: &str) -> Option<Arc<Snapshot>> {
        let known = self.0.get(cluster).filter(|it| it.text == text)?;
        Some(Arc::clone(&known.snapshot))
    }

    /// Keeps the snapshot of a cluster.
    pub(super) fn add(&mut self, cluster: ClusterName, snapshot: KnownSnapshot) {
        self.0.insert(cluster, snapshot);
    }
}
