//! Paths: which of them hold in every state on the way from the old to the new version.
//!
//! Both clusters of a path can have their old or their new Peers, or any table in between, independently
//! of each other. A path is followed in a mixed state only if both clusters see it otherwise than in the
//! states that are known (`docs/internals/changes.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::held::{Blocks, Held, KnownPaths, StateProof};
use super::stages::{NEW, OLD, Passage, Passages, StageId, StagePair, Touched};
use crate::agent::fabric::{Fabric, Site, SiteId, SitePair, Sites};
use crate::proof::reach::{BlockLikeness, Reach};

/// The most fabrics of clusters in different stages.
const MOST_MIXED: usize = 64;

/// The paths from one cluster to another in every state.
pub(super) struct Proved {
    /// The clusters.
    pub(super) pair: SitePair,
    /// The paths that work with the old Peers.
    pub(super) old: StateProof,
    /// The paths of which everything works with the new Peers.
    pub(super) new: Held,
    /// The paths that work with the old Peers and still do with the new ones. Of a path that works in
    /// part, the proof does not know which part that is, so it counts only if all of it works now, or if
    /// both clusters treat its packets as before.
    pub(super) kept: StateProof,
    /// The paths that work with both, but not while one cluster has its old and the other its new
    /// Peers.
    pub(super) apart: Held,
    /// The paths that work with both, but not in a state that stays.
    pub(super) stuck: Held,
    /// The paths that work with both, but not in a state that passes.
    pub(super) paused: Held,
    /// The number of states that were proved.
    pub(super) states: usize,
    /// States of the sender and of the receiver that have to be followed.
    mixed: Vec<StagePair>,
}

/// All proofs of a fleet on its way.
pub(super) struct PathProof {
    /// The paths between clusters that changes can touch.
    pub(super) proved: Vec<Proved>,
    /// Clusters with states that are too many to be proved.
    pub(super) unproven: BTreeSet<SiteId>,
    /// The address blocks of every cluster.
    pub(super) blocks: Sites<Blocks>,
}

impl PathProof {
    /// Proves everything that changes can touch.
    pub(super) fn new(passages: &Passages, touched: &Touched, after: &Fabric) -> Self {
        let blocks = passages.0.map(|it| Blocks::new(&it.peers.after));
        let most = passages.0.iter().map(Passage::stages).max();
        let stages = 0..most.unwrap_or_default().max(2);
        let fabrics: Vec<Fabric> = stages
            .clone()
            .map(|stage| fabric(passages, stage, after))
            .collect();
        let reaches: Vec<Reach> = fabrics
            .iter()
            .enumerate()
            .map(|(stage, fabric)| {
                let is_there = |it: SiteId| stage < 2 || stage < passages.0[it].stages();
                Reach::among(fabric, |viewer, home| {
                    touched.has(viewer, home) && (is_there(viewer) || is_there(home))
                })
            })
            .collect();
        let prover = Prover {
            passages,
            blocks: &blocks,
            reaches: &reaches,
        };
        let senders: Vec<SiteId> = passages.0.ids().collect();
        let found = senders.into_par_iter();
        let known = || prover.known();
        let found = found.map_init(known, |known, from| prover.from(from, touched, known));
        let found: Vec<Vec<Proved>> = found.collect();
        let mut pairs: Vec<Proved> = found.into_iter().flatten().collect();
        let unproven = prover.mix(&mut pairs);
        Self {
            proved: pairs,
            unproven,
            blocks,
        }
    }
}

/// Returns all clusters in one stage. In that of the new Peers they are those of the new version.
fn fabric<'t>(passages: &'t Passages, stage: StageId, after: &Fabric) -> Fabric<'t> {
    let sites = passages.0.iter().map(|it| it.site(stage));
    Fabric::shared(sites.collect(), Some(after))
}

struct Prover<'p, 'f, 'a> {
    passages: &'p Passages<'p>,
    blocks: &'p Sites<Blocks>,
    /// By stage.
    reaches: &'p [Reach<'f, 'a>],
}

impl<'p> Prover<'p, '_, '_> {
    /// Proves the paths from a cluster with both clusters in the same stage, and finds the mixed states
    /// that have to be followed.
    fn from(&self, from: SiteId, touched: &Touched, known: &mut [KnownPaths<'p>]) -> Vec<Proved> {
        let others = touched.others(from);
        let pairs = others.filter_map(|to| self.between(SitePair { from, to }, known));
        pairs.collect()
    }

    /// Returns room for what is found by stage.
    fn known(&self) -> Vec<KnownPaths<'p>> {
        self.reaches.iter().map(|_| KnownPaths::default()).collect()
    }

