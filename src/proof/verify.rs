//! Verification: whether every cluster reaches what its links promise, and nothing else.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use rayon::prelude::*;

use super::excused::Excused;
use super::reach::{Counts, Proven, Reach};
use crate::agent::fabric::{AwakeClusters, NodeRef, SiteId, SitePair, Sites};
use crate::mesh::Mesh;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use assumption::AlikePremises;
use failures::Failures;
use judge::PairJudge;
use leaks::BoundedPeers;
use links::MeshLinks;
use promise::Promises;
use unallowed::FoundUnallowed;

pub use assumption::Assumption;
pub use declared::Declared;
pub use failures::Failure;
pub use leaks::{Leak, LeakedRange, Outsider};
pub use links::Asked;
pub use single_points::SinglePoint;
pub use tally::{ClassPair, Pairing, Tallies, Tally};
pub use unallowed::Unallowed;
pub use undeclared::{Paths, Undeclared};
pub use unowned::Unowned;

mod single_points;
mod assumption;
mod leaks;
mod cause;
mod declared;
mod failures;
mod judge;
mod link_terms;
mod linked_peers;
mod links;
mod promise;
mod tally;
mod unallowed;
mod undeclared;
mod unowned;

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// All ordered pairs of clusters.
    pub pairings: Vec<Pairing>,
    /// Declared paths that fail, one entry for each cause, those with the most paths first. Of many
    /// causes of one kind between two clusters, or in one, a few have their own entries and the others share one.
    pub failures: Vec<Failure>,
    /// The premises of declared paths that work only under one, an entry for each kind, the widest first.
    pub assumptions: Vec<Assumption>,
    /// The paths to other clusters that work and that no link declares.
    pub leaks: Vec<Leak>,
    /// The undeclared paths that work, by range, if they are asked for.
    pub undeclared: Option<Vec<Undeclared>>,
    /// The undeclared paths that work although the expectations forbid them.
    pub unallowed: Vec<Unallowed>,
    /// The indexes of the allowed paths that allow one that works.
    pub used: BTreeSet<usize>,
    /// The addresses of no node that clusters send to each other, if undeclared paths are asked for.
    pub unowned: Vec<Unowned>,
    /// Peers that do not lead to a node of the fleet.
    pub outsiders: Vec<Outsider>,
    /// Nodes without which something is cut.
    pub single_points: Vec<SinglePoint>,
    /// Declared pod CIDRs of nodes that take part, and that Kilo does not carry packets to.
    pub uncarried: BTreeMap<SiteId, Vec<Cidr>>,
    /// Nodes without any declared path, because Kilo ignores them or they are not selected.
    pub apart: Vec<NodeRef>,
    /// Whether no two clusters are to exchange Peers, as all others are joining or leaving.
    pub is_idle: bool,
}

impl Verification {
    /// Returns the linked pairs of clusters that have a declared path in one direction, in both directions.
    pub fn with_paths(&self) -> BTreeSet<SitePair> {
        let linked = self.pairings.iter().filter(|it| it.is_linked && it.has_declared());
        linked.map(Pairing::pair).flat_map(|it| [it, it.back()]).collect()
    }
}

/// Verifies clusters, from one of them after another.
struct Verifier<'r, 'f, 'a> {
    reach: &'r Reach<'f, 'a>,
    asked: Asked<'r>,
    links: MeshLinks<'r>,
    promises: Sites<Promises>,
    /// The ranges that each cluster declares.
    declared: Sites<Prefixes<()>>,
    bounded: BoundedPeers<'r>,
    /// The ranges that nodes' claims take away; none if failures are not to be explained.
    excused: Option<&'r Excused>,
}

/// The result of a verification from one cluster.
#[derive(Default)]
struct ProofPart {
    /// Whether a promise does not hold.
    fails: bool,
    pairings: Vec<Pairing>,
    failures: Failures,
    assumptions: BTreeMap<AlikePremises, Assumption>,
    leaks: Vec<Leak>,
    undeclared: undeclared::FoundPaths,
    unallowed: FoundUnallowed,
}

/// Verifies all clusters, from several of them at the same time.
pub fn verify(reach: &Reach, asked: Asked) -> Verification {
    verify_excusing(reach, asked, &Excused::default())
}

