//! The prover: what the proofs of all states of a fleet have in common.

use super::blocks::Blocks;
use super::passage::Passages;
use super::proved::Interruption;
use super::stage::{NEW, StageId, StagePair};
use crate::agent::fabric::{SiteId, SitePair, Sites};
use crate::proof::reach::Reach;

/// The proofs of a fleet on its way.
pub(super) struct Prover<'p, 'f, 'a, 's> {
    /// The clusters on their way.
    pub(super) passages: &'p Passages<'s>,
    /// The address blocks of every cluster.
    pub(super) blocks: &'p Sites<Blocks>,
    /// The clusters with the old and with the new Peers.
    pub(super) ends: &'p [Reach<'f, 'a>; 2],
}

impl Prover<'_, '_, '_, '_> {
    /// Returns how many stages both clusters have.
    pub(super) fn stages(&self, pair: SitePair) -> [usize; 2] {
        pair.both().map(|it| self.passages.0[it].stages())
    }

    /// Returns how long a path is interrupted that does not work in a state.
    pub(super) fn interruption(&self, pair: SitePair, stages: StagePair) -> Interruption {
        let is_final = |(site, stage): (SiteId, StageId)| self.passages.0[site].is_final(stage);
        let of_both = [(pair.from, stages.sender), (pair.to, stages.receiver)];
        if stages.most() <= NEW {
            Interruption::Apart
        } else if of_both.into_iter().any(is_final) {
            Interruption::Stuck
        } else {
            Interruption::Paused
        }
    }
}
