//! Outage proofs: the declared paths of others that an outage ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use fixedbitset::FixedBitSet;

use super::after_loss::snapshot_after_loss;
use super::harmless::HarmlessLosses;
use super::lost_nodes::LostNodes;
use super::obstacle::OutageObstacle;
use crate::agent::fabric::{Fabric, NodeRef, SiteId, SitePair, Sites};
use crate::changes::blocks::Blocks;
use crate::changes::path_set::PathSet;
use crate::changes::state_proof::{KnownPaths, StateProof};
use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::mesh::AddressClass;
use crate::proof::reach::{AddressBlock, Reach};
use crate::proof::verify::{Asked, ClassPair, Declared};
use crate::snapshot::Snapshot;

/// The steps of a proof that take as long as it takes to read a node again and to find its place in its cluster.
const STEPS_OF_NODE: u64 = 32;

/// The declared paths that work without an outage, with which those of outages are compared.
pub struct OutageProof<'r, 'f, 'a, 'm> {
    reach: &'r Reach<'f, 'a>,
    /// The declared paths; none if all paths are meant.
    declared: Option<Declared<'f, 'a, 'm>>,
    pub(super) blocks: Sites<Blocks>,
    classes: Sites<Vec<(AddressClass, FixedBitSet)>>,
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
    /// The number of steps of the proof.
    pub(super) steps: u64,
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
    pub(crate) paths: PathSet,
}

impl OutageResult {
    /// Returns the number of paths that end.
    pub fn paths(&self) -> u64 {
        self.ended.iter().map(LostPaths::count).sum()
    }
}

impl LostPaths {
    /// Returns whether one of them leads to a range of a whole cluster.
    pub(super) fn leads_to_a_range(&self) -> bool {
        self.classes.keys().any(|it| matches!(it.1, AddressClass::Service | AddressClass::Network))
    }

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
        let blocks = fabric.sites.map(|it| Blocks::new(it));
        Self {
            declared,
            classes: blocks.map(by_class),
            blocks,
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
        let is_apart =
            |site: SiteId| lost.are_all_of(self.fabric(), site) || !self.has_working_path(site);
        self.harmless.have(lost) || lost.by_site().all(|it| is_apart(it.0))
    }

    /// Returns whether any declared path from or to a cluster works.
    fn has_working_path(&self, site: SiteId) -> bool {
        let others = self.fabric().sites.ids().filter(|it| *it != site);
        others.into_iter().any(|to| self.are_linked(SitePair { from: site, to }))
    }

    /// Returns how many steps it takes to form the clusters again that lose some of their nodes.
    pub(super) fn steps_of_nodes(&self, lost: &LostNodes) -> u64 {
        let changed = lost.by_site().filter(|it| !lost.are_all_of(self.fabric(), it.0));
        let nodes: usize = changed.map(|it| self.fabric().site(it.0).reading.nodes.len()).sum();
        u64::try_from(nodes).unwrap_or(u64::MAX).saturating_mul(STEPS_OF_NODE)
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
        self.prove_within(lost, self.most)
    }

    pub(super) fn prove_within(
        &self,
        lost: &LostNodes,
        most: u64,
    ) -> Result<OutageResult, OutageObstacle> {
        let snapshots = self.snapshots_after_loss(lost)?;
        let versions = snapshots.iter().map(|(&number, snapshot)| {
            let site = self.fabric().site(number);
            let reading = Cluster::new(site.entry, snapshot);
            (number, Arc::new(site.with_nodes(reading)))
        });
        let after = self.fabric().with_versions(versions.collect());
        let sites = || self.fabric().sites.ids();
        let is_left = |it: &SiteId| !lost.touch(*it) || snapshots.contains_key(it);
        let pairs = snapshots
            .keys()
            .flat_map(|site| sites().filter(is_left).map(|it| SitePair { from: *site, to: it }));
        let linked = pairs.filter(|it| it.from != it.to && self.are_linked(*it));
        let pairs: BTreeSet<SitePair> = linked.flat_map(|it| [it, it.back()]).collect();
        let is_wanted = |from, to| pairs.contains(&SitePair { from, to });
        let reach = Reach::beside(&after, self.reach, most, is_wanted);
        let steps = reach.steps();
        if most < steps {
            return Err(OutageObstacle::Steps);
        }
        let mut known = KnownPaths::default();
        let left = self.left(lost);
        let ended = pairs.iter().filter_map(|&pair| {
            let working = self.working(pair);
            if working.is_empty() {
                return None;
            }
            let now = StateProof::new(&reach, pair, &self.blocks, &mut known);
            let mut ended = working.without(&now.whole);
            ended.retain(&left[pair.from], &left[pair.to]);
            self.counted(pair, ended)
        });
        Ok(OutageResult { ended: ended.collect(), steps })
    }

