//! The tree diff: what a new tree removes from the one on disk, and what it moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Limits;
use crate::manifest::{KUSTOMIZATION, Kustomization, Oddity, OldPeer, Reading};
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::{Plan, Target};

mod case;
mod direct;
mod index;
mod overriding;

pub use case::{Case, Moved, Rekeyed, Renamed, Shrunk};
pub use direct::losses_of;
pub use on_disk::{ForeignFile, KustomizationMismatch, OnDiskTree, SameKeyPeers, SameNamePeers};
pub use overriding::Overriding;

use index::{Given, PlanIndex};

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
    /// A source would give a target nothing, and no rendered tree shows whether the target has Peers
    /// of it.
    Unrecorded {
        /// The target.
        target: String,
        /// The source.
        source: String,
    },
}

/// Cases by what is the same in them.
type Cases<T> = BTreeMap<T, (Vec<String>, Place)>;

/// Cases of every kind.
#[derive(Default)]
struct FoundCases {
    losses: BTreeSet<Loss>,
    shrunk: Cases<Shrunk>,
    renamed: Cases<Renamed>,
    rekeyed: Cases<Rekeyed>,
    moved: Cases<Moved>,
}

/// The Peers of one source in one target.
#[derive(Default)]
struct SourceShare<'a> {
    /// Their number.
    before: usize,
    /// The number of Peers in files that are no longer wanted.
    stale: usize,
    /// The number of Peers that people still let the target have, so that nodes are the cause of their
    /// loss.
    claimed: usize,
    /// Those that are removed.
    gone: Vec<&'a str>,
    /// The place of the first Peer.
    first: Option<Place>,
    /// The place of the first one that is removed.
    first_gone: Option<Place>,
}

impl ChangedFile {
    /// Returns the place of some bytes of it.
    pub fn place(&self, bytes: &std::ops::Range<usize>) -> Place {
        Place::document(&self.source, 0).bytes(bytes)
    }

    /// Returns the target, and the name of the file.
    fn parts(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }

