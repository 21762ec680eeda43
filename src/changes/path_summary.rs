//! Path summaries: what was proved about each pair of clusters, counted, beside what held in the old
//! version.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::blocks::{Blocks, EndKind, PathEnd, PlaceMap, translation};
use super::cause::NamedNode;
use super::cluster_transition::ClusterTransitions;
use super::clusters::Counterparts;
use super::path_change::{EndedPaths, OpenedPaths, PathChange, PathCounts};
use super::path_set::{PathSet, Translated};
use super::paths::PathProof;
use super::state_proof::{KnownPaths, Proved, StateProof};
use super::{Version, Versions};
use crate::agent::fabric::{Fabric, SiteId, SitePair, Sites};
use crate::name::ClusterName;
use crate::proof::reach::Reach;
use crate::proof::verify::{Asked, Declared};

/// Summarizes all pairs of clusters with differences, in order of their names; none if the proof of the old version
/// takes more than `most` steps.
pub(super) fn summarize(
    Versions { before, after }: Versions<&Version, &Version>,
    counterparts: &Counterparts,
    transitions: &ClusterTransitions,
    proof: &PathProof,
    most: u64,
) -> Option<Vec<PathChange>> {
    let blocks = before.fabric.sites.map(|it| Blocks::new(it));
    let version = CountedVersion::new(before, &blocks);
    let past = Past::new(version, counterparts, transitions, most)?;
    let future = Future {
        version: CountedVersion::new(after, &proof.blocks),
        origins: after.fabric.sites.map_ids(|it| {
            let site = counterparts.before(it)?;
            let end = |site, blocks| PathEnd { site, blocks };
            let old = end(before.fabric.site(site), &blocks[site]);
            let new = end(after.fabric.site(it), &proof.blocks[it]);
            Some(ClusterOrigin { site, places: translation(old, new, after.fleet) })
        }),
    };
    let proved = proof.proved.par_iter();
    let changes =
        proved.map_init(KnownPaths::default, |known, it| past.compare(&future, it, known));
    let mut changes: Vec<PathChange> = changes.collect();
    changes.extend(past.left(counterparts));
    changes.retain(PathChange::has_changes);
    changes.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    Some(changes)
}

/// A version in which paths are counted.
struct CountedVersion<'f, 'a> {
    fabric: &'f Fabric<'a>,
    asked: Asked<'f>,
    blocks: &'f Sites<Blocks>,
    /// Computed where a path changes.
    declared: OnceLock<Declared<'f, 'a, 'f>>,
}

/// The paths of the old version, between clusters that have other nodes in the new one or have left.
struct Past<'f, 'a> {
    version: CountedVersion<'f, 'a>,
    reach: Reach<'f, 'a>,
    /// True for clusters that have other nodes or have left.
    is_other: Sites<bool>,
}

struct Future<'f, 'a> {
    version: CountedVersion<'f, 'a>,
    /// Each cluster in the old version; none if it has joined.
    origins: Sites<Option<ClusterOrigin>>,
}

/// A cluster of the new version in the old one.
struct ClusterOrigin {
    /// Its number there.
    site: SiteId,
    /// The place of each of its old blocks among the new ones.
    places: PlaceMap,
}

impl<'f, 'a> CountedVersion<'f, 'a> {
    fn new(version: &Version<'f, 'a>, blocks: &'f Sites<Blocks>) -> Self {
        Self { fabric: version.fabric, asked: version.asked, blocks, declared: OnceLock::new() }
    }

    fn counter(&self, pair: SitePair) -> Counter<'_> {
        let new = || Declared::new(self.fabric, self.asked);
        let declared = self.declared.get_or_init(new);
        let end = |site| PathEnd { site: self.fabric.site(site), blocks: &self.blocks[site] };
        Counter::new(declared, pair, pair.both().map(end))
    }
}

impl<'f, 'a> Past<'f, 'a> {
    fn new(
        version: CountedVersion<'f, 'a>,
        counterparts: &Counterparts,
        transitions: &ClusterTransitions,
        most: u64,
    ) -> Option<Self> {
        let fabric = version.fabric;
        let is_other = fabric.sites.map_ids(|it| {
            let after = counterparts.after(it);
            after.is_none_or(|it| transitions.0[it].has_new_nodes)
        });
        let is_wanted = |viewer, home| is_other[viewer] || is_other[home];
        let reach = Reach::among(fabric, most, is_wanted);
        (reach.steps() <= most).then_some(Self { version, reach, is_other })
    }

