//! Old controls: the paths of a version that the controls of an older one refuse.
//!
//! ```text
//!  addresses of the version          controls of the old version
//!     │ old_clusters                    │ path_control
//!  the old clusters as which        the addresses that a control
//!  each of them counts              is about, on both sides
//!     └───────────────┬─────────────────┘
//!        the refused paths, by control, old clusters and classes
//!                     │ refused_paths
//!        those that the old version did not have
//! ```
//!
//! Both versions are judged alike, so a control that never held reports nothing.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::expectation::{keeps_for_certain, traces};
use super::reach::{AddressBlock, ClassFate, ClassVerdict, Endings, Proven, Reach, address_blocks};
use super::verify::{Asked, ClassPair, Declared};
use crate::agent::fabric::{Fabric, SiteId, SitePair};
use crate::mesh::Mesh;
use crate::name::ClusterName;
use path_control::{Direction, SideKey, SideParts};
use refused_paths::{KnownAddresses, PathRectangle};

pub use old_clusters::OldClusters;
pub use path_control::{AcceptedNetworks, PathControl};
pub use refused_paths::RefusedPaths;

mod old_clusters;
mod path_control;
mod refused_paths;

/// A version of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct JudgedVersion<'v, 'a> {
    /// The Peers of every cluster.
    pub fabric: &'v Fabric<'a>,
    /// Its meshes, which declare paths.
    pub meshes: &'v [Mesh],
}

/// Too many steps for a proof.
#[derive(Clone, Copy, Debug)]
pub struct TooManySteps;

/// The control, the old clusters as which both sides count, and the classes of their addresses.
type Cell<'c> = (usize, [&'c ClusterName; 2], ClassPair);

/// Refused paths of one cluster.
type CellPaths<'c> = Vec<(Cell<'c>, PathRectangle)>;

/// The refused paths of a version.
type Cells<'c> = BTreeMap<Cell<'c>, Vec<PathRectangle>>;

/// Returns what controls of the old version refuse in the new one and did not refuse in the old one, in the order of
/// the controls.
///
/// # Errors
/// The proof of a version takes more than `most` steps.
pub fn refused<'c>(
    controls: &[PathControl<'c>],
    old: JudgedVersion<'c, '_>,
    new: JudgedVersion<'c, '_>,
    most: u64,
) -> Result<Vec<RefusedPaths>, TooManySteps> {
    if controls.is_empty() {
        return Ok(Vec::new());
    }
    let clusters = OldClusters::new(old.meshes, Some(old.fabric), new.meshes);
    let judge = ControlJudge { controls, clusters: &clusters, most };
    let now = judge.cells(new, |_| true)?;
    if now.is_empty() {
        return Ok(Vec::new());
    }
    let refusing: BTreeSet<usize> = now.keys().map(|it| it.0).collect();
    let before = judge.cells(old, |it| refusing.contains(&it))?;
    let known = KnownAddresses::new(old.fabric);
    Ok(refused_paths::added(new.fabric, &now, &before, &known))
}

/// Returns the expectations that are about no address of the new version on a side, and were about some of the old one.
pub fn unjudged<'c>(
    controls: &[PathControl<'c>],
    old: JudgedVersion<'c, '_>,
    new: JudgedVersion<'c, '_>,
) -> Vec<usize> {
    let clusters = OldClusters::new(old.meshes, Some(old.fabric), new.meshes);
    let is_any = |control: &PathControl<'c>, fabric: &Fabric| {
        control.sides(Direction::Sending).iter().all(|side| {
            let mut sites = fabric.sites.iter();
            sites.any(|it| !side.parts(&clusters, it, &address_blocks(it)).is_empty())
        })
    };
    let controls = controls.iter().enumerate();
    let expectations = controls.filter(|it| matches!(it.1, PathControl::Expectation(_)));
    let unjudged = expectations.filter(|it| is_any(it.1, old.fabric) && !is_any(it.1, new.fabric));
    unjudged.map(|it| it.0).collect()
}

/// The controls of the old version, and its clusters.
struct ControlJudge<'j, 'c> {
    controls: &'j [PathControl<'c>],
    clusters: &'j OldClusters<'c>,
    most: u64,
}

/// A proof, and the paths that the meshes of its version declare.
struct ControlProof<'p, 'f, 'a> {
    reach: &'p Reach<'f, 'a>,
    declared: Declared<'f, 'a, 'p>,
    /// The controls that it judges, each in a direction.
    controls: Vec<(usize, Direction)>,
}

