//! Removals: why clusters lose Peers of each other although no node is the reason, and the reviewed way to remove a cluster.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::mesh::{Mesh, State, Topology, separating};
use crate::name::ClusterName;
use crate::rules::rendered::{LOST_SOURCE, LOST_TARGET, members};
use crate::rules::{Finding, bare};
use crate::tree_diff::Loss;

/// The clusters of the losses of a render.
pub(super) struct Removals<'l> {
    fleet: &'l Fleet<'l>,
    /// The clusters that are in no mesh, and have a folder.
    folders: BTreeSet<&'l str>,
    /// The targets that lose a source, by source.
    targets: BTreeMap<&'l str, BTreeSet<&'l str>>,
    /// Those of them to which no mesh links the source any more.
    unlinked: BTreeMap<&'l str, BTreeSet<&'l str>>,
}

impl<'l> Removals<'l> {
    pub(super) fn new(losses: &'l [Loss], fleet: &'l Fleet<'l>) -> Self {
        let mut folders = BTreeSet::new();
        let mut targets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for loss in losses {
            if let Loss::Target { target, heir: None, owner: None, .. } = loss {
                folders.insert(target.as_str());
            } else if let Loss::Source { target, source, .. } = loss {
                targets.entry(source).or_default().insert(target);
            }
        }
        let unlinked = targets.iter().map(|(source, targets)| {
            let targets = targets.iter().copied();
            (*source, targets.filter(|it| unlinking(fleet, [it, source]).is_some()).collect())
        });
        let unlinked = unlinked.collect();
        Self { fleet, folders, targets, unlinked }
    }

    /// Returns whether only one target loses a source.
    pub(super) fn is_of_one(&self, source: &str) -> bool {
        self.targets.get(source).is_some_and(|it| it.len() == 1)
    }

    /// Returns the first part of a remedy: the reviewed way to remove clusters, and when a flag is right.
    pub(super) fn intention(&self) -> String {
        // A source that only one target loses, or to which links are missing, has lost links. The entry of an external
        // peer has no state.
        let may_leave = |source: &str| {
            !self.is_of_one(source)
                && self.unlinked.get(source).is_none_or(BTreeSet::is_empty)
                && !ClusterName::is_external_text(source)
        };
        let sources = self.targets.keys().copied().filter(|it| may_leave(it));
        let (entered, mut removed): (BTreeSet<&str>, BTreeSet<&str>) =
            sources.partition(|it| members(self.fleet, it).next().is_some());
        removed.extend(&self.folders);
        let (clusters, one, many, rest) = if !removed.is_empty() {
            (
                removed,
                "restore its entry with `state: Leaving`, and remove it when its Peers are gone",
                "restore their entries with `state: Leaving`, and remove them when their Peers are gone",
                match self.folders.len() {
                    0 => "to remove all these Peers now",
                    1 => "to remove its folder now, and its Peers in the cluster by hand",
                    _ => "to remove their folders now, and their Peers in the clusters by hand",
                },
            )
        } else if !entered.is_empty() {
            (
                entered,
                "set `state: Leaving` in its entry",
                "set `state: Leaving` in their entries",
                "if only these Peers should be removed",
            )
        } else {
            return "if intended".to_owned();
        };
        match clusters.first() {
            Some(cluster) if clusters.len() == 1 => {
                format!("if `{}` should leave the mesh, {one}; {rest}", bare(cluster))
            }
            _ => format!("if these clusters should leave the mesh, {many}; {rest}"),
        }
    }

    /// Adds to the finding about a lost source what in the mesh is the reason, and how to keep its Peers. The losses on both
    /// sides of a link are one finding.
    pub(super) fn explained(&self, finding: Finding, [target, source]: [&str; 2]) -> Finding {
        let of = |rule, name: &str| {
            ClusterName::of_member(name).ok().map(|it| FindingCause::of(rule, &it))
        };
        if let Some(gone) = [source, target].into_iter().find(|it| self.folders.contains(it)) {
            return finding.with_cause(of(&LOST_TARGET, gone));
        }
        if let Some(member) = joining(self.fleet, source) {
            let place = member.entry.place.key("state");
            return finding.at(place, "it joins only later").help("remove `state: Joining`");
        }
        if let Some(member) = joining(self.fleet, target) {
            return finding.with_cause(FindingCause::of(&LOST_SOURCE, &member.entry.name));
        }
        let Some(mesh) = self.unlinking([target, source]) else {
            return finding;
        };
        let (field, place) = mesh.linking_field();
        let name = bare(source);
        let help = match mesh.topology {
            // With one pair of clusters, either may have been the hub.
            Topology::Hub(_) if self.is_of_one(source) => {
                format!("name `{name}` or `{}` in `{field}` again", bare(target))
            }
            Topology::Hub(_) => format!("name `{name}` in `{field}` again"),
            Topology::FullMesh | Topology::Links(_) => format!("link `{name}` again in `{field}`"),
        };
        let finding = finding.at(place, "does not link these clusters").help(help);
        let first = self.first_of([target, source]);
        if first == source { finding } else { finding.with_cause(of(&LOST_SOURCE, first)) }
    }

    /// Returns the mesh that no longer links a source to a target that loses it.
    pub(super) fn unlinking(&self, [target, source]: [&str; 2]) -> Option<&'l Mesh> {
        let is_unlinked = self.unlinked.get(source).is_some_and(|it| it.contains(target));
        unlinking(self.fleet, [target, source]).filter(|_| is_unlinked)
    }

    /// Returns the finding about a lost link for which a target loses the Peers that it has.
    pub(super) fn emptying(&self, target: &str) -> Option<FindingCause> {
        let mut lost = self.unlinked.iter().filter(|it| it.1.contains(target));
        let first = self.first_of([target, lost.next()?.0]);
        Some(FindingCause::of(&LOST_SOURCE, &ClusterName::of_member(first).ok()?))
    }

    /// Returns the one of two clusters without a link under which both losses are listed.
    fn first_of<'n>(&self, [target, source]: [&'n str; 2]) -> &'n str {
        let lost = |source: &str| self.unlinked.get(source);
        let rank =
            |source: &str| (lost(source).map_or(0, BTreeSet::len), Reverse(source.to_owned()));
        let is_mutual = lost(target).is_some_and(|it| it.contains(source));
        if is_mutual && rank(source) < rank(target) { target } else { source }
    }
}

fn joining<'f>(fleet: &'f Fleet, name: &str) -> Option<&'f Member<'f>> {
    members(fleet, name).find(|it| it.entry.state == State::Joining)
}

/// Returns the first mesh of two clusters, if no mesh of both links them.
fn unlinking<'f>(fleet: &Fleet<'f>, clusters: [&str; 2]) -> Option<&'f Mesh> {
    let [Ok(one), Ok(other)] = clusters.map(ClusterName::of_member) else {
        return None;
    };
    let are_clusters = !one.is_external() && !other.is_external();
    let meshes = fleet.memberships(&one).map(|it| it.mesh);
    separating(meshes, &one, &other).filter(|_| are_clusters)
}