    /// Returns the old paths between two clusters. One that has joined had none before.
    fn old_paths<'s>(
        &'s self,
        origins: Option<(&ClusterOrigin, &ClusterOrigin)>,
        proved: &Proved,
        known: &mut KnownPaths<'s>,
    ) -> Translated {
        let Some((sender, receiver)) = origins else {
            return Translated::default();
        };
        let (from, to) = (sender.site, receiver.site);
        if self.is_other[from] || self.is_other[to] {
            let held = self.held(SitePair { from, to }, known).any();
            return held.translated(&sender.places, &receiver.places);
        }
        Translated { kept: proved.old.any(), ..Translated::default() }
    }

    /// Returns the old paths between two clusters that work only under a premise.
    fn old_assumed<'s>(
        &'s self,
        origins: Option<(&ClusterOrigin, &ClusterOrigin)>,
        proved: &Proved,
        known: &mut KnownPaths<'s>,
    ) -> PathSet {
        let others = origins.filter(|ends| {
            let (sender, receiver) = ends;
            self.is_other[sender.site] || self.is_other[receiver.site]
        });
        let Some((sender, receiver)) = others else {
            let [assumed, _] = &proved.assumed;
            return assumed.clone();
        };
        let pair = SitePair { from: sender.site, to: receiver.site };
        let assumed = StateProof::assumed(&self.reach, pair, self.version.blocks, known);
        assumed.translated(&sender.places, &receiver.places).kept
    }

    /// Counts what becomes of the paths between two clusters of the new version.
    fn compare<'s>(
        &'s self,
        future: &Future,
        proved: &Proved,
        known: &mut KnownPaths<'s>,
    ) -> PathChange {
        let SitePair { from, to } = proved.pair;
        let mut change = PathChange {
            states: proved.states,
            holds_any: !proved.new.is_empty() || !proved.kept.is_empty(),
            ..PathChange::none(
                future.version.fabric.site(from).cluster,
                future.version.fabric.site(to).cluster,
            )
        };
        let origins = future.origins[from].as_ref();
        let origins = origins.zip(future.origins[to].as_ref());
        let old = self.old_paths(origins, proved, known);
        let mut all = old.kept.clone();
        all.add(&proved.old.any());
        let lost = all.without(&proved.new).without(&proved.kept.partial);
        let gained = proved.new.without(&old.kept);
        let down = old.kept.without(&proved.old.any());
        let repaired = down.without(&down.without(&proved.new));
        let stuck = proved.stuck.without(&proved.apart);
        let paused = proved.paused.without(&proved.apart).without(&stuck);
        let opened = OpenedSets::new(proved, &old.kept);
        let [_, assumed] = &proved.assumed;
        let no_longer_proved = if assumed.is_empty() {
            PathSet::default()
        } else {
            let before = self.old_assumed(origins, proved, known);
            old.kept.common(&proved.new).common(assumed).without(&before)
        };
        let of_old = [&old.gone, &old.ended];
        let of_new = [&lost, &no_longer_proved, &gained, &repaired, &proved.apart, &stuck, &paused];
        let mut all = of_old.into_iter().chain(of_new).chain(opened.both());
        if all.all(PathSet::is_empty) {
            return change;
        }
        let mut counter = future.version.counter(proved.pair);
        if let Some((sender, receiver)) = origins {
            let mut works = proved.new.clone();
            works.add(&proved.kept.partial);
            let (from, to) = (&sender.places, &receiver.places);
            let unreplaced = old.ended.unreplaced(from, to, &works);
            let past = self.version.counter(SitePair { from: sender.site, to: receiver.site });
            counter.declare(&past, &sender.places, &receiver.places);
            change.lost = past.count(&old.gone);
            change.lost.add(past.count(&unreplaced));
            let ended = old.ended.without(&unreplaced);
            change.ended = past.ended(&ended, &change, [sender, receiver]);
        }
        change.lost.add(counter.count(&lost));
        change.no_longer_proved = counter.count(&no_longer_proved);
        change.gained = counter.count(&gained);
        change.assumed = counter.count(&gained.common(assumed));
        change.repaired = counter.count(&repaired);
        change.apart = counter.count(&proved.apart);
        change.stuck = counter.count(&stuck);
        change.paused = counter.count(&paused);
        change.example =
            counter.example(&[&lost, &proved.apart, &stuck, &paused, &no_longer_proved]);
        change.opened = opened.counted(&counter);
        change
    }

    /// Counts the paths from and to clusters that have left.
    fn left(&self, counterparts: &Counterparts) -> Vec<PathChange> {
        let has_left = |it: SiteId| counterparts.after(it).is_none();
        let sites = || self.version.fabric.sites.ids();
        let pairs = sites().flat_map(|from| sites().map(move |to| SitePair { from, to }));
        let pairs = pairs.filter(|it| it.from != it.to && it.both().into_iter().any(has_left));
        let site = |it| self.version.fabric.site(it);
        let changes = pairs.map(|pair| {
            let held = self.held(pair, &mut KnownPaths::default()).any();
            let paths = self.version.counter(pair).count(&held);
            let change = PathChange::none(site(pair.from).cluster, site(pair.to).cluster);
            PathChange { states: 1, lost: paths, ..change }
        });
        changes.collect()
    }

    fn held<'s>(&'s self, pair: SitePair, known: &mut KnownPaths<'s>) -> StateProof {
        StateProof::new(&self.reach, pair, self.version.blocks, known)
    }
}

