//! Proved paths: those between two clusters, and in which way each of them is interrupted.

use super::path_set::PathSet;
use super::state_proof::StateProof;
use crate::agent::fabric::SitePair;

/// The paths from one cluster to another in every state.
pub(super) struct Proved {
    /// The clusters.
    pub(super) pair: SitePair,
    /// The paths that work with the old Peers.
    pub(super) old: StateProof,
    /// The paths of which everything works with the new Peers.
    pub(super) new: PathSet,
    /// The paths that work with the old Peers and still do with the new ones. Of a path that works in
    /// part, the proof does not know which part that is, so it counts only if all of it works now, or if
    /// both clusters treat its packets as before.
    pub(super) kept: StateProof,
    /// The paths that work with both, but not while one cluster has its old and the other its new
    /// Peers.
    pub(super) apart: PathSet,
    /// The paths that work with both, but not in a state that stays.
    pub(super) stuck: PathSet,
    /// The paths that work with both, but not in a state that passes.
    pub(super) paused: PathSet,
    /// The paths that work in other states than that of the old Peers; only of watched pairs.
    pub(super) seen: Option<SeenPaths>,
    /// The number of states that were proved.
    pub(super) states: usize,
    /// The number of mixed states that were followed.
    pub(super) followed: usize,
}

/// The watched paths between two clusters that work, at least in part.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenPaths {
    /// With the new Peers of both.
    pub(super) new: PathSet,
    /// In any state on the way.
    pub(super) passing: PathSet,
}

/// The way in which a path is interrupted, the longest first. A path counts in the first one that applies.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Interruption {
    /// Until the other cluster has its new Peers.
    Apart,
    /// Until agents list all Peers again.
    Stuck,
    /// Until everything has arrived.
    Paused,
}

impl Interruption {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Apart, Self::Stuck, Self::Paused];
}

impl Proved {
    /// Returns the paths that work with the old and the new Peers, and are not known to be interrupted in a way, or for
    /// longer.
    pub(super) fn rest(&self, interruption: Interruption) -> PathSet {
        let known = [&self.apart, &self.stuck, &self.paused];
        let known = Interruption::ALL.into_iter().zip(known);
        let known = known.filter(|it| it.0 <= interruption);
        known.fold(self.kept.any(), |rest, it| rest.without(it.1))
    }

    /// Returns the paths that are interrupted in a way.
    pub(super) fn interrupted(&mut self, interruption: Interruption) -> &mut PathSet {
        match interruption {
            Interruption::Apart => &mut self.apart,
            Interruption::Stuck => &mut self.stuck,
            Interruption::Paused => &mut self.paused,
        }
    }
}