impl<'c> ControlJudge<'_, 'c> {
    /// Finds what some controls refuse in a version. Whether a path is open is asked as for `expect: Deny`, with all tunnels
    /// up; whether a path works, as it is.
    fn cells(
        &self,
        version: JudgedVersion,
        is_asked: impl Fn(usize) -> bool,
    ) -> Result<Cells<'c>, TooManySteps> {
        let controls = self.controls.iter().enumerate().filter(|it| is_asked(it.0));
        let (needed, forbidden): (Vec<_>, Vec<_>) = controls.partition(|it| it.1.is_reach());
        let directed = |controls: Vec<(usize, &PathControl<'c>)>| -> Vec<(usize, Direction)> {
            let both = controls.into_iter();
            both.flat_map(|(index, it)| it.directions().iter().map(move |way| (index, *way)))
                .collect()
        };
        let (needed, forbidden) = (directed(needed), directed(forbidden));
        if needed.is_empty() && forbidden.is_empty() {
            return Ok(Cells::new());
        }
        let reach = Reach::new(version.fabric, self.most);
        if self.most < reach.steps() {
            return Err(TooManySteps);
        }
        let asked = Asked { meshes: version.meshes, lists_undeclared: false, allowed: None };
        let open = version.fabric.with_open_tunnels();
        let open = reach.of_tunnels(&open);
        let mut cells = Cells::new();
        for (reach, controls) in [(&reach, needed), (&open, forbidden)] {
            if !controls.is_empty() {
                let declared = Declared::new(reach.fabric, asked);
                let proof = ControlProof { reach, declared, controls };
                self.add(&proof, &mut cells);
            }
        }
        Ok(cells)
    }

    /// Adds what the controls of a proof refuse.
    fn add(&self, proof: &ControlProof, cells: &mut Cells<'c>) {
        let fabric = proof.reach.fabric;
        let counting: Vec<BTreeSet<&ClusterName>> =
            fabric.sites.iter().map(|it| self.clusters.of_site(it)).collect();
        let sides = proof.controls.iter();
        let sides = sides.map(|(index, way)| self.controls[*index].may_be_about(*way, &counting));
        let about: Vec<[Vec<bool>; 2]> = sides.collect();
        let is_needed = proof.controls.iter().any(|it| self.controls[it.0].is_reach());
        let senders: Vec<SiteId> = fabric.sites.ids().collect();
        let found = senders.into_par_iter().flat_map_iter(|from| {
            let mut found = Vec::new();
            let mut proven = Proven::default();
            let is_certain = !is_needed && keeps_for_certain(fabric.site(from));
            let is_open = |to: &SiteId| !is_certain || !proof.reach.is_kept(from, *to);
            for to in fabric.sites.ids().filter(|to| *to != from && is_open(to)) {
                let pair = SitePair { from, to };
                let controls = proof.controls.iter().zip(&about);
                let controls = controls.filter(|(_, [sending, receiving])| {
                    sending[from.index()] && receiving[to.index()]
                });
                let controls = controls.map(|it| it.0);
                let controls: Vec<&(usize, Direction)> = controls.collect();
                if !controls.is_empty() {
                    self.between(proof, pair, &controls, &mut proven, &mut found);
                }
            }
            found
        });
        for (cell, paths) in found.collect::<Vec<_>>() {
            cells.entry(cell).or_default().push(paths);
        }
    }

    /// Finds the refused paths between two clusters.
    fn between<'p>(
        &self,
        proof: &ControlProof<'p, '_, '_>,
        pair: SitePair,
        controls: &[&(usize, Direction)],
        proven: &mut Proven<'p>,
        found: &mut CellPaths<'c>,
    ) {
        let reach = proof.reach;
        let is_needed = controls.iter().any(|it| self.controls[it.0].is_reach());
        for verdict in reach.between(pair.from, pair.to, proven) {
            let followed = if is_needed { vec![verdict] } else { reach.follow(pair, &verdict) };
            for verdict in followed {
                for (index, way) in controls {
                    let control = &self.controls[*index];
                    let is_refused = control.refuses(&verdict);
                    if is_refused != Some(false) {
                        let refused = RefusedVerdict {
                            proof,
                            pair,
                            verdict: &verdict,
                            is_whole: is_refused == Some(true),
                        };
                        self.split(&refused, (*index, *way), found);
                    }
                }
            }
        }
    }

    /// Splits the paths of a verdict by the old clusters as which both sides count, and adds those that a control
    /// refuses.
    fn split(
        &self,
        refused: &RefusedVerdict,
        (index, way): (usize, Direction),
        found: &mut CellPaths<'c>,
    ) {
        let control = &self.controls[index];
        let RefusedVerdict { proof, pair, verdict, .. } = *refused;
        let [home, away] = pair.both().map(|it| proof.reach.fabric.site(it));
        let [sending, receiving] = control.sides(way);
        let senders = sending.parts(self.clusters, home, &verdict.senders);
        if senders.is_empty() {
            return;
        }
        let receivers = receiving.parts(self.clusters, away, &verdict.receivers);
        let are_declared = control.is_undeclared()
            && Declared::are_declared(verdict.from, verdict.to)
            && !receivers.is_empty();
        let [senders, receivers] =
            [(senders, pair), (receivers, pair.back())].map(|(parts, pair)| {
                if are_declared { proof.by_declaration(parts, pair) } else { undeclared(parts) }
            });
        for ((sender, is_sent), sources) in &senders {
            let receivers = receivers.iter().filter(|it| !(*is_sent && it.0.1));
            for ((receiver, _), destinations) in receivers {
                if control.forbids(sender, receiver) {
                    let clusters = [sender.cluster, receiver.cluster];
                    let cell = (index, clusters, (verdict.from, verdict.to));
                    let paths = refused.rectangles(sources, destinations);
                    found.extend(paths.into_iter().map(|it| (cell, it)));
                }
            }
        }
    }
}

