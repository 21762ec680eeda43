//! Mixed states: the two clusters of a path are in different stages on the way from the old to the new version.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::path_set::PathSet;
use super::proof_budget::ProofBudget;
use super::proved::{Interruption, Proved};
use super::prover::Prover;
use super::seen_stages::{OpenPairs, SeenStages};
use super::stage::{NEW, OLD, StageId, StagePair};
use super::staged_clusters::StagedClusters;
use super::state_proof::{KnownPaths, StateProof};
use crate::agent::fabric::{Fabric, SiteId, SitePair};
use crate::proof::reach::Reach;

/// The most mixed states in which the paths of a pair of clusters are followed.
const MOST_OF_PAIR: usize = 64;

/// The most mixed states in which paths are followed altogether: one for each pair of clusters in each.
const MOST_MIXED: usize = 400_000;

/// Mixed states that are found and followed together.
struct MixedRound<'r, 'f, 'a> {
    /// The pairs of clusters that can have paths to follow.
    open: OpenPairs,
    /// By stage.
    reaches: &'r [Reach<'f, 'a>],
    /// True if a cluster is between its old and its new Peers; otherwise one has the old and the other the new ones.
    is_between: bool,
}

/// The mixed states that may still be followed, and the steps for all of them.
struct Budget<'s> {
    states: usize,
    steps: &'s mut ProofBudget,
}

impl Prover<'_, '_, '_, '_> {
    /// Follows the paths in mixed states, those that show the longest interruptions first. Clusters with too many such
    /// states are returned.
    pub(super) fn mix(&self, pairs: &mut [Proved], steps: &mut ProofBudget) -> BTreeSet<SiteId> {
        let mut budget = Budget { states: MOST_MIXED, steps };
        let of_versions =
            MixedRound { open: OpenPairs::of(pairs.iter()), reaches: self.ends, is_between: false };
        let mut unproven = self.follow(pairs, &of_versions, &mut budget);
        let open = OpenPairs::find(pairs, |it| {
            let mut states = self.mixed(it.pair);
            states.any(|it| NEW < it.most()) && !it.rest(Interruption::Stuck).is_empty()
        });
        let sites = open.0.iter().flat_map(|it| it.both());
        let most = sites.map(|it| self.passages.0[it].stages()).max();
        let staged = (OLD..most.unwrap_or(OLD)).map(|it| open.staged(self.passages, |_| it));
        let staged: Vec<StagedClusters> = staged.collect();
        let [_, with_new] = self.ends;
        let fabrics = staged.iter().map(|it| it.fabric(with_new.fabric));
        let fabrics: Vec<Fabric> = fabrics.collect();
        let reaches = fabrics.iter().map(|it| open.reach(it, budget.steps));
        let reaches: Option<Vec<Reach>> = reaches.collect();
        let Some(reaches) = reaches else {
            unproven.extend(open.sites());
            return unproven;
        };
        let between = MixedRound { open, reaches: &reaches, is_between: true };
        unproven.extend(self.follow(pairs, &between, &mut budget));
        unproven
    }

    /// Follows the paths in some mixed states. Only paths are followed that are not known to be interrupted for as long.
    fn follow(
        &self,
        pairs: &mut [Proved],
        round: &MixedRound,
        budget: &mut Budget,
    ) -> BTreeSet<SiteId> {
        let found = pairs.par_iter().enumerate().flat_map_iter(|(place, it)| {
            self.open_states(it, round).into_iter().map(move |stages| {
                let interruption = self.interruption(it.pair, stages);
                ((interruption, Mixture::new(it.pair, stages)), place)
            })
        });
        let mut groups: BTreeMap<(Interruption, Mixture), Vec<usize>> = BTreeMap::new();
        for (group, place) in found.collect::<Vec<_>>() {
            groups.entry(group).or_default().push(place);
        }
        let mut unproven = BTreeSet::new();
        for ((interruption, mixture), mut places) in groups {
            places.retain(|place| {
                let Some(it) = pairs.get_mut(*place) else {
                    return false;
                };
                let rest = it.rest(interruption);
                let is_open = round.is_open(it.pair, mixture.of_pair(it.pair), &rest);
                let is_within = is_open && budget.spend_on(it);
                if is_open && !is_within {
                    unproven.extend(it.pair.both());
                }
                is_within
            });
            let among = OpenPairs::of(places.iter().filter_map(|it| pairs.get(*it)));
            let Some(held) = self.held(mixture, &among, budget.steps) else {
                unproven.extend(among.sites());
                continue;
            };
            for place in places {
                let Some(it) = pairs.get_mut(place) else {
                    continue;
                };
                let seen = round.seen(mixture.of_pair(it.pair));
                if let Some((held, seen)) = held.get(&it.pair).zip(seen) {
                    let missing = seen.missing(it.pair, &it.kept, &held.whole);
                    it.interrupted(interruption).add(&missing);
                }
            }
        }
        unproven
    }

