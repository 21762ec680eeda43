//! Outage proofs: the declared paths of others that an outage ends.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::harmless::HarmlessLosses;
use super::lost_nodes::LostNodes;
use super::obstacle::OutageObstacle;
use super::settled::settled;
use crate::agent::fabric::{At, Fabric, Site, SiteId, SitePair, Sites};
use crate::changes::blocks::Blocks;
use crate::changes::path_set::PathSet;
use crate::changes::state_proof::{KnownPaths, StateProof};
use crate::mesh::AddressClass;
use crate::proof::reach::{AddressBlock, Reach};
use crate::proof::verify::{Asked, ClassPair, Declared};
use crate::snapshot::Snapshot;

/// The declared paths that work without an outage, with which those of outages are compared.
pub struct OutageProof<'r, 'f, 'a, 'm> {
    reach: &'r Reach<'f, 'a>,
    /// The declared paths; none if all paths are meant.
    declared: Option<Declared<'f, 'a, 'm>>,
    pub(super) blocks: Sites<Blocks>,
    harmless: HarmlessLosses<'f, 'a>,
    /// The paths from each cluster to the others, found when they are needed.
    working: Sites<OnceLock<Sites<StateProof>>>,
    /// The largest number of steps of a proof.
    pub(super) most: u64,
}

/// The effect of an outage.
#[derive(Clone, Debug, Default)]
pub struct OutageResult {
    /// The declared paths that worked and do not work any more, and of which no end is lost.
    pub ended: Vec<LostPaths>,
}

/// Paths between two clusters that end.
#[derive(Clone, Debug)]
pub struct LostPaths {
    /// The clusters.
    pub pair: SitePair,
    /// Their number, by class of sender and receiver.
    pub classes: BTreeMap<ClassPair, u64>,
    /// The sender and the receiver of one of them.
    pub example: Option<[AddressBlock; 2]>,
    /// The paths.
    pub(crate) paths: PathSet,
}

impl OutageResult {
    /// Returns the number of paths that end.
    pub fn paths(&self) -> u64 {
        self.ended.iter().map(LostPaths::count).sum()
    }
}

impl LostPaths {
    /// Returns their number.
    pub fn count(&self) -> u64 {
        self.classes.values().sum()
    }
}

impl<'r, 'f, 'a, 'm> OutageProof<'r, 'f, 'a, 'm> {
    /// Prepares proofs of at most `most` steps each, given the proof without an outage.
    pub fn new(reach: &'r Reach<'f, 'a>, asked: Asked<'m>, most: u64) -> Self {
        let declared = Declared::new(reach.fabric, asked);
        Self::of(reach, Some(declared), most)
    }

    /// Prepares the same for all paths, declared or not.
    pub fn of_all_paths(reach: &'r Reach<'f, 'a>, most: u64) -> Self {
        Self::of(reach, None, most)
    }

    fn of(reach: &'r Reach<'f, 'a>, declared: Option<Declared<'f, 'a, 'm>>, most: u64) -> Self {
        let fabric = reach.fabric;
        Self {
            declared,
            blocks: fabric.sites.map(|it| Blocks::new(it)),
            harmless: HarmlessLosses::new(fabric),
            working: fabric.sites.map(|_| OnceLock::new()),
            reach,
            most,
        }
    }

    /// Returns the clusters.
    pub fn fabric(&self) -> &'f Fabric<'a> {
        self.reach.fabric
    }

    /// Returns the senders and receivers of paths that end.
    pub fn ends(&self, ended: &LostPaths) -> Vec<[AddressBlock; 2]> {
        let block = |site: SiteId, place: usize| self.blocks[site].all.get(place).copied();
        let SitePair { from, to } = ended.pair;
        let rows = ended.paths.rows();
        let ends = rows.flat_map(|(sender, row)| row.ones().map(move |it| (sender, it)));
        ends.filter_map(|(sender, receiver)| Some([block(from, sender)?, block(to, receiver)?]))
            .collect()
    }

    /// Returns whether a loss is recognised as one that ends no path of others, without a proof.
    pub fn is_harmless(&self, lost: &LostNodes) -> bool {
        let are_all = |site: SiteId| lost.are_all_of(self.fabric(), site);
        lost.by_site().all(|it| are_all(it.0)) || self.harmless.have(lost)
    }

    /// Finds the paths of others that end when nodes are lost.
    ///
    /// # Errors
    /// It is not known which.
    pub fn examine(&self, lost: &LostNodes) -> Result<OutageResult, OutageObstacle> {
        if self.is_harmless(lost) {
            return Ok(OutageResult::default());
        }
        self.prove(lost)
    }

    /// Finds the same by a proof, even if the loss is recognised as harmless.
    ///
    /// # Errors
    /// As for [`OutageProof::examine`].
    pub fn prove(&self, lost: &LostNodes) -> Result<OutageResult, OutageObstacle> {
        let fabric = self.fabric();
        let snapshots = self.settled(lost)?;
        let version = |(site, snapshot): (&SiteId, _)| {
            let it = fabric.site(*site);
            (*site, Site::new(it.entry, snapshot, it.files))
        };
        let after = fabric.with_versions(snapshots.iter().map(version).collect());
        let is_wanted = |one: SiteId, other: SiteId| {
            let is_left = |it| !lost.touch(it) || snapshots.contains_key(&it);
            let is_changed = |it| snapshots.contains_key(&it);
            is_left(one) && is_left(other) && (is_changed(one) || is_changed(other))
        };
        let reach = Reach::beside(&after, self.reach, self.most, is_wanted);
        if self.most < reach.steps() {
            return Err(OutageObstacle::Steps);
        }
        let mut known = KnownPaths::default();
        let sites = || fabric.sites.ids();
        let pairs = sites().flat_map(|from| sites().map(move |to| SitePair { from, to }));
        let pairs = pairs.filter(|it| it.from != it.to && is_wanted(it.from, it.to));
        let ended = pairs.filter_map(|pair| {
            let working = self.working(pair);
            if working.is_empty() {
                return None;
            }
            let left = StateProof::new(&reach, pair, &self.blocks, &mut known);
            self.ended(pair, &working.without(&left.whole), lost)
        });
        Ok(OutageResult {
            ended: ended.collect(),
        })
    }