    fn peers(&self) -> &[OldPeer] {
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
    let index = if by_target.is_empty() {
        PlanIndex::default()
    } else {
        PlanIndex::new(plan)
    };
    for (name, files) in by_target {
        match plan.targets.iter().find(|it| it.cluster.as_str() == name) {
            Some(target) => {
                let losses = found.losses.len();
                found.target(&index.given(plan, target), target, &files, same, limits);
                let had_peers = files.iter().any(|it| !it.peers().is_empty());
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
    TreeDiff {
        losses: found.losses.into_iter().collect(),
        shrunk: cases(found.shrunk),
        renamed: cases(found.renamed),
        rekeyed: cases(found.rekeyed),
        moved: cases(found.moved),
    }
}

/// Returns whether the tree has anything of a cluster: its folder, or Peers that lead to it.
fn is_known(cluster: &str, files: &[ChangedFile], same: &BTreeSet<String>) -> bool {
    let is_its = |path: &str| path.split('/').next() == Some(cluster);
    let is_source = |it: &OldPeer| it.source.as_deref() == Some(cluster);
    same.iter().any(|path| is_its(path))
        || files
            .iter()
            .any(|it| is_its(&it.path) || it.peers().iter().any(is_source))
}

/// Returns which cluster-wide ranges get another Peer where a target that has the Peers of these files
/// applies `plan` instead.
pub fn moves(plan: &Plan, target: &str, files: &[ChangedFile]) -> Vec<Case<Moved>> {
    let mut found = FoundCases::default();
    if let Some(it) = plan.targets.iter().find(|it| it.cluster.as_str() == target) {
        let index = PlanIndex::new(plan);
        let given = index.given(plan, it);
        for (file, peer) in files
            .iter()
            .flat_map(|it| it.peers().iter().map(move |peer| (it, peer)))
        {
            found.peer(&given, target, file, peer);
        }
    }
    cases(found.moved)
}

fn cases<T>(cases: Cases<T>) -> Vec<Case<T>> {
    let case = |(what, (targets, place))| Case {
        what,
        targets,
        place,
    };
    cases.into_iter().map(case).collect()
}

fn add<T: Ord>(cases: &mut Cases<T>, what: T, target: &str, place: impl FnOnce() -> Place) {
    let entry = cases.entry(what);
    let (targets, _) = entry.or_insert_with(|| (Vec::new(), place()));
    if targets.last().is_none_or(|last| last != target) {
        targets.push(target.to_owned());
    }
}

impl FoundCases {
    /// Reports the folder of a cluster that is no longer in any mesh. One that was rendered without
    /// Peers loses nothing.
    fn lost_target(&mut self, target: &str, files: &[&ChangedFile]) {
        let peers = files.iter().map(|it| it.peers().len() + it.unread()).sum();
        if let Some(file) = files
            .first()
            .filter(|_| !files.iter().all(|it| it.is_empty()))
        {
            self.losses.insert(Loss::Target {
                target: target.to_owned(),
                peers,
                place: file.place(&(0..0)),
            });
        }
    }

    fn target(
        &mut self,
        given: &Given,
        target: &Target,
        files: &[&ChangedFile],
        same: &BTreeSet<String>,
        limits: &Limits,
    ) {
        let name = target.cluster.as_str();
        let mut shares: BTreeMap<String, SourceShare> = BTreeMap::new();
        for file in files {
            // A Peer without a source is assigned to that of its file.
            let (_, file_name) = file.parts();
            let stem = file_name.strip_suffix(".yaml").unwrap_or(file_name);
            for peer in file.peers() {
                let source = peer.source.as_deref().unwrap_or(stem);
                if !shares.contains_key(source) {
                    shares.insert(source.to_owned(), SourceShare::default());
                }
                let Some(share) = shares.get_mut(source) else {
                    continue;
                };
                share.before += 1;
                if file.is_stale {
                    share.stale += 1;
                    share.claimed += usize::from(given.lets(source, peer));
                }
                let place = || file.place(&peer.bytes);
                share.first.get_or_insert_with(place);
                if self.peer(given, name, file, peer) {
                    share.gone.push(&peer.name);
                    share.first_gone.get_or_insert_with(place);
                }
            }
            let unread = file.unread();
            if 0 < unread {
                let share = shares.entry(stem.to_owned()).or_default();
                share.before += unread;
                share.stale += if file.is_stale { unread } else { 0 };
                share.first.get_or_insert_with(|| file.place(&(0..0)));
            }
        }
        // That one of the two leaves is the person's word for these Peers.
        shares.retain(|source, _| !target.parted.iter().any(|it| it.as_str() == source));
        for (source, share) in shares {
            self.share(given, name, source, share, same, limits);
        }
    }

    /// Reports how a Peer changes, and returns whether it is removed.
    fn peer(&mut self, given: &Given, target: &str, file: &ChangedFile, old: &OldPeer) -> bool {
        let place = || file.place(&old.bytes);
        let named = given.named(&old.name);
        let is_same_key = named.is_some_and(|it| Some(it.peer.key.as_bytes()) == old.key.as_ref());
        let keyed = match &old.key {
            Some(key) if !is_same_key => given.keyed(key),
            _ => None,
        };
        if let Some(new) = keyed {
            let renamed = Renamed {
                source: new.peer.cluster.to_string(),
                node: new.node().to_owned(),
                from: old.name.clone(),
                to: new.peer.name.to_string(),
            };
            add(&mut self.renamed, renamed, target, place);
        }
        if let Some(new) = named.filter(|_| !is_same_key && old.key.is_some()) {
            let rekeyed = Rekeyed {
                source: new.peer.cluster.to_string(),
                node: new.node().to_owned(),
                peer: old.name.clone(),
            };
            add(&mut self.rekeyed, rekeyed, target, place);
        }
        let heir = if is_same_key { named } else { keyed };
        let source = heir.map(|it| it.peer.cluster.as_str());
        let source = old.source.as_deref().or(source);
        let carriers = source.and_then(|it| given.carriers(it));
        for (carriers, &range) in carriers
            .iter()
            .flat_map(|it| old.ranges.iter().map(move |range| (it, range)))
        {
            let Some(carrier) = carriers.get(&range) else {
                continue;
            };
            let is_heir = heir.is_some_and(|heir| heir.peer.key == carrier.key);
            if !is_heir && carrier.name.as_str() != old.name {
                let moved = Moved {
                    source: carrier.cluster.to_string(),
                    range,
                    from: old.name.clone(),
                    to: carrier.name.to_string(),
                };
                add(&mut self.moved, moved, target, place);
            }
        }
        named.is_none() && keyed.is_none()
    }

    /// Judges what a target loses of a source.
    fn share(
        &mut self,
        given: &Given,
        target: &str,
        source: String,
        share: SourceShare,
        same: &BTreeSet<String>,
        limits: &Limits,
    ) {
        let SourceShare {
            mut before,
            stale,
            claimed,
            gone,
            first,
            first_gone,
        } = share;
        let Some(first) = first else { return };
        let peer_set = given.peer_set(&source);
        // Claims of nodes must not be able to stop the render for all clusters. But if the mesh or
        // the config no longer gives the target what is lost, or as many nodes, the loss is not
        // only due to nodes.
        let nodes = given.absent(&source).map_or(0, |it| it.nodes);
        if peer_set.is_none() && nodes.min(claimed) < stale {
            self.losses.insert(Loss::Source {
                target: target.to_owned(),
                source,
                peers: stale,
                place: first,
            });
            return;
        }
        if let Some(peer_set) = peer_set
            && same.contains(&format!("{target}/{}.yaml", peer_set.name))
        {
            before += peer_set.peers.len();
        }
        let is_share = limits.lost_peers_percent * before < 100 * gone.len();
        if let Some(place) = first_gone.filter(|_| is_share && limits.lost_peers <= gone.len()) {
            let shrunk = Shrunk {
                source,
                before,
                gone: gone.into_iter().map(str::to_owned).collect(),
            };
            add(&mut self.shrunk, shrunk, target, || place);
        }
    }
}

#[cfg(test)]
mod tests;
mod on_disk;