/// Watched paths that did not work before.
struct OpenedSets {
    /// Those that work in the new version.
    stay: PathSet,
    /// Those that work only on the way.
    pass: PathSet,
}

impl OpenedSets {
    fn new(proved: &Proved, old: &PathSet) -> Self {
        let seen = proved.seen.as_ref();
        let stay = seen.map_or_else(PathSet::default, |it| it.new.without(old));
        let pass = seen.map_or_else(PathSet::default, |it| it.passing.without(old));
        Self { pass: pass.without(&stay), stay }
    }

    fn both(&self) -> [&PathSet; 2] {
        [&self.stay, &self.pass]
    }

    fn counted(&self, counter: &Counter) -> OpenedPaths {
        OpenedPaths {
            stay: counter.count(&self.stay),
            pass: counter.count(&self.pass),
            example: counter.example(&self.both()),
        }
    }
}

/// Counts paths between two clusters.
struct Counter<'e> {
    /// The senders and the receivers.
    ends: [PathEnd<'e>; 2],
    /// True where a link declares a sender, and a receiver.
    declared: [Vec<bool>; 2],
}

impl<'e> Counter<'e> {
    fn new(declared: &Declared, SitePair { from, to }: SitePair, ends: [PathEnd<'e>; 2]) -> Self {
        let [senders, receivers] = ends.map(|it| &it.blocks.all);
        let sends = declared.promised(from, to, senders);
        let takes = declared.promised(to, from, receivers);
        Self { ends, declared: [sends, takes] }
    }

    /// Adds what the old version declared. A declared path that is lost counts as such.
    fn declare(&mut self, past: &Counter, senders: &PlaceMap, receivers: &PlaceMap) {
        let [sends, takes] = &mut self.declared;
        let [was_sent, was_taken] = &past.declared;
        for (all, was, places) in [(sends, was_sent, senders), (takes, was_taken, receivers)] {
            for (was, place) in was.iter().zip(places.iter()) {
                if let Some(is) = place.and_then(|it| all.get_mut(it)) {
                    *is |= *was;
                }
            }
        }
    }

    fn count(&self, held: &PathSet) -> PathCounts {
        let mut counts = PathCounts::default();
        let [sends, takes] = &self.declared;
        let [senders, receivers] = self.ends;
        for (group, row) in held.groups() {
            let targets = receivers.kinds(row.ones(), takes);
            for (from, sending) in senders.kinds(group.into_iter(), sends) {
                for (to, taking) in &targets {
                    let classes = from.class.zip(to.class);
                    let are_declared = from.is_declared
                        && to.is_declared
                        && classes.is_some_and(|(from, to)| Declared::are_declared(from, to));
                    counts.count(sending * taking, are_declared);
                }
            }
        }
        counts
    }

    /// Counts paths that end, and finds the nodes because of which they do.
    fn ended(
        &self,
        held: &PathSet,
        change: &PathChange,
        origins: [&ClusterOrigin; 2],
    ) -> EndedPaths {
        let mut ended = EndedPaths { paths: self.count(held), ..EndedPaths::default() };
        let [senders, receivers] = self.ends;
        let [from, to] = origins;
        let mut add = |end: PathEnd, origin: &ClusterOrigin, cluster: &ClusterName, place| {
            let kind = origin.places.at(place).end;
            let node = kind.and_then(|kind| Some((kind, end.node(place)?)));
            let Some((kind, node)) = node else {
                return;
            };
            let nodes = match kind {
                EndKind::NodeLeft => &mut ended.left,
                EndKind::NodeMoved => &mut ended.moved,
            };
            nodes.insert(NamedNode { cluster: cluster.clone(), node: node.to_owned() });
        };
        // Many paths have the same end.
        let mut reached = BTreeSet::new();
        for (group, row) in held.groups() {
            let group = group.into_iter();
            group.for_each(|it| add(senders, from, &change.from, it));
            reached.extend(row.ones());
        }
        let reached = reached.into_iter();
        reached.for_each(|it| add(receivers, to, &change.to, it));
        ended
    }

    /// Returns the names of both ends of the first path.
    fn example(&self, paths: &[&PathSet]) -> Option<(String, String)> {
        let mut rows = paths.iter().flat_map(|it| it.rows());
        let (sender, receiver) =
            rows.find_map(|(sender, row)| Some((sender, row.ones().next()?)))?;
        let [senders, receivers] = self.ends;
        Some((senders.name(sender)?, receivers.name(receiver)?))
    }
}
