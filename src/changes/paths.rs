//! Paths: which of them hold in every state on the way from the old to the new version.
//!
//! Both clusters of a path can have their old or their new Peers, or any table in between, independently
//! of each other. A path is followed in a mixed state only if both clusters see it otherwise than in the
//! states that are known (`docs/internals/changes.md`).

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::blocks::Blocks;
use super::cluster_transition::{
    AffectedPairs, ClusterTransition, ClusterTransitions, NEW, OLD, StageId, StagePair,
    StagedClusters,
};
use super::must_stay_closed::WatchedPaths;
use super::path_set::PathSet;
use super::prover::{OpenPairs, Prover, SeenStages};
use super::state_proof::{KnownPaths, ProofBudget, Proved, StateProof};
use crate::agent::fabric::{Fabric, SiteId, SitePair, Sites};

/// All proofs of a fleet on its way.
pub(super) struct PathProof {
    /// The paths between clusters that changes can touch.
    pub(super) proved: Vec<Proved>,
    /// Clusters with states that are too many to be proved.
    pub(super) unproven: BTreeSet<SiteId>,
    /// Clusters with such states in which new paths are watched for.
    pub(super) unwatched: BTreeSet<SiteId>,
    /// The address blocks of every cluster.
    pub(super) blocks: Sites<Blocks>,
}

impl PathProof {
    /// Proves everything that changes can touch, as far as the steps last.
    pub(super) fn new(
        transitions: &ClusterTransitions,
        affected: &AffectedPairs,
        watched: &[WatchedPaths],
        after: &Fabric,
        steps: &mut ProofBudget,
    ) -> Self {
        let blocks = transitions.0.map(|it| Blocks::new(&it.peers.after));
        let staged = [OLD, NEW].map(|stage| StagedClusters::new(transitions, |_| stage));
        let fabrics = staged.each_ref().map(|it| it.fabric(after));
        let ends =
            fabrics.each_ref().map(|it| steps.look(it, |viewer, home| affected.has(viewer, home)));
        let [Some(with_old), Some(with_new)] = ends else {
            let is_affected = |it: &SiteId| affected.others(*it).next().is_some();
            let unproven: BTreeSet<SiteId> = transitions.0.ids().filter(is_affected).collect();
            return Self { proved: Vec::new(), unwatched: unproven.clone(), unproven, blocks };
        };
        let ends = [with_old, with_new];
        let prover = Prover { transitions, blocks: &blocks, ends: &ends };
        let senders: Vec<SiteId> = transitions.0.ids().collect();
        let found = senders.into_par_iter();
        let known = || [KnownPaths::default(), KnownPaths::default()];
        let found = found.map_init(known, |known, from| prover.from(from, affected, known));
        let found: Vec<Vec<Proved>> = found.collect();
        let mut pairs: Vec<Proved> = found.into_iter().flatten().collect();
        let most = transitions.0.iter().map(ClusterTransition::stages).max();
        let later = 2..most.unwrap_or_default();
        let passed = later.flat_map(|it| prover.pass(it, &mut pairs, steps));
        let mut unproven: BTreeSet<SiteId> = passed.collect();
        unproven.extend(prover.mix(&mut pairs, steps));
        let unwatched = if watched.is_empty() {
            BTreeSet::new()
        } else {
            prover.watch(&mut pairs, watched, steps)
        };
        Self { proved: pairs, unwatched, unproven, blocks }
    }
}

impl<'p> Prover<'p, '_, '_, '_> {
    /// Proves the paths from a cluster with the old and the new Peers.
    fn from(
        &self,
        from: SiteId,
        affected: &AffectedPairs,
        known: &mut [KnownPaths<'p>; 2],
    ) -> Vec<Proved> {
        let others = affected.others(from);
        let pairs = others.map(|to| self.between(SitePair { from, to }, known));
        pairs.collect()
    }

    fn between(&self, pair: SitePair, [of_old, of_new]: &mut [KnownPaths<'p>; 2]) -> Proved {
        let [with_old, with_new] = self.ends;
        let old = StateProof::new(with_old, pair, self.blocks, of_old);
        let [of_sender, of_receiver] = self.stages(pair);
        let new = if of_sender.max(of_receiver) <= NEW {
            old.whole.clone()
        } else {
            StateProof::new(with_new, pair, self.blocks, of_new).whole
        };
        let lost = SeenStages::same(with_old, with_new).missing(pair, &old, &new);
        Proved {
            pair,
            new,
            kept: old.without(&lost),
            assumed: [
                StateProof::assumed(with_old, pair, self.blocks, of_old),
                StateProof::assumed(with_new, pair, self.blocks, of_new),
            ],
            apart: PathSet::default(),
            stuck: PathSet::default(),
            paused: PathSet::default(),
            seen: None,
            states: of_sender * of_receiver,
            followed: 0,
            old,
        }
    }

    /// Proves the paths with both clusters in a stage between the old and the new Peers. Clusters for which the steps do
    /// not last are returned.
    fn pass(
        &self,
        stage: StageId,
        pairs: &mut [Proved],
        steps: &mut ProofBudget,
    ) -> BTreeSet<SiteId> {
        let interruption = |pair| self.interruption(pair, StagePair::same(stage));
        let is_open = |it: &Proved| {
            let is_there = self.stages(it.pair).into_iter().any(|stages| stage < stages);
            is_there && !it.rest(interruption(it.pair)).is_empty()
        };
        let open = OpenPairs::find(pairs, is_open);
        if open.is_empty() {
            return BTreeSet::new();
        }
        let staged = open.staged(self.transitions, |_| stage);
        let [with_old, with_new] = self.ends;
        let fabric = staged.fabric(with_new.fabric);
        let Some(reach) = open.reach(&fabric, steps) else {
            return open.sites();
        };
        let of_senders = pairs.par_chunk_by_mut(|a, b| a.pair.from == b.pair.from);
        of_senders.for_each_init(KnownPaths::default, |known, pairs| {
            for it in pairs.iter_mut().filter(|it| is_open(it)) {
                let proof = StateProof::new(&reach, it.pair, self.blocks, known);
                let seen = SeenStages::same(with_old, &reach);
                let missing = seen.missing(it.pair, &it.kept, &proof.whole);
                it.interrupted(interruption(it.pair)).add(&missing);
            }
        });
        BTreeSet::new()
    }
}