/// Parts of blocks, with whether a link declares them.
type DeclaredParts<'c> = BTreeMap<(SideKey<'c>, bool), Vec<AddressBlock>>;

/// Returns parts that no link declares.
fn undeclared(parts: SideParts<'_>) -> DeclaredParts<'_> {
    parts.into_iter().map(|(key, blocks)| ((key, false), blocks)).collect()
}

impl ControlProof<'_, '_, '_> {
    /// Splits parts of the first cluster by whether a link declares them to the second.
    fn by_declaration<'c>(&self, parts: SideParts<'c>, pair: SitePair) -> DeclaredParts<'c> {
        let mut declared = DeclaredParts::new();
        for (key, blocks) in parts {
            let promised = self.declared.promised(pair.from, pair.to, &blocks);
            for (block, is_declared) in blocks.into_iter().zip(promised) {
                declared.entry((key.clone(), is_declared)).or_default().push(block);
            }
        }
        declared
    }
}

/// A verdict about paths, of which some or all are refused.
struct RefusedVerdict<'r, 'p, 'f, 'a> {
    proof: &'r ControlProof<'p, 'f, 'a>,
    pair: SitePair,
    verdict: &'r ClassVerdict<'r>,
    /// Whether all packets have the same result.
    is_whole: bool,
}

impl RefusedVerdict<'_, '_, '_, '_> {
    /// Returns the refused paths between some blocks of both sides. If packets between them end differently, each pair is
    /// followed.
    fn rectangles(
        &self,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> Vec<PathRectangle> {
        let whole = |senders: &[AddressBlock], receivers: &[AddressBlock]| PathRectangle {
            pair: self.pair,
            senders: senders.to_vec(),
            receivers: receivers.to_vec(),
        };
        if self.is_whole {
            return vec![whole(senders, receivers)];
        }
        let pairs = senders.iter().flat_map(|it| receivers.iter().map(move |to| (it, to)));
        let open = pairs.filter(|(sender, receiver)| {
            let mut traces = traces(self.proof.reach.fabric, self.pair, **sender, **receiver);
            traces.any(|it| Endings::from_traces([&it]).may_arrive)
        });
        open.map(|(one, other)| whole(&[*one], &[*other])).collect()
    }
}

impl PathControl<'_> {
    /// Returns whether it refuses the paths of a verdict: all, none, or those of some addresses.
    fn refuses(&self, verdict: &ClassVerdict) -> Option<bool> {
        if self.is_reach() {
            return Some(!verdict.holds());
        }
        if matches!(verdict.fate, ClassFate::Proven) {
            return Some(true);
        }
        let mut open = verdict.traces().iter().map(|it| {
            let is_answered = self.is_undeclared();
            if is_answered { it.is_delivered() } else { Endings::from_traces([it]).may_arrive }
        });
        let first = open.next().unwrap_or_default();
        open.all(|it| it == first).then_some(first)
    }
}
