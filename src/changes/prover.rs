//! The prover: which paths work while the two clusters of a path are in different stages. A path is followed only in states
//! of which no other state decides.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::blocks::Blocks;
use super::cluster_transition::{ClusterTransitions, NEW, OLD, StageId, StagePair, StagedClusters};
use super::path_set::PathSet;
use super::state_proof::{Interruption, KnownPaths, ProofBudget, Proved, StateProof};
use crate::agent::fabric::{Fabric, SiteId, SitePair, Sites};
use crate::proof::reach::{BlockLikeness, Reach};

/// The proofs of a fleet on its way.
pub(super) struct Prover<'p, 'f, 'a, 's> {
    /// The clusters on their way.
    pub(super) transitions: &'p ClusterTransitions<'s>,
    /// The address blocks of every cluster.
    pub(super) blocks: &'p Sites<Blocks>,
    /// The clusters with the old and with the new Peers.
    pub(super) ends: &'p [Reach<'f, 'a>; 2],
}

impl Prover<'_, '_, '_, '_> {
    /// Returns how many stages both clusters have.
    pub(super) fn stages(&self, pair: SitePair) -> [usize; 2] {
        pair.both().map(|it| self.transitions.0[it].stages())
    }

    /// Returns how long a path is interrupted that does not work in a state.
    pub(super) fn interruption(&self, pair: SitePair, stages: StagePair) -> Interruption {
        let is_final = |(site, stage): (SiteId, StageId)| self.transitions.0[site].is_final(stage);
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

/// The views that clusters have of each other in two stages.
#[derive(Clone, Copy)]
pub(super) struct SeenStages<'r, 'f, 'a, 'g, 'b> {
    /// The first stage.
    pub(super) one: &'r Reach<'f, 'a>,
    /// The second stage.
    pub(super) other: &'r Reach<'g, 'b>,
    /// True if the sender's cluster is in the first stage and the receiver's in the second. Otherwise both are in the
    /// second, and the first is that of the old Peers.
    is_mixed: bool,
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
        transitions: &'p ClusterTransitions<'s>,
        stage: impl Fn(SiteId) -> StageId,
    ) -> StagedClusters<'p, 's> {
        let sites = self.sites();
        StagedClusters::new(transitions, |it| if sites.contains(&it) { stage(it) } else { NEW })
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
            self.mixed(it.pair).any(|it| NEW < it.most())
                && !it.rest(Interruption::Stuck).is_empty()
        });
        let most =
            open.0.iter().flat_map(|it| it.both()).map(|it| self.transitions.0[it].stages()).max();
        let staged = (OLD..most.unwrap_or(OLD)).map(|it| open.staged(self.transitions, |_| it));
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

    /// Proves the paths between some clusters in a mixed state, if the steps last. Those that hold where they do with
    /// the old Peers count as whole.
    pub(super) fn held(
        &self,
        mixture: Mixture,
        pairs: &OpenPairs,
        steps: &mut ProofBudget,
    ) -> Option<BTreeMap<SitePair, StateProof>> {
        if pairs.is_empty() {
            return Some(BTreeMap::new());
        }
        let staged = pairs.staged(self.transitions, |it| mixture.of(it));
        let [_, with_new] = self.ends;
        let fabric = staged.fabric(with_new.fabric);
        let reach = pairs.reach(&fabric, steps)?;
        let mut known = KnownPaths::default();
        let proofs = pairs.0.iter().map(|pair| {
            let mut proof = StateProof::new(&reach, *pair, self.blocks, &mut known);
            let [with_old, _] = self.ends;
            let as_before = proof.parts_as_before(*pair, self.blocks, with_old.fabric, &fabric);
            proof.whole.add(&as_before);
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
        self.seen(stages)
            .filter(|_| !paths.is_empty())
            .is_some_and(|it| !it.open(pair, paths).is_empty())
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