    /// Returns the mixed states in which paths of a pair have to be followed.
    fn open_states(&self, proved: &Proved, round: &MixedRound) -> Vec<StagePair> {
        if !round.open.0.contains(&proved.pair) {
            return Vec::new();
        }
        let [apart, stuck, paused] = Interruption::ALL.map(|it| proved.rest(it));
        let states = self.mixed(proved.pair).filter(|stages| {
            let rest = match self.interruption(proved.pair, *stages) {
                Interruption::Apart => &apart,
                Interruption::Stuck => &stuck,
                Interruption::Paused => &paused,
            };
            round.is_open(proved.pair, *stages, rest)
        });
        states.collect()
    }

    /// Returns the states in which two clusters are in different stages.
    pub(super) fn mixed(&self, pair: SitePair) -> impl Iterator<Item = StagePair> + use<> {
        let [of_sender, of_receiver] = self.stages(pair);
        mixed(of_sender, of_receiver)
    }

    /// Proves the paths between some clusters in a mixed state, if the steps last.
    pub(super) fn held(
        &self,
        mixture: Mixture,
        pairs: &OpenPairs,
        steps: &mut ProofBudget,
    ) -> Option<BTreeMap<SitePair, StateProof>> {
        if pairs.is_empty() {
            return Some(BTreeMap::new());
        }
        let staged = pairs.staged(self.passages, |it| mixture.of(it));
        let [_, with_new] = self.ends;
        let fabric = staged.fabric(with_new.fabric);
        let reach = pairs.reach(&fabric, steps)?;
        let mut known = KnownPaths::default();
        let proofs = pairs.0.iter().map(|pair| {
            let proof = StateProof::new(&reach, *pair, self.blocks, &mut known);
            (*pair, proof)
        });
        Some(proofs.collect())
    }
}

impl<'r, 'f, 'a> MixedRound<'r, 'f, 'a> {
    fn seen(&self, stages: StagePair) -> Option<SeenStages<'r, 'f, 'a, 'f, 'a>> {
        if self.is_between != (NEW < stages.most()) {
            return None;
        }
        Some(SeenStages {
            one: self.reaches.get(stages.sender)?,
            other: self.reaches.get(stages.receiver)?,
            is_mixed: true,
        })
    }

    /// Returns whether no other state decides of all these paths.
    fn is_open(&self, pair: SitePair, stages: StagePair, paths: &PathSet) -> bool {
        let seen = self.seen(stages).filter(|_| !paths.is_empty());
        seen.is_some_and(|it| !it.open(pair, paths).is_empty())
    }
}

impl Budget<'_> {
    /// Returns whether another mixed state of a pair may be followed.
    fn spend_on(&mut self, proved: &mut Proved) -> bool {
        let is_within = 0 < self.states && proved.followed < MOST_OF_PAIR;
        if is_within {
            self.states -= 1;
            proved.followed += 1;
        }
        is_within
    }
}

/// Returns the states in which two clusters are in different stages.
fn mixed(ones: usize, others: usize) -> impl Iterator<Item = StagePair> {
    let pair = |sender, receiver| StagePair { sender, receiver };
    let all = (OLD..ones).flat_map(move |one| (OLD..others).map(move |other| pair(one, other)));
    // A cluster with one stage is the same in all of them.
    all.filter(move |it| it.sender != it.receiver && 1 < ones && 1 < others)
}

/// A stage for every cluster: one of two, by a bit of the cluster's number. Every two clusters differ in a
/// bit, so a few mixtures have every pair in both combinations.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Mixture {
    bit: u32,
    /// By the value of the bit.
    stages: [StageId; 2],
}

impl Mixture {
    pub(super) fn new(SitePair { from, to }: SitePair, stages: StagePair) -> Self {
        let bit = (from.index() ^ to.index()).trailing_zeros();
        let mut stages = [stages.sender, stages.receiver];
        if from.index() >> bit & 1 == 1 {
            stages.reverse();
        }
        Self { bit, stages }
    }

    /// Returns the stages of two clusters.
    fn of_pair(self, SitePair { from, to }: SitePair) -> StagePair {
        StagePair { sender: self.of(from), receiver: self.of(to) }
    }

    fn of(self, site: SiteId) -> StageId {
        let [zero, one] = self.stages;
        if site.index() >> self.bit & 1 == 1 { one } else { zero }
    }
}
