//! Old controls: the paths of a version that the controls of an older one refuse.
//!
//! ```text
//!  addresses of the version          controls of the old version
//!     │ old_clusters                    │ path_control
//!  the old clusters as which        the addresses that a control
//!  each of them counts              is about, on both sides
//!     │                                 │
//!     │        asked_paths: what is open, fails or is not declared
//!     └───────────────┬─────────────────┘
//!        the refused paths of each control, by old clusters and classes
//!                     │ refused_paths
//!        those that the old version did not have
//! ```
//!
//! Both versions are judged alike, so a control that never held reports nothing. Each version is asked about
//! its paths once for all controls, and at most a few pairs of clusters are listed for each control.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::expectation::{ExpectationJudge, LeftOut, PAIRS_OF_STEP};
use super::reach::{AddressBlock, Reach, address_blocks};
use super::verify::{Asked, ClassPair, Declared};
use crate::agent::fabric::{AwakeClusters, Fabric, SiteId, SitePair, Sites};
use crate::mesh::Mesh;
use crate::name::ClusterName;
use asked_paths::{ClassPaths, PathQuestion, Question};
use old_clusters::{CountedAddresses, OldNodes};
use path_control::{ControlledSide, Direction, SideKey, SideParts};
use refused_paths::{KnownAddresses, PathRectangle};

pub use old_clusters::OldClusters;
pub use path_control::{AcceptedNetworks, PathControl};
pub use refused_paths::{RefusedPair, RefusedPaths};

mod asked_paths;
mod old_clusters;
mod path_control;
mod refused_paths;

/// A version of a fleet.
#[derive(Clone, Copy)]
pub struct JudgedVersion<'v, 'a> {
    /// The Peers of every cluster.
    pub fabric: &'v Fabric<'a>,
    /// Its meshes, which declare paths.
    pub meshes: &'v [Mesh],
    /// Whether checks of the nodes leave one out of the mesh.
    pub left_out: &'v dyn LeftOut,
}

/// Too many steps for a proof.
#[derive(Clone, Copy, Debug)]
pub struct TooManySteps;

/// A control with its index.
type NumberedControl<'n, 'c> = (usize, &'n PathControl<'c>);

/// The old clusters as which both sides count, and the classes of their addresses.
type Cell<'c> = ([&'c ClusterName; 2], ClassPair);

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
    let clusters = OldClusters::new(old.meshes, Some((old.fabric, new.fabric)), new.meshes);
    let nodes = OldNodes::new(old.fabric);
    let mut refused = Vec::new();
    for question in [Question::Fails, Question::IsOpen, Question::IsUndeclared] {
        let asked = controls.iter().enumerate().filter(|it| it.1.question() == question);
        let asked: Vec<NumberedControl> = asked.collect();
        let judge = ControlJudge { question, clusters: &clusters, nodes: &nodes, most };
        let added = judge.with_paths(new, &asked, |now| {
            let all = asked.par_iter().copied();
            let refusing: Vec<NumberedControl> =
                all.filter(|it| now.refused(it.1).next().is_some()).collect();
            judge.with_paths(old, &refusing, |before| {
                let known = KnownAddresses::new(old.fabric);
                let added = refusing.par_iter().filter_map(|(index, control)| {
                    let (now, before) = (now.cells(control), before.cells(control));
                    refused_paths::added(*index, new.fabric, &now, &before, &known)
                });
                added.collect::<Vec<_>>()
            })
        });
        refused.extend(added.transpose()?.flatten().transpose()?.into_iter().flatten());
    }
    refused.sort_by_key(|it| it.control);
    Ok(refused)
}