    /// Returns the snapshots of the clusters that lose some of their nodes, once the agents of the others have
    /// converged. Of a cluster without nodes, all paths have an end that is lost; between other clusters nothing
    /// differs, since no packet passes a third one.
    pub(super) fn snapshots_after_loss(
        &self,
        lost: &LostNodes,
    ) -> Result<BTreeMap<SiteId, Snapshot>, OutageObstacle> {
        let fabric = self.fabric();
        let changed = lost.by_site().filter(|it| !lost.are_all_of(fabric, it.0));
        changed.map(|(site, nodes)| Ok((site, snapshot_after_loss(fabric, site, nodes)?))).collect()
    }

    /// Returns the declared paths that work between two clusters.
    pub(super) fn working(&self, pair: SitePair) -> &PathSet {
        &self.state(pair).whole
    }

    /// Returns whether any declared path works between two clusters.
    fn are_linked(&self, pair: SitePair) -> bool {
        [pair, pair.back()].map(|it| self.working(it).is_empty()) != [true; 2]
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
            it.between(&senders, &receivers, |from, to| is_everything || are_declared(from, to))
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
            all.map(|(it, is_declared)| it.owner.class().filter(|_| is_declared)).collect()
        })
    }

    /// Returns the blocks of each cluster whose owners are not lost. A range of a whole cluster is lost with its last node.
    pub(super) fn left(&self, lost: &LostNodes) -> Sites<FixedBitSet> {
        self.fabric().sites.map_ids(|site| {
            let is_lost = |it: NodeId| lost.contain(NodeRef { site, node: it });
            let is_gone = lost.are_all_of(self.fabric(), site);
            self.blocks[site].of(|it| !it.owner.node().map_or(is_gone, is_lost))
        })
    }

    /// Returns some paths with their numbers, if there is any.
    pub(super) fn counted(&self, pair: SitePair, paths: PathSet) -> Option<LostPaths> {
        let [senders, receivers] = pair.both().map(|it| &self.classes[it]);
        let mut classes: BTreeMap<ClassPair, u64> = BTreeMap::new();
        let mut example = None;
        for (group, row) in paths.groups() {
            let first = group.first().zip(row.minimum());
            example = example.or(first.map(|(from, to)| (*from, to)));
            for (from, of_class) in senders {
                let senders = group.iter().filter(|it| of_class.contains(**it)).count();
                for (to, of_class) in receivers {
                    let paths = senders * row.intersection_count(of_class);
                    if 0 < paths {
                        let paths = u64::try_from(paths).unwrap_or(u64::MAX);
                        *classes.entry((*from, *to)).or_default() += paths;
                    }
                }
            }
        }
        let block = |site: SiteId, place: usize| self.blocks[site].all.get(place).copied();
        let (from, to) = example?;
        Some(LostPaths {
            pair,
            classes,
            example: Some([block(pair.from, from)?, block(pair.to, to)?]),
            paths,
        })
    }
}

/// Returns the blocks of a cluster by class.
fn by_class(blocks: &Blocks) -> Vec<(AddressClass, FixedBitSet)> {
    let classes: BTreeSet<AddressClass> =
        blocks.all.iter().filter_map(|it| it.owner.class()).collect();
    let of_class = |class| blocks.of(|it| it.owner.class() == Some(class));
    classes.into_iter().map(|it| (it, of_class(it))).collect()
}

/// Returns whether a link declares paths between two blocks of declared classes.
fn are_declared(from: Option<AddressClass>, to: Option<AddressClass>) -> bool {
    from.zip(to).is_some_and(|(from, to)| Declared::are_declared(from, to))
}
