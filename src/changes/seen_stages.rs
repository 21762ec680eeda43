//! Seen stages: which paths of two clusters no other state decides, and the pairs of clusters for which that is asked.

use std::collections::BTreeSet;

use super::passage::Passages;
use super::path_set::PathSet;
use super::proof_budget::ProofBudget;
use super::proved::Proved;
use super::stage::{NEW, StageId};
use super::staged_clusters::StagedClusters;
use super::state_proof::StateProof;
use crate::agent::fabric::{Fabric, SiteId, SitePair};
use crate::proof::reach::{BlockLikeness, Reach};

/// The views that clusters have of each other in two stages.
#[derive(Clone, Copy)]
pub(super) struct SeenStages<'r, 'f, 'a, 'g, 'b> {
    /// The first stage.
    pub(super) one: &'r Reach<'f, 'a>,
    /// The second stage.
    pub(super) other: &'r Reach<'g, 'b>,
    /// True if the sender's cluster is in the first stage and the receiver's in the second. Otherwise both are in the
    /// second, and the first is that of the old Peers.
    pub(super) is_mixed: bool,
}

/// Pairs of clusters with paths that may still be interrupted, in any direction.
pub(super) struct OpenPairs(pub(super) BTreeSet<SitePair>);

impl SeenStages<'_, '_, '_, '_, '_> {
    /// Compares a stage in which both clusters are with that of the old Peers.
    pub(super) fn same<'r, 'f, 'a, 'g, 'b>(
        old: &'r Reach<'f, 'a>,
        other: &'r Reach<'g, 'b>,
    ) -> SeenStages<'r, 'f, 'a, 'g, 'b> {
        SeenStages { one: old, other, is_mixed: false }
    }

    /// Returns the paths that may not hold in a state as they do in others.
    pub(super) fn missing(self, pair: SitePair, paths: &StateProof, holds: &PathSet) -> PathSet {
        let mut missing = paths.whole.without(holds);
        let partial = paths.partial.without(holds);
        missing.add(&self.open(pair, &partial));
        missing
    }

    /// Returns the paths of which no other state decides: with one stage, not that of the old Peers; with two,
    /// neither that in which both clusters have the sender's nor that in which both have the receiver's.
    pub(super) fn open(self, SitePair { from, to }: SitePair, paths: &PathSet) -> PathSet {
        if paths.is_empty() {
            return PathSet::default();
        }
        let likeness = |home, viewer| self.one.likeness(self.other, home, viewer);
        let (senders, receivers) = (likeness(from, to), likeness(to, from));
        paths.between(&senders, &receivers, |sender: BlockLikeness, receiver| {
            let by_sender = sender.is_seen_alike && receiver.is_handled_alike;
            let by_receiver = receiver.is_seen_alike && sender.is_handled_alike;
            if self.is_mixed { !by_sender && !by_receiver } else { !by_sender || !by_receiver }
        })
    }
}

impl OpenPairs {
    pub(super) fn of<'o>(proved: impl Iterator<Item = &'o Proved>) -> Self {
        Self(proved.map(|it| it.pair).collect())
    }

    pub(super) fn find(pairs: &[Proved], is_open: impl Fn(&Proved) -> bool) -> Self {
        Self::of(pairs.iter().filter(|it| is_open(it)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts their clusters into stages. All others have their new Peers, which do not matter for them.
    pub(super) fn staged<'p, 's>(
        &self,
        passages: &'p Passages<'s>,
        stage: impl Fn(SiteId) -> StageId,
    ) -> StagedClusters<'p, 's> {
        let sites = self.sites();
        StagedClusters::new(passages, |it| if sites.contains(&it) { stage(it) } else { NEW })
    }

    /// Returns their clusters.
    pub(super) fn sites(&self) -> BTreeSet<SiteId> {
        self.0.iter().flat_map(|it| it.both()).collect()
    }

    /// Looks at them, in both directions, if the steps last.
    pub(super) fn reach<'f, 'a>(
        &self,
        fabric: &'f Fabric<'a>,
        steps: &mut ProofBudget,
    ) -> Option<Reach<'f, 'a>> {
        steps.look(fabric, |from, to| {
            let pair = SitePair { from, to };
            self.0.contains(&pair) || self.0.contains(&pair.back())
        })
    }
}
