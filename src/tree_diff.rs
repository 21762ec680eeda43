//! The tree diff: what a new tree removes from the one on disk, and what it moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Limits;
use crate::manifest::{KUSTOMIZATION, Kustomization, Oddity, OldPeer, Reading};
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::Plan;

mod case;
mod direct;
mod found_cases;
mod index;
mod overriding;

pub use case::{Case, Moved, Rekeyed, Renamed, RenamedMesh, Shrunk};
pub use direct::losses_of;
pub use on_disk::{ForeignFile, KustomizationMismatch, OnDiskTree, SameKeyPeers, SameNamePeers};
pub use overriding::Overriding;

use found_cases::{FoundCases, cases};
use index::PlanIndex;

/// A generated file on disk that is out of date.
#[derive(Clone, Debug)]
pub struct ChangedFile {
    /// Its path in the tree.
    pub path: String,
    /// The file, as the shell calls it.
    pub source: Arc<str>,
    /// Whether it is no longer wanted at all.
    pub is_stale: bool,
    /// The content.
    pub content: ChangedContent,
}

/// The content of a generated file.
#[derive(Clone, Debug)]
pub enum ChangedContent {
    /// Peers. Files of several targets may share what was read.
    Peers(Arc<Reading>),
    /// The resources that a target applies.
    Kustomization(Kustomization),
    /// Unknown, for this reason, which is safe to print.
    Unread(String),
}

/// Everything that a new tree removes from the old one, and everything that it moves.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TreeDiff {
    /// The losses that only a person may allow.
    pub losses: Vec<Loss>,
    /// The new names of clusters and external peers, by the old ones. Their keys stay.
    pub names: BTreeMap<String, String>,
    /// Sources of which targets lose many Peers, but not all.
    pub shrunk: Vec<Case<Shrunk>>,
    /// Keys that get another name.
    pub renamed: Vec<Case<Renamed>>,
    /// Names that get another key.
    pub rekeyed: Vec<Case<Rekeyed>>,
    /// Cluster-wide ranges that get another Peer.
    pub moved: Vec<Case<Moved>>,
}

/// Peers that a target would not have at all: how GitOps tears down a mesh, and how one begins that
/// lacks a cluster.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Loss {
    /// A source has nodes, but would give no target anything, and the tree has nothing of it yet. Once
    /// its own folder is there, people have seen and accepted that.
    SilentSource {
        /// The source.
        source: String,
    },
    /// A target would have no Peer, but its folder has some.
    EmptyTarget {
        /// The target.
        target: String,
    },
    /// No mesh names the target any more.
    Target {
        /// The target.
        target: String,
        /// The number of Peers in its folder.
        peers: usize,
        /// A file in it.
        place: Place,
        /// The new name of the cluster, if its keys show that it has one.
        heir: Option<String>,
        /// The cluster without a folder that would get exactly these Peers: its folder has another name.
        owner: Option<ClusterName>,
    },
    /// A source would give the target nothing any more.
    Source {
        /// The target.
        target: String,
        /// The source.
        source: String,
        /// The number of Peers that it gives now.
        peers: usize,
        /// The first of them.
        place: Place,
    },
    /// All Peers that a mesh gives targets would get other names.
    RenamedMesh(RenamedMesh),
    /// A source would give a target nothing, and no rendered tree shows whether the target has Peers
    /// of it.
    Unrecorded {
        /// The target.
        target: String,
        /// The source.
        source: String,
    },
}

impl ChangedFile {
    /// Returns the place of some bytes of it.
    pub fn place(&self, bytes: &std::ops::Range<usize>) -> Place {
        Place::document(&self.source, 0).bytes(bytes)
    }

    /// Returns the target, and the name of the file.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }

    pub(crate) fn peers(&self) -> &[OldPeer] {
        match &self.content {
            ChangedContent::Peers(reading) => &reading.peers,
            ChangedContent::Kustomization(_) | ChangedContent::Unread(_) => &[],
        }
    }

    /// Returns whether it is the kustomization of a folder that was rendered without Peers.
    fn is_empty(&self) -> bool {
        match &self.content {
            ChangedContent::Kustomization(it) => it.is_ours && it.resources.is_empty(),
            ChangedContent::Peers(_) | ChangedContent::Unread(_) => false,
        }
    }

    /// Returns the number of its unreadable documents.
    fn unread(&self) -> usize {
        match &self.content {
            ChangedContent::Peers(reading) => {
                let is_unread = |it: &&Oddity| matches!(it, Oddity::Unreadable { .. });
                reading.oddities.iter().filter(is_unread).count()
            }
            ChangedContent::Kustomization(_) => 0,
            ChangedContent::Unread(_) => usize::from(self.parts().1 != KUSTOMIZATION),
        }
    }
}