    fn between(&self, pair: SitePair, known: &mut [KnownPaths<'p>]) -> Option<Proved> {
        let [of_sender, of_receiver] = pair.both().map(|it| self.passages.0[it].stages());
        let mut proofs = Vec::new();
        for stage in 0..of_sender.max(of_receiver) {
            let (reach, known) = (self.reaches.get(stage)?, known.get_mut(stage)?);
            proofs.push(StateProof::new(reach, pair, self.blocks, known));
        }
        let old = proofs.first()?.clone();
        let new = proofs.get(NEW).unwrap_or(&old).whole.clone();
        let lost = self.missing(pair, StagePair::same(NEW), &old, &new);
        let kept = old.without(&lost);
        let mut proved = Proved {
            pair,
            new,
            kept,
            apart: Held::default(),
            stuck: Held::default(),
            paused: Held::default(),
            states: of_sender * of_receiver,
            mixed: Vec::new(),
            old,
        };
        for (stage, proof) in proofs.iter().enumerate().skip(2) {
            let missing = self.missing(pair, StagePair::same(stage), &proved.kept, &proof.whole);
            if pair.both().iter().any(|it| self.is_final(*it, stage)) {
                proved.stuck.add(&missing);
            } else {
                proved.paused.add(&missing);
            }
        }
        let kept = proved.kept.any();
        let states = mixed(of_sender, of_receiver);
        let open = states.filter(|it| !self.open(pair, *it, &kept).is_empty());
        proved.mixed = open.collect();
        Some(proved)
    }

    fn is_final(&self, site: SiteId, stage: StageId) -> bool {
        let table = stage.checked_sub(2);
        let tables = &self.passages.0[site].arriving.tables;
        let table = table.and_then(|it| tables.get(it));
        table.is_some_and(|it| it.is_final)
    }

    /// Returns the paths that may not hold in a state as they do in others.
    fn missing(&self, pair: SitePair, stages: StagePair, paths: &StateProof, holds: &Held) -> Held {
        let mut missing = paths.whole.without(holds);
        let partial = paths.partial.without(holds);
        missing.add(&self.open(pair, stages, &partial));
        missing
    }

    /// Returns the paths of which no other state decides: with one stage, not that of the old Peers; with two,
    /// neither that in which both clusters have the sender's nor that in which both have the receiver's.
    fn open(
        &self,
        SitePair { from, to }: SitePair,
        StagePair {
            sender: one,
            receiver: other,
        }: StagePair,
        paths: &Held,
    ) -> Held {
        let is_mixed = one != other;
        let reaches = self.reaches.get(if is_mixed { one } else { OLD });
        let likeness = |home, viewer| match (reaches, self.reaches.get(other)) {
            (Some(one), Some(other)) if !paths.is_empty() => one.likeness(other, home, viewer),
            _ => Vec::new(),
        };
        let (senders, receivers) = (likeness(from, to), likeness(to, from));
        paths.between(&senders, &receivers, |sender: BlockLikeness, receiver| {
            let by_sender = sender.is_seen_alike && receiver.is_handled_alike;
            let by_receiver = receiver.is_seen_alike && sender.is_handled_alike;
            if is_mixed {
                !by_sender && !by_receiver
            } else {
                !by_sender || !by_receiver
            }
        })
    }

    /// Follows the paths in mixed states. Clusters with too many of them are returned.
    fn mix(&self, proved: &mut [Proved]) -> BTreeSet<SiteId> {
        let mut groups: BTreeMap<Mixture, Vec<usize>> = BTreeMap::new();
        for (place, it) in proved.iter().enumerate() {
            for stages in &it.mixed {
                let mixture = Mixture::new(it.pair, *stages);
                groups.entry(mixture).or_default().push(place);
            }
        }
        let mut unproven = BTreeSet::new();
        for (number, (mixture, places)) in groups.into_iter().enumerate() {
            let pairs: BTreeSet<SitePair> = places
                .iter()
                .filter_map(|it| proved.get(*it))
                .map(|it| it.pair)
                .collect();
            if MOST_MIXED <= number {
                unproven.extend(pairs.iter().flat_map(|it| it.both()));
                continue;
            }
            let held = self.held(mixture, &pairs);
            for place in places {
                let Some(it) = proved.get_mut(place) else {
                    continue;
                };
                let Some(held) = held.get(&it.pair) else {
                    continue;
                };
                let SitePair { from, to } = it.pair;
                let stages = StagePair {
                    sender: mixture.of(from),
                    receiver: mixture.of(to),
                };
                let missing = self.missing(it.pair, stages, &it.kept, held);
                if stages.sender <= NEW && stages.receiver <= NEW {
                    it.apart.add(&missing);
                } else if self.is_final(from, stages.sender) || self.is_final(to, stages.receiver) {
                    it.stuck.add(&missing);
                } else {
                    it.paused.add(&missing);
                }
            }
        }
        unproven
    }

    /// Proves the paths between some clusters in a mixed state.
    fn held(&self, mixture: Mixture, pairs: &BTreeSet<SitePair>) -> BTreeMap<SitePair, Held> {
        let passages = self.passages.0.numbered();
        let sites = passages.map(|(site, it)| it.site(mixture.of(site)));
        let sites: Vec<Arc<Site>> = sites.collect();
        let known = self.reaches.first().map(|it| it.fabric);
        let fabric = Fabric::shared(sites, known);
        let reach = Reach::among(&fabric, |viewer, home| {
            let pair = SitePair {
                from: viewer,
                to: home,
            };
            pairs.contains(&pair) || pairs.contains(&pair.back())
        });
        let mut known = KnownPaths::default();
        let mut held = BTreeMap::new();
        for pair in pairs {
            let proof = StateProof::new(&reach, *pair, self.blocks, &mut known);
            held.insert(*pair, proof.whole);
        }
        held
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
struct Mixture {
    bit: u32,
    /// By the value of the bit.
    stages: [StageId; 2],
}

impl Mixture {
    fn new(SitePair { from, to }: SitePair, stages: StagePair) -> Self {
        let bit = (from.index() ^ to.index()).trailing_zeros();
        let mut stages = [stages.sender, stages.receiver];
        if from.index() >> bit & 1 == 1 {
            stages.reverse();
        }
        Self { bit, stages }
    }

    fn of(self, site: SiteId) -> StageId {
        let [zero, one] = self.stages;
        if site.index() >> self.bit & 1 == 1 {
            one
        } else {
            zero
        }
    }
}
