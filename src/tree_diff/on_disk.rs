//! The rendered tree on disk: its files that are out of date or contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ChangedContent, ChangedFile};
use crate::diagnostic::escaped;
use crate::kilo::peer::Peer;
use crate::manifest::{KUSTOMIZATION, OldPeer};
use crate::place::Place;
use crate::plan::{PeerSet, Plan};

/// The longest part of a path that is shown, in characters.
const SHOWN: usize = 400;

/// A rendered tree as it stands.
#[derive(Clone, Debug, Default)]
pub struct OnDiskTree {
    /// The root as the program names it, harmless to print.
    pub root: String,
    /// The generated files that are out of date.
    pub files: Vec<ChangedFile>,
    /// The paths of those that do not.
    pub same: BTreeSet<String>,
    /// The paths of missing files.
    pub missing: Vec<String>,
    /// Files that clustermesh did not write.
    pub foreign: Vec<ForeignFile>,
    /// Foreign files at the paths of wanted ones.
    pub blocked: Vec<ForeignFile>,
    /// The paths of generated files that are out of date although the last commit has what is wanted there.
    pub uncommitted: BTreeSet<String>,
}

/// Something in the tree that we did not make.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ForeignFile {
    /// The path, from the root of the tree.
    pub path: String,
    /// The kind of file, with its article.
    pub kind: &'static str,
}

/// A kustomization that does not name what is beside it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KustomizationMismatch {
    /// The target of the kustomization.
    pub target: String,
    /// The file that it names and that is not there.
    pub absent: Vec<String>,
    /// The files that are there, and that it does not name.
    pub unnamed: Vec<String>,
    /// The place of a name without a file, or of the whole kustomization.
    pub place: Place,
}

/// Two Peers of one name in one target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SameNamePeers {
    /// The target.
    pub target: String,
    /// The name.
    pub peer: String,
    /// The place of the second one.
    pub place: Place,
    /// The file in which the first is.
    pub first: String,
}

/// Peers of one target that have one key, under several names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SameKeyPeers {
    /// The target.
    pub target: String,
    /// Their names, and where they are.
    pub peers: Vec<(String, Place)>,
}

impl OnDiskTree {
    /// Returns what a file of the tree is called, harmless to print.
    pub fn source(&self, path: &str) -> Arc<str> {
        let path = format!("{}/{path}", self.root.trim_end_matches('/'));
        Arc::from(escaped(&path, SHOWN))
    }

    /// Returns whether a generated file exists.
    pub(super) fn has(&self, path: &str) -> bool {
        self.same.contains(path) || self.files.iter().any(|it| it.path == path)
    }

    /// Returns the files with Peers that cannot be read.
    pub fn unread(&self) -> impl Iterator<Item = &ChangedFile> {
        self.files.iter().filter(|it| 0 < it.unread())
    }

    /// Returns the files of others at the paths of files with Peers.
    pub fn in_the_way(&self) -> impl Iterator<Item = &ForeignFile> {
        self.blocked.iter().filter(|it| !it.path.ends_with(KUSTOMIZATION))
    }

    /// Returns the targets of all these files. It is unknown which Peers these have.
    pub fn unread_targets(&self) -> BTreeSet<&str> {
        let paths = self.in_the_way().map(|it| it.path.as_str());
        let blocked = paths.filter_map(|it| Some(it.split_once('/')?.0));
        self.unread().map(|it| it.parts().0).chain(blocked).collect()
    }

    /// Returns every kustomization that does not name what is beside it.
    pub fn mismatches(&self) -> Vec<KustomizationMismatch> {
        let mut beside: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let paths = self.files.iter().map(|it| it.path.as_str());
        for path in paths.chain(self.same.iter().map(String::as_str)) {
            if let Some((target, file)) = path.split_once('/') {
                beside.entry(target).or_default().insert(file);
            }
        }
        let mut mismatches: Vec<KustomizationMismatch> = Vec::new();
        for (target, files) in &beside {
            if files.contains(KUSTOMIZATION) {
                mismatches.extend(self.mismatch(target, files));
            }
        }
        mismatches
    }

    fn mismatch(&self, target: &str, files: &BTreeSet<&str>) -> Option<KustomizationMismatch> {
        let path = format!("{target}/{KUSTOMIZATION}");
        let peers: BTreeSet<&str> =
            files.iter().copied().filter(|it| *it != KUSTOMIZATION).collect();
        if self.same.contains(&path) {
            return self.wanted_mismatch(target, &path);
        }
        let is_meant = |it: &&ChangedFile| it.path == path && !it.is_stale;
        let file = self.files.iter().find(is_meant)?;
        let ChangedContent::Kustomization(kustomization) = &file.content else {
            return None;
        };
        // Other things beside it, such as a folder, may well be named.
        let blocked = self.blocked.iter().chain(&self.foreign);
        let others: BTreeSet<&str> =
            blocked.filter_map(|it| it.path.strip_prefix(target)?.strip_prefix('/')).collect();
        let named = &kustomization.resources;
        let absent: Vec<_> = named
            .iter()
            .filter(|(name, _)| {
                let name = name.trim_start_matches("./").trim_end_matches('/');
                !name.contains('/') && !peers.contains(name) && !others.contains(name)
            })
            .collect();
        let is_named =
            |file: &&str| named.iter().any(|(name, _)| name.trim_start_matches("./") == *file);
        let unnamed = peers.iter().filter(|it| is_applied(it) && !is_named(it));
        let unnamed: Vec<String> = unnamed.map(|&it| it.to_owned()).collect();
        let bytes = absent.first().map_or(0..0, |(_, bytes)| bytes.clone());
        let is_fine = absent.is_empty() && unnamed.is_empty();
        (!is_fine).then(|| KustomizationMismatch {
            target: target.to_owned(),
            absent: absent.into_iter().map(|(name, _)| name.clone()).collect(),
            unnamed,
            place: file.place(&bytes),
        })
    }

