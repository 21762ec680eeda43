//! Kept snapshots: what happened to the snapshot of a cluster.

use clustermesh::rules::Finding;

use crate::Outcome;

/// The result for a snapshot.
#[derive(Default)]
pub(super) struct KeptSnapshot {
    /// A line for it, if it was looked at.
    pub(super) line: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// The differences, one per line.
    pub(super) differences: String,
    /// True if it is not written without `--accept`.
    #[cfg_attr(not(feature = "snapshot"), expect(dead_code, reason = "only a wait needs it"))]
    pub(super) is_refused: bool,
    /// The reason why it could not be written.
    pub(super) error: Option<anyhow::Error>,
    pub(super) outcome: Outcome,
}

impl KeptSnapshot {
    /// Returns what differs, a line each.
    #[cfg(feature = "snapshot")]
    pub(super) fn differences(self) -> anyhow::Result<Vec<String>> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(self.differences.lines().map(str::to_owned).collect())
    }

    /// Returns what a snapshot would change, a line each; nothing if it would not be written.
    #[cfg(feature = "snapshot")]
    pub(super) fn writable_differences(self) -> Vec<String> {
        let is_written = !self.is_refused && self.error.is_none();
        self.differences.lines().filter(|_| is_written).map(str::to_owned).collect()
    }

    /// Returns the result for a snapshot that could not be written.
    pub(super) fn failed(error: anyhow::Error) -> Self {
        Self { error: Some(error), outcome: Outcome::Unreadable, ..Self::default() }
    }
}