/// Verifies all clusters if every declared path works. Otherwise it returns nothing, and spends
/// nothing on causes.
pub fn verify_sound(reach: &Reach, asked: Asked) -> Option<Verification> {
    let verifier = Verifier::new(reach, asked, None);
    let parts = verifier.sites().map(|from| {
        let part = verifier.from(from);
        (!part.fails).then_some(part)
    });
    Some(verifier.join(parts.collect::<Option<_>>()?))
}

/// Verifies all clusters, and distinguishes the effects of nodes' claims from those of mistakes in
/// the mesh.
pub fn verify_excusing(reach: &Reach, asked: Asked, excused: &Excused) -> Verification {
    let verifier = Verifier::new(reach, asked, Some(excused));
    let mut verification = verifier.prove();
    if asked.allowed.is_some() {
        // A forbidden path must not be open, however nodes dial now.
        let awake = AwakeClusters::find(reach.fabric);
        let fabric = awake.open(reach.fabric);
        let open = reach.opened(&awake, &fabric);
        let open = Verifier::new(&open, asked, Some(excused)).prove();
        (verification.unallowed, verification.used) = (open.unallowed, open.used);
    }
    verification
}

impl<'r, 'f, 'a> Verifier<'r, 'f, 'a> {
    /// Finds what is promised.
    fn new(reach: &'r Reach<'f, 'a>, asked: Asked<'r>, excused: Option<&'r Excused>) -> Self {
        let fabric = reach.fabric;
        let declared = fabric.sites.map(|it| leaks::declared(it));
        Self {
            reach,
            asked,
            links: MeshLinks::new(fabric, asked.meshes),
            promises: fabric.sites.map_ids(|site| Promises::collect(fabric, site, excused)),
            bounded: leaks::bounded(fabric, &declared),
            declared,
            excused,
        }
    }

    /// Returns the clusters, several of which are verified at the same time.
    fn sites(&self) -> impl IndexedParallelIterator<Item = SiteId> {
        let sites: Vec<SiteId> = self.reach.fabric.sites.ids().collect();
        sites.into_par_iter()
    }

    fn prove(&self) -> Verification {
        self.join(self.sites().map(|from| self.from(from)).collect())
    }

    /// Verifies what one cluster sends; none needs another for that.
    fn from(&self, from: SiteId) -> ProofPart {
        let (reach, fabric) = (self.reach, self.reach.fabric);
        let mut part = ProofPart::default();
        let mut proven = Proven::default();
        let mut apart: BTreeMap<&Counts, Arc<Tallies>> = BTreeMap::new();
        // Many clusters have the same.
        let mut known: BTreeSet<Arc<Tallies>> = BTreeSet::new();
        for to in fabric.sites.ids().filter(|to| *to != from) {
            let exchange = self.links.exchange(from, to);
            if exchange.is_none() && reach.is_kept(from, to) {
                let (senders, receivers) = (reach.counts(from), reach.counts(to));
                let tallies = apart
                    .entry(receivers)
                    .or_insert_with(|| Arc::new(tally::nothing(senders, receivers)));
                part.pairings.push(Pairing {
                    from,
                    to,
                    is_linked: false,
                    tallies: Arc::clone(tallies),
                });
                continue;
            }
            let mut judge = self.judge(SitePair { from, to });
            // An undeclared path is shown by a packet of its own.
            let mut anew = Proven::default();
            let proven = if exchange.is_some() { &mut proven } else { &mut anew };
            for verdict in reach.between(from, to, proven) {
                judge.count(&verdict, &mut part);
            }
            part.fails |= judge.tallies.values().any(Tally::fails);
            if part.fails && self.excused.is_none() {
                return part;
            }
            part.pairings.push(Pairing {
                from,
                to,
                is_linked: exchange.is_some(),
                tallies: tally::shared(judge.tallies, &mut known),
            });
        }
        part.leaks.extend(leaks::undeclared(
            fabric,
            from,
            &self.links,
            &self.declared,
            &self.bounded,
        ));
        part
    }