/// Returns what `plan` changes, given the files that differ and the paths that stay as they are.
pub fn changes(
    plan: &Plan,
    files: &[ChangedFile],
    same: &BTreeSet<String>,
    limits: &Limits,
) -> TreeDiff {
    let mut found = FoundCases::default();
    // Targets that had Peers, none of which is lost for what people wrote.
    let mut let_go = BTreeSet::new();
    let mut by_target: BTreeMap<&str, Vec<&ChangedFile>> = BTreeMap::new();
    for file in files {
        by_target.entry(file.parts().0).or_default().push(file);
    }
    let index = if by_target.is_empty() { PlanIndex::default() } else { PlanIndex::new(plan) };
    for (name, files) in by_target {
        match plan.targets.iter().find(|it| it.cluster.as_str() == name) {
            Some(target) => {
                let losses = found.losses.len();
                found.target(&index.given(plan, target), target, &files, same, limits);
                let is_given = |it: &OldPeer| it.source.as_deref() != Some(name);
                let had_peers = files.iter().any(|it| it.peers().iter().any(is_given));
                if had_peers && losses == found.losses.len() {
                    let_go.insert(name);
                }
            }
            None => found.lost_target(name, &files),
        }
    }
    for target in plan.empty() {
        let target = target.cluster.as_str();
        let is_same = same.contains(&format!("{target}/{KUSTOMIZATION}"));
        if !is_same && !let_go.contains(target) {
            let target = target.to_owned();
            found.losses.insert(Loss::EmptyTarget { target });
        }
    }
    let silent = plan.silent.iter().map(ClusterName::as_str);
    for source in silent.filter(|it| !is_known(it, files, same)) {
        let source = source.to_owned();
        found.losses.insert(Loss::SilentSource { source });
    }
    let renamed = found.renamed_meshes.into_values();
    found.losses.extend(renamed.map(Loss::RenamedMesh));
    let names = found.names;
    let losses = found.losses.into_iter().map(|it| match it {
        Loss::Target { target, peers, place, .. } => {
            let heir = names.get(&target).cloned();
            let owner = match heir {
                Some(_) => None,
                None => owner(plan, &target, files, same).cloned(),
            };
            Loss::Target { target, peers, place, heir, owner }
        }
        loss => loss,
    });
    TreeDiff {
        losses: losses.collect(),
        names: names.clone(),
        shrunk: cases(found.shrunk),
        renamed: cases(found.renamed),
        rekeyed: cases(found.rekeyed),
        moved: cases(found.moved),
    }
}

/// Returns the cluster without a folder that would get exactly the Peers in a folder that is of no cluster.
fn owner<'p>(
    plan: &'p Plan,
    folder: &str,
    files: &[ChangedFile],
    same: &BTreeSet<String>,
) -> Option<&'p ClusterName> {
    let of_folder = files.iter().filter(|it| it.parts().0 == folder);
    let mut peers = BTreeSet::new();
    for peer in of_folder.flat_map(ChangedFile::peers) {
        peers.insert((peer.name.as_str(), peer.key.as_ref()?));
    }
    let paths = files.iter().map(|it| &it.path).chain(same);
    let present: BTreeSet<&str> = paths.filter_map(|it| it.split('/').next()).collect();
    let mut absent = plan.targets.iter().filter(|it| !present.contains(it.cluster.as_str()));
    let owner = absent.find(|it| {
        let planned = plan.sets_of(it).flat_map(|it| &it.peers);
        let planned = planned.map(|it| (it.name.as_str(), it.key.as_bytes()));
        !peers.is_empty() && planned.collect::<BTreeSet<_>>() == peers
    });
    owner.map(|it| &it.cluster)
}

/// Returns whether the tree has anything of a cluster: its folder, or Peers that lead to it.
fn is_known(cluster: &str, files: &[ChangedFile], same: &BTreeSet<String>) -> bool {
    let is_its = |path: &str| path.split('/').next() == Some(cluster);
    let is_source = |it: &OldPeer| it.source.as_deref() == Some(cluster);
    same.iter().any(|path| is_its(path))
        || files.iter().any(|it| is_its(&it.path) || it.peers().iter().any(is_source))
}

/// Returns which cluster-wide ranges get another Peer where a target that has the Peers of these files
/// applies `plan` instead.
pub fn moves(plan: &Plan, target: &str, files: &[ChangedFile]) -> Vec<Case<Moved>> {
    let mut found = FoundCases::default();
    if let Some(it) = plan.targets.iter().find(|it| it.cluster.as_str() == target) {
        let index = PlanIndex::new(plan);
        let given = index.given(plan, it);
        for (file, peer) in
            files.iter().flat_map(|it| it.peers().iter().map(move |peer| (it, peer)))
        {
            found.peer(&given, target, file, peer);
        }
    }
    cases(found.moved)
}

#[cfg(test)]
mod tests;
mod on_disk;