/// Returns the expectations that are about no address of the new version on a side, and were about some of the old one.
pub fn unjudged<'c>(
    controls: &[PathControl<'c>],
    old: JudgedVersion<'c, '_>,
    new: JudgedVersion<'c, '_>,
) -> Vec<usize> {
    let clusters = OldClusters::new(old.meshes, Some((old.fabric, new.fabric)), new.meshes);
    let nodes = OldNodes::new(old.fabric);
    let before = old.fabric.sites.map(|it| clusters.blocks(it, &nodes));
    let now = new.fabric.sites.map(|it| clusters.blocks(it, &nodes));
    let is_any =
        |control: &PathControl<'c>, fabric: &Fabric, counted: &Sites<CountedAddresses<'c>>| {
            control.sides(Direction::Sending).iter().all(|side| {
                let mut sites = fabric.sites.numbered();
                sites.any(|(id, it)| !side.parts(&counted[id], it, &address_blocks(it)).is_empty())
            })
        };
    let controls = controls.iter().enumerate();
    let expectations = controls.filter(|it| matches!(it.1, PathControl::Expectation(_)));
    let unjudged = expectations
        .filter(|it| is_any(it.1, old.fabric, &before) && !is_any(it.1, new.fabric, &now));
    unjudged.map(|it| it.0).collect()
}

/// A question about paths, and what the controls that ask it need.
struct ControlJudge<'j, 'c> {
    question: Question,
    clusters: &'j OldClusters<'c>,
    nodes: &'j OldNodes<'c>,
    most: u64,
}

/// The paths of a version that controls may refuse.
struct VersionPaths<'p, 'f, 'a, 'c> {
    fabric: &'p Fabric<'a>,
    /// The old clusters as which the addresses of each cluster count.
    counted: Sites<CountedAddresses<'c>>,
    declared: &'p Declared<'f, 'a, 'p>,
    /// By the sender and the receiver.
    asked: Sites<Sites<Vec<ClassPaths<'p>>>>,
}

impl<'c> ControlJudge<'_, 'c> {
    /// Asks what some controls need to know of a version; nothing if there are none. Whether a path is open is asked as for
    /// `expect: Deny`, with all tunnels up; whether a path works, as it is.
    fn with_paths<R>(
        &self,
        version: JudgedVersion,
        controls: &[NumberedControl<'_, 'c>],
        then: impl FnOnce(&VersionPaths<'_, '_, '_, 'c>) -> R,
    ) -> Option<Result<R, TooManySteps>> {
        if controls.is_empty() {
            return None;
        }
        let reach = Reach::new(version.fabric, self.most);
        if self.most < reach.steps() {
            return Some(Err(TooManySteps));
        }
        if self.question == Question::Fails {
            return Some(self.ask(&reach, version, controls, then));
        }
        let awake = AwakeClusters::find(version.fabric);
        let open = awake.open(version.fabric);
        Some(self.ask(&reach.opened(&awake, &open), version, controls, then))
    }

    fn ask<R>(
        &self,
        reach: &Reach,
        version: JudgedVersion,
        controls: &[NumberedControl<'_, 'c>],
        then: impl FnOnce(&VersionPaths<'_, '_, '_, 'c>) -> R,
    ) -> Result<R, TooManySteps> {
        let fabric = reach.fabric;
        let counted = fabric.sites.map(|it| self.clusters.blocks(it, self.nodes));
        let about = controls.iter().flat_map(|(_, control)| {
            let ways = control.directions().iter();
            ways.map(|way| control.sides(*way).each_ref().map(|it| about(it, &counted)))
        });
        let about: Vec<[Sites<bool>; 2]> = about.collect();
        let having = |it: &Sites<bool>| it.iter().filter(|it| **it).count();
        let pairs: usize = about.iter().map(|[from, to]| having(from) * having(to)).sum();
        if u64::try_from(pairs / PAIRS_OF_STEP).is_ok_and(|it| self.most < it) {
            return Err(TooManySteps);
        }
        let is_asked = |pair: SitePair| about.iter().any(|it| it[0][pair.from] && it[1][pair.to]);
        let asked_meshes = Asked { meshes: version.meshes, lists_undeclared: false, allowed: None };
        let declared = Declared::new(fabric, asked_meshes);
        let judge = ExpectationJudge::new(reach, version.left_out);
        let question = PathQuestion { question: self.question, judge: &judge, declared: &declared };
        let asked = question.all(is_asked);
        if self.most < walked(&asked, &about) {
            return Err(TooManySteps);
        }
        Ok(then(&VersionPaths { fabric, counted, declared: &declared, asked }))
    }
}