    fn judge(&self, pair: SitePair) -> PairJudge<'_, 'f, 'a> {
        let SitePair { from, to } = pair;
        let exchange = self.links.exchange(from, to);
        PairJudge {
            reach: self.reach,
            pair,
            link: self.links.between(from, to).map(|it| it.kind),
            terms: exchange.map(|it| {
                [it.terms(&self.promises[from]), it.reversed().terms(&self.promises[to])]
            }),
            excused: [self.excused(from, to), self.excused(to, from)],
            asked: self.asked,
            explains: self.excused.is_some(),
            tallies: Tallies::with_room(),
        }
    }

    /// Returns what one cluster does not get of another because of nodes' claims.
    fn excused(&self, target: SiteId, source: SiteId) -> &'r [Cidr] {
        let cluster = |number: SiteId| self.reach.fabric.site(number).cluster;
        self.excused.map_or(&[], |it| it.ranges(cluster(target), cluster(source)))
    }

    /// Joins what came of it from each of the clusters, in their order.
    fn join(&self, parts: Vec<ProofPart>) -> Verification {
        let mut verification = Verification {
            outsiders: leaks::outsiders(self.reach.fabric),
            single_points: single_points::single_points(self.reach.fabric, &self.links),
            is_idle: !self.asked.meshes.iter().any(Mesh::exchanges),
            ..Verification::default()
        };
        if self.asked.lists_undeclared {
            verification.unowned = unowned::unowned(self.reach.fabric, &self.links);
        }
        let mut failures = Failures::default();
        let mut assumptions: BTreeMap<AlikePremises, Assumption> = BTreeMap::new();
        let mut found = undeclared::FoundPaths::new();
        let mut unallowed = FoundUnallowed::default();
        for part in parts {
            found.extend(part.undeclared);
            unallowed.join(part.unallowed);
            verification.pairings.extend(part.pairings);
            verification.leaks.extend(part.leaks);
            failures.join(part.failures);
            for (alike, assumption) in part.assumptions {
                match assumptions.entry(alike) {
                    Entry::Vacant(entry) => drop(entry.insert(assumption)),
                    Entry::Occupied(mut entry) => entry.get_mut().add(assumption),
                }
            }
        }
        verification.undeclared = undeclared::listed(self.reach.fabric, self.asked, found);
        verification.unallowed = unallowed.paths.into_values().collect();
        verification.used = unallowed.used;
        verification.assumptions = assumptions.into_values().collect();
        verification.assumptions.sort_by_key(|it| Reverse(it.pairs));
        verification.failures = failures.in_order();
        for (site, promises) in self.promises.numbered() {
            if !promises.uncarried.is_empty() {
                verification.uncarried.insert(site, promises.uncarried.clone());
            }
            let nodes = promises.peered.numbered();
            let apart =
                nodes.filter(|(_, is_peered)| !**is_peered).map(|(node, _)| NodeRef { site, node });
            verification.apart.extend(apart);
        }
        verification
    }
}

impl Verification {
    /// Returns whether all promises hold, and nothing else does.
    pub fn holds(&self) -> bool {
        self.failures.is_empty() && self.leaks.is_empty()
    }

    /// Returns the tallies of all pairs, each with how many pairs that follow each other share them.
    pub fn tallies(&self) -> impl Iterator<Item = (&Tallies, u64)> {
        let alike = self.pairings.chunk_by(|one, other| Arc::ptr_eq(&one.tallies, &other.tallies));
        alike.filter_map(|alike| {
            let times = u64::try_from(alike.len()).unwrap_or(u64::MAX);
            Some((&*alike.first()?.tallies, times))
        })
    }

    /// Returns the sum of all pairs.
    pub fn total(&self) -> Tally {
        self.tallies()
            .flat_map(|(alike, times)| alike.values().map(move |tally| (tally, times)))
            .fold(Tally::default(), |sum, (tally, times)| Tally {
                promised: sum.promised + times * tally.promised,
                kept: sum.kept + times * tally.kept,
                assumed: sum.assumed + times * tally.assumed,
                routed: sum.routed + times * tally.routed,
                others: sum.others + times * tally.others,
                reached: sum.reached + times * tally.reached,
            })
    }
}