    /// Returns what is missing or too much beside a kustomization that names the wanted files.
    fn wanted_mismatch(&self, target: &str, path: &str) -> Option<KustomizationMismatch> {
        let file = |path: &str| Some(path.strip_prefix(target)?.strip_prefix('/')?.to_owned());
        let absent: Vec<String> = self.missing.iter().filter_map(|it| file(it)).collect();
        let stale = self.files.iter().filter(|it| it.is_stale && is_applied(&it.path));
        let unnamed: Vec<String> = stale.filter_map(|it| file(&it.path)).collect();
        let is_fine = absent.is_empty() && unnamed.is_empty();
        (!is_fine).then(|| KustomizationMismatch {
            target: target.to_owned(),
            absent,
            unnamed,
            place: Place::document(&self.source(path), 0).bytes(&(0..0)),
        })
    }

    /// Returns the Peers of files that are out of date, by target.
    fn differing(&self) -> BTreeMap<&str, Vec<(&ChangedFile, &OldPeer)>> {
        let mut all: BTreeMap<&str, Vec<(&ChangedFile, &OldPeer)>> = BTreeMap::new();
        for file in self.files.iter().filter(|it| is_applied(&it.path)) {
            let (target, _) = file.parts();
            let named = file.peers().iter().filter(|it| !it.name.is_empty());
            all.entry(target).or_default().extend(named.map(|it| (file, it)));
        }
        all
    }

    /// Returns the Peers of one key in one target, if a file that is out of date has one of them.
    pub fn twins(&self, plan: &Plan) -> Vec<SameKeyPeers> {
        let mut twins = Vec::new();
        for (target, peers) in self.differing() {
            let mut by_key: BTreeMap<&[u8; 32], BTreeMap<&str, Place>> = BTreeMap::new();
            for (file, peer) in peers {
                if let Some(key) = &peer.key {
                    let names = by_key.entry(key).or_default();
                    names.entry(&peer.name).or_insert_with(|| file.place(&peer.bytes));
                }
            }
            for (peer_set, peer) in self.kept(plan, target) {
                if let Some(names) = by_key.get_mut(peer.key.as_bytes()) {
                    let path = format!("{target}/{}.yaml", peer_set.name);
                    let place = || Place::document(&self.source(&path), 0).bytes(&(0..0));
                    names.entry(peer.name.as_str()).or_insert_with(place);
                }
            }
            twins.extend(by_key.into_values().filter(|it| 1 < it.len()).map(|names| {
                SameKeyPeers {
                    target: target.to_owned(),
                    peers: names.into_iter().map(|(name, it)| (name.to_owned(), it)).collect(),
                }
            }));
        }
        twins
    }

    /// Returns the Peers of one name in one target, from files that are out of date.
    pub fn clashes(&self, plan: &Plan) -> Vec<SameNamePeers> {
        let mut clashes = Vec::new();
        for (target, mut peers) in self.differing() {
            // Stable, so that of one name the first stays first.
            peers.sort_by_key(|(_, peer)| &peer.name);
            let kept: BTreeMap<&str, &str> = self
                .kept(plan, target)
                .map(|(peer_set, peer)| (peer.name.as_str(), peer_set.name.as_str()))
                .collect();
            let mut last: Option<(&ChangedFile, &OldPeer)> = None;
            for (file, peer) in peers {
                let before = last.filter(|(_, it)| it.name == peer.name);
                let first = match before {
                    Some((file, _)) => Some(file.path.clone()),
                    None => kept.get(peer.name.as_str()).map(|it| format!("{target}/{it}.yaml")),
                };
                if let Some(first) = first {
                    clashes.push(SameNamePeers {
                        target: target.to_owned(),
                        peer: peer.name.clone(),
                        place: file.place(&peer.bytes),
                        first,
                    });
                }
                last = Some((file, peer));
            }
        }
        clashes
    }

    /// Returns the Peers of a target whose files are up to date, each with its set of Peers.
    fn kept<'a>(
        &'a self,
        plan: &'a Plan,
        target: &str,
    ) -> impl Iterator<Item = (&'a PeerSet, &'a Peer)> {
        let target = plan.targets.iter().find(|it| it.cluster.as_str() == target);
        let peer_sets = target.into_iter().flat_map(|target| {
            plan.sets_of(target)
                .filter(|it| self.same.contains(&format!("{}/{}.yaml", target.cluster, it.name)))
        });
        peer_sets.flat_map(|peer_set| peer_set.peers.iter().map(move |peer| (peer_set, peer)))
    }
}

/// Returns whether a tool that applies a folder reads a file of this name. Copies such as `*.bak` are left alone.
fn is_applied(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|it| path.ends_with(it))
}