/// Returns how many blocks are looked at, if each control looks at all paths between the clusters that it is about.
fn walked(asked: &Sites<Sites<Vec<ClassPaths>>>, about: &[[Sites<bool>; 2]]) -> u64 {
    let blocks = asked.numbered().flat_map(|(from, all)| {
        all.numbered().map(move |(to, paths)| {
            let blocks = paths.iter().map(|it| it.senders.len() + it.receivers.len());
            (from, to, blocks.sum::<usize>() as u64)
        })
    });
    let blocks: Vec<(SiteId, SiteId, u64)> = blocks.filter(|it| 0 < it.2).collect();
    let of_control = about.iter().map(|[sending, receiving]| {
        let own = blocks.iter().filter(|(from, to, _)| sending[*from] && receiving[*to]);
        own.map(|it| it.2).sum::<u64>()
    });
    of_control.sum()
}

/// Returns which clusters may have addresses on a side.
fn about(side: &ControlledSide, counted: &Sites<CountedAddresses>) -> Sites<bool> {
    counted.map(|it| it.clusters().any(|it| side.may_have(it)))
}

impl<'c> VersionPaths<'_, '_, '_, 'c> {
    fn cells(&self, control: &PathControl<'c>) -> Cells<'c> {
        let mut cells = Cells::new();
        for (cell, paths) in self.refused(control) {
            cells.entry(cell).or_default().push(paths);
        }
        cells
    }

    /// Finds the paths that a control refuses.
    fn refused<'s>(
        &'s self,
        control: &'s PathControl<'c>,
    ) -> impl Iterator<Item = (Cell<'c>, PathRectangle)> {
        control.directions().iter().flat_map(move |way| {
            let sides = control.sides(*way);
            let [sending, receiving] = sides.each_ref().map(|it| about(it, &self.counted));
            let ids = || self.fabric.sites.ids();
            let pairs = ids().filter(|it| sending[*it]).flat_map(|from| {
                let to = ids().filter(|it| receiving[*it]);
                to.map(move |to| SitePair { from, to }).collect::<Vec<_>>()
            });
            let pairs: Vec<SitePair> = pairs.collect();
            pairs.into_iter().flat_map(move |pair| {
                let paths = self.asked[pair.from][pair.to].iter();
                let parts = paths.flat_map(|it| self.split(control, &sides, pair, it));
                parts.collect::<Vec<_>>()
            })
        })
    }

    /// Splits paths by the old clusters as which both sides count, and returns those that a control refuses.
    fn split(
        &self,
        control: &PathControl<'c>,
        [sending, receiving]: &[ControlledSide<'_, 'c>; 2],
        pair: SitePair,
        paths: &ClassPaths,
    ) -> Vec<(Cell<'c>, PathRectangle)> {
        let [home, away] = pair.both().map(|it| (&self.counted[it], self.fabric.site(it)));
        let senders = sending.parts(home.0, home.1, &paths.senders);
        if senders.is_empty() {
            return Vec::new();
        }
        let receivers = receiving.parts(away.0, away.1, &paths.receivers);
        let (from, to) = paths.classes;
        let are_declared = control.question() == Question::IsUndeclared
            && Declared::are_declared(from, to)
            && !receivers.is_empty();
        let [senders, receivers] =
            [(senders, pair), (receivers, pair.back())].map(|(parts, pair)| {
                if are_declared { self.by_declaration(parts, pair) } else { undeclared(parts) }
            });
        let mut refused = Vec::new();
        for ((sender, is_sent), sources) in &senders {
            let receivers = receivers.iter().filter(|it| !(*is_sent && it.0.1));
            for ((receiver, _), destinations) in receivers {
                if control.forbids(sender, receiver) {
                    let cell = ([sender.cluster, receiver.cluster], paths.classes);
                    let parts = paths.parts(self.fabric, pair, sources, destinations);
                    refused.extend(parts.into_iter().map(|it| (cell, it)));
                }
            }
        }
        refused
    }

    /// Splits parts of the first cluster by whether a link declares them to the second.
    fn by_declaration(&self, parts: SideParts<'c>, pair: SitePair) -> DeclaredParts<'c> {
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

/// Parts of blocks, with whether a link declares them.
type DeclaredParts<'c> = BTreeMap<(SideKey<'c>, bool), Vec<AddressBlock>>;

/// Returns parts that no link declares.
fn undeclared(parts: SideParts<'_>) -> DeclaredParts<'_> {
    parts.into_iter().map(|(key, blocks)| ((key, false), blocks)).collect()
}