    /// Returns the snapshots of the clusters that lose some of their nodes, once the agents of the others have
    /// converged. Of a cluster without nodes, all paths have an end that is lost; between other clusters nothing
    /// differs, since no packet passes a third one.
    pub(super) fn settled(
        &self,
        lost: &LostNodes,
    ) -> Result<BTreeMap<SiteId, Snapshot>, OutageObstacle> {
        let fabric = self.fabric();
        let changed = lost.by_site().filter(|it| !lost.are_all_of(fabric, it.0));
        changed
            .map(|(site, nodes)| Ok((site, settled(fabric, site, nodes)?)))
            .collect()
    }

    /// Returns the declared paths that work between two clusters.
    pub(super) fn working(&self, pair: SitePair) -> &PathSet {
        &self.state(pair).whole
    }

    /// Returns the declared paths between two clusters that work for some of their addresses.
    pub(super) fn working_in_part(&self, pair: SitePair) -> &PathSet {
        &self.state(pair).partial
    }

    fn state(&self, pair: SitePair) -> &StateProof {
        let of_sender = self.working[pair.from].get_or_init(|| {
            let mut known = KnownPaths::default();
            let sites = &self.fabric().sites;
            sites.map_ids(|to| self.state_of(SitePair { to, ..pair }, &mut known))
        });
        &of_sender[pair.to]
    }

    fn state_of(&self, pair: SitePair, known: &mut KnownPaths<'r>) -> StateProof {
        if pair.from == pair.to {
            return StateProof::default();
        }
        let [senders, receivers] = self.declared(pair);
        let is_any = |it: &[Option<AddressClass>]| it.iter().any(Option::is_some);
        if !is_any(&senders) || !is_any(&receivers) {
            return StateProof::default();
        }
        let is_everything = self.declared.is_none();
        let StateProof { whole, partial } = StateProof::new(self.reach, pair, &self.blocks, known);
        let [whole, partial] = [whole, partial].map(|it| {
            it.between(&senders, &receivers, |from, to| {
                is_everything || are_declared(from, to)
            })
        });
        StateProof { whole, partial }
    }

    /// Returns the class of each block of two clusters that a link declares.
    fn declared(&self, pair: SitePair) -> [Vec<Option<AddressClass>>; 2] {
        [pair, pair.back()].map(|SitePair { from, to }| {
            let blocks = &self.blocks[from].all;
            let declared = self.declared.as_ref();
            let declared = declared.map(|it| it.promised(from, to, blocks));
            let declared = declared.unwrap_or_else(|| vec![true; blocks.len()]);
            let all = blocks.iter().zip(declared);
            all.map(|(it, is_declared)| it.owner.class().filter(|_| is_declared))
                .collect()
        })
    }

    /// Returns those of some paths of which no end is lost.
    fn ended(&self, pair: SitePair, paths: &PathSet, lost: &LostNodes) -> Option<LostPaths> {
        let is_left = |site: SiteId, it: &AddressBlock| {
            let node = it.owner.node().map(|node| At { site, node });
            node.is_none_or(|it| !lost.contain(it))
        };
        self.narrowed(pair, paths, |from, to| {
            is_left(pair.from, from) && is_left(pair.to, to)
        })
    }

    /// Returns those of some paths whose sender and receiver are meant.
    pub(super) fn narrowed(
        &self,
        pair: SitePair,
        paths: &PathSet,
        are_meant: impl Fn(&AddressBlock, &AddressBlock) -> bool,
    ) -> Option<LostPaths> {
        let mut ended = LostPaths {
            pair,
            classes: BTreeMap::new(),
            example: None,
            paths: PathSet::default(),
        };
        let block = |site: SiteId, place: usize| self.blocks[site].all.get(place);
        for (group, row) in paths.groups() {
            for from in group {
                let sender = block(pair.from, from);
                let mut meant = self.blocks[pair.to].none();
                for to in row.ones() {
                    let Some(ends) = sender.zip(block(pair.to, to)) else {
                        continue;
                    };
                    let classes = ends.0.owner.class().zip(ends.1.owner.class());
                    if let Some(classes) = classes.filter(|_| are_meant(ends.0, ends.1)) {
                        meant.insert(to);
                        *ended.classes.entry(classes).or_default() += 1;
                        ended.example.get_or_insert([*ends.0, *ends.1]);
                    }
                }
                let mut senders = self.blocks[pair.from].none();
                senders.insert(from);
                ended.paths.add_rows(&senders, &meant);
            }
        }
        ended.example.is_some().then_some(ended)
    }
}

/// Returns whether a link declares paths between two blocks of declared classes.
fn are_declared(from: Option<AddressClass>, to: Option<AddressClass>) -> bool {
    let classes = from.zip(to);
    classes.is_some_and(|(from, to)| Declared::are_declared(from, to))
}
