//! Outage proofs: the declared paths of others that an outage ends.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::harmless::HarmlessLosses;
use super::lost_nodes::LostNodes;
use super::obstacle::Obstacle;
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
    declared: Declared<'f, 'a, 'm>,
    blocks: Sites<Blocks>,
    harmless: HarmlessLosses<'f, 'a>,
    /// The paths from each cluster to the others, found when they are needed.
    working: Sites<OnceLock<Sites<PathSet>>>,
    /// The largest number of steps of a proof.
    most: u64,
}

/// The effect of an outage.
#[derive(Clone, Debug, Default)]
pub struct OutageResult {
    /// The declared paths that worked and do not work any more, and of which no end is lost.
    pub ended: Vec<EndedPaths>,
}

/// Paths between two clusters that end.
#[derive(Clone, Debug)]
pub struct EndedPaths {
    /// The clusters.
    pub pair: SitePair,
    /// Their number, by class of sender and receiver.
    pub classes: BTreeMap<ClassPair, u64>,
    /// The sender and the receiver of one of them.
    pub example: [AddressBlock; 2],
    /// The paths.
    pub(crate) paths: PathSet,
}

impl OutageResult {
    /// Returns the number of paths that end.
    pub fn paths(&self) -> u64 {
        self.ended.iter().map(EndedPaths::count).sum()
    }
}

impl EndedPaths {
    /// Returns their number.
    pub fn count(&self) -> u64 {
        self.classes.values().sum()
    }
}

impl<'r, 'f, 'a, 'm> OutageProof<'r, 'f, 'a, 'm> {
    /// Prepares proofs of at most `most` steps each, given the proof without an outage.
    pub fn new(reach: &'r Reach<'f, 'a>, asked: Asked<'m>, most: u64) -> Self {
        let fabric = reach.fabric;
        Self {
            declared: Declared::new(fabric, asked),
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
    pub fn ends(&self, ended: &EndedPaths) -> Vec<[AddressBlock; 2]> {
        let block = |site: SiteId, place: usize| self.blocks[site].all.get(place).copied();
        let SitePair { from, to } = ended.pair;
        let rows = ended.paths.rows();
        let ends = rows.flat_map(|(sender, row)| row.ones().map(move |it| (sender, it)));
        ends.filter_map(|(sender, receiver)| Some([block(from, sender)?, block(to, receiver)?]))
            .collect()
    }

    /// Returns whether a loss is recognised as one that ends no path of others, without a proof.
    pub fn is_harmless(&self, lost: &LostNodes) -> bool {
        self.harmless.have(lost)
    }

    /// Finds the paths of others that end when nodes are lost.
    ///
    /// # Errors
    /// It is not known which.
    pub fn examine(&self, lost: &LostNodes) -> Result<OutageResult, Obstacle> {
        if self.is_harmless(lost) {
            return Ok(OutageResult::default());
        }
        self.prove(lost)
    }

    /// Finds the same by a proof, even if the loss is recognised as harmless.
    ///
    /// # Errors
    /// As for [`OutageProof::examine`].
    pub fn prove(&self, lost: &LostNodes) -> Result<OutageResult, Obstacle> {
        let fabric = self.fabric();
        // Of a cluster without nodes, all paths have an end that is lost. Between other clusters nothing differs,
        // since no packet passes a third one.
        let changed: Vec<SiteId> = lost
            .by_site()
            .map(|it| it.0)
            .filter(|it| !lost.are_all_of(fabric, *it))
            .collect();
        let snapshots = changed.iter().map(|site| {
            let nodes = lost.by_site().find(|it| it.0 == *site);
            let nodes = nodes.map(|it| it.1.clone()).unwrap_or_default();
            Ok((*site, settled(fabric, *site, &nodes)?))
        });
        let snapshots: BTreeMap<SiteId, Snapshot> = snapshots.collect::<Result<_, _>>()?;
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
        let reach = Reach::among(&after, self.most, is_wanted);
        if self.most < reach.steps() {
            return Err(Obstacle::Steps);
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

    /// Returns the declared paths that work between two clusters.
    fn working(&self, pair: SitePair) -> &PathSet {
        let of_sender = self.working[pair.from].get_or_init(|| {
            let mut known = KnownPaths::default();
            self.fabric().sites.map_ids(|to| {
                let pair = SitePair { to, ..pair };
                if pair.from == to {
                    return PathSet::default();
                }
                let [senders, receivers] = self.declared(pair);
                if !senders.iter().any(Option::is_some) || !receivers.iter().any(Option::is_some) {
                    return PathSet::default();
                }
                let all = StateProof::new(self.reach, pair, &self.blocks, &mut known).whole;
                all.between(&senders, &receivers, are_declared)
            })
        });
        &of_sender[pair.to]
    }

    /// Returns the class of each block of two clusters that a link declares.
    fn declared(&self, pair: SitePair) -> [Vec<Option<AddressClass>>; 2] {
        [pair, pair.back()].map(|SitePair { from, to }| {
            let blocks = &self.blocks[from].all;
            let declared = self.declared.promised(from, to, blocks);
            let all = blocks.iter().zip(declared);
            all.map(|(it, is_declared)| it.owner.class().filter(|_| is_declared))
                .collect()
        })
    }

    /// Returns those of some paths of which no end is lost.
    fn ended(&self, pair: SitePair, paths: &PathSet, lost: &LostNodes) -> Option<EndedPaths> {
        if paths.is_empty() {
            return None;
        }
        let left = |site: SiteId| {
            let is_left = |it: &AddressBlock| {
                let node = it.owner.node().map(|node| At { site, node });
                node.is_none_or(|it| !lost.contain(it))
            };
            let blocks = self.blocks[site].all.iter();
            let classes = blocks.map(|it| it.owner.class().filter(|_| is_left(it)));
            classes.collect::<Vec<_>>()
        };
        let [senders, receivers] = pair.both().map(left);
        let paths = paths.between(&senders, &receivers, are_declared);
        let mut classes = BTreeMap::new();
        let mut example = None;
        for (group, row) in paths.groups() {
            for from in &group {
                for to in row.ones() {
                    let ends = [(&senders, *from), (&receivers, to)];
                    let [Some(from_class), Some(to_class)] =
                        ends.map(|(classes, place)| classes.get(place).copied().flatten())
                    else {
                        continue;
                    };
                    *classes.entry((from_class, to_class)).or_default() += 1;
                    example.get_or_insert((*from, to));
                }
            }
        }
        let (from, to) = example?;
        let block = |site: SiteId, place: usize| self.blocks[site].all.get(place).copied();
        Some(EndedPaths {
            example: [block(pair.from, from)?, block(pair.to, to)?],
            pair,
            classes,
            paths,
        })
    }
}

/// Returns whether a link declares paths between two blocks of declared classes.
fn are_declared(from: Option<AddressClass>, to: Option<AddressClass>) -> bool {
    let classes = from.zip(to);
    classes.is_some_and(|(from, to)| Declared::are_declared(from, to))
}
