//! Stages: the Peers that a cluster can have on the way from the old to the new version.

/// The number of a stage: what a cluster has.
pub(super) type StageId = usize;

/// The stages of two clusters in a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagePair {
    /// That of the cluster that sends.
    pub(super) sender: StageId,
    /// That of the cluster that receives.
    pub(super) receiver: StageId,
}

impl StagePair {
    /// Returns the larger number of both stages. Those of the old and the new Peers are the smallest.
    pub(super) fn most(self) -> StageId {
        self.sender.max(self.receiver)
    }

    /// Returns a state in which both clusters are in the same stage.
    pub(super) fn same(stage: StageId) -> Self {
        Self { sender: stage, receiver: stage }
    }
}

/// The old Peers.
pub(super) const OLD: StageId = 0;
/// The new Peers. Between the two are the tables on the way.
pub(super) const NEW: StageId = 1;
