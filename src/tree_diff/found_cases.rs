//! The cases of a tree diff while they are found, by what is the same in them.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Given, Planned};
use super::{Case, ChangedFile, Loss, Moved, Rekeyed, Renamed, RenamedMesh, Shrunk};
use crate::config::Limits;
use crate::manifest::OldPeer;
use crate::name::MeshName;
use crate::place::Place;
use crate::plan::Target;

/// Cases by what is the same in them.
type Cases<T> = BTreeMap<T, (Vec<String>, Place)>;

/// Cases of every kind.
#[derive(Default)]
pub(super) struct FoundCases {
    pub(super) losses: BTreeSet<Loss>,
    /// The new names of sources that no mesh has any more, and whose Peers have the same keys from now on.
    pub(super) names: BTreeMap<String, String>,
    /// By the old and the new name.
    pub(super) renamed_meshes: BTreeMap<(String, MeshName), RenamedMesh>,
    pub(super) shrunk: Cases<Shrunk>,
    pub(super) renamed: Cases<Renamed>,
    pub(super) rekeyed: Cases<Rekeyed>,
    pub(super) moved: Cases<Moved>,
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
    /// The number of those whose keys go on, and the sources that have them then.
    kept: usize,
    heirs: BTreeSet<&'a str>,
    /// The place of the first Peer.
    first: Option<Place>,
    /// The place of the first one that is removed.
    first_gone: Option<Place>,
}

/// Returns the mesh of an old Peer if the target sees its source only in another mesh from now on. Only people can cause
/// that: the name of a file is that of the mesh and of the source.
fn old_mesh<'f>(
    given: &Given,
    file: &'f ChangedFile,
    old: &OldPeer,
    new: Planned,
) -> Option<&'f str> {
    let peer_set = file.parts().1.strip_suffix(".yaml")?;
    let source = old.source.as_deref()?;
    let is_same_source = source == new.peer.cluster.as_str();
    if !is_same_source || !file.is_stale || given.sees(peer_set) {
        return None;
    }
    peer_set.strip_suffix(source)?.strip_suffix("--")
}

pub(super) fn cases<T>(cases: Cases<T>) -> Vec<Case<T>> {
    let case = |(what, (targets, place))| Case { what, targets, place };
    cases.into_iter().map(case).collect()
}

fn add<T: Ord>(cases: &mut Cases<T>, what: T, target: &str, place: impl FnOnce() -> Place) {
    let (targets, _) = cases.entry(what).or_insert_with(|| (Vec::new(), place()));
    if targets.last().is_none_or(|last| last != target) {
        targets.push(target.to_owned());
    }
}

impl FoundCases {
    /// Reports the folder of a cluster that is no longer in any mesh. One that was rendered without
    /// Peers loses nothing.
    pub(super) fn lost_target(&mut self, target: &str, files: &[&ChangedFile]) {
        let peers = files.iter().map(|it| it.peers().len() + it.unread()).sum();
        if let Some(file) = files.first().filter(|_| !files.iter().all(|it| it.is_empty())) {
            self.losses.insert(Loss::Target {
                target: target.to_owned(),
                peers,
                place: file.place(&(0..0)),
                heir: None,
                owner: None,
            });
        }
    }

    pub(super) fn target(
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
                if let Some(heir) = peer.key.as_ref().and_then(|it| given.keyed(it)) {
                    share.kept += 1;
                    share.heirs.insert(heir.peer.cluster.as_str());
                }
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
        // That one of the two leaves is the person's word for these Peers. Its own Peers only harm a cluster.
        shares.retain(|source, _| {
            source != name && !target.parted.iter().any(|it| it.as_str() == source)
        });
        for (source, share) in shares {
            self.share(given, name, source, share, same, limits);
        }
    }

    /// Reports how a Peer changes, and returns whether it is removed.
    pub(super) fn peer(
        &mut self,
        given: &Given,
        target: &str,
        file: &ChangedFile,
        old: &OldPeer,
    ) -> bool {
        let place = || file.place(&old.bytes);
        let named = given.named(&old.name);
        let is_same_key = named.is_some_and(|it| Some(it.peer.key.as_bytes()) == old.key.as_ref());
        let keyed = match &old.key {
            Some(key) if !is_same_key => given.keyed(key),
            _ => None,
        };
        if let Some(new) = keyed {
            let mesh = old_mesh(given, file, old, new);
            if let Some(from) = mesh {
                self.renamed_mesh((from, &new.peer_set.mesh), target, place);
            }
            let renamed = Renamed {
                source: new.peer.cluster.to_string(),
                node: new.node().to_owned(),
                from: old.name.clone(),
                to: new.peer.name.to_string(),
                mesh: mesh.map(|_| new.peer_set.mesh.clone()),
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
        for (carriers, &range) in
            carriers.iter().flat_map(|it| old.ranges.iter().map(move |range| (it, range)))
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

    /// Counts a Peer of a mesh that has another name from now on.
    fn renamed_mesh(
        &mut self,
        (from, to): (&str, &MeshName),
        target: &str,
        place: impl FnOnce() -> Place,
    ) {
        let renamed = self.renamed_meshes.entry((from.to_owned(), to.clone()));
        let renamed = renamed.or_insert_with(|| RenamedMesh {
            from: from.to_owned(),
            to: to.clone(),
            targets: BTreeSet::new(),
            peers: 0,
            place: place(),
        });
        renamed.targets.insert(target.to_owned());
        renamed.peers += 1;
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
        let SourceShare { mut before, stale, claimed, gone, kept, heirs, first, first_gone } =
            share;
        let Some(first) = first else { return };
        let peer_set = given.peer_set(&source);
        if let Some(heir) = heirs.first().filter(|_| heirs.len() == 1 && kept == before)
            && !given.has_member(&source)
        {
            self.names.insert(source, (*heir).to_owned());
            return;
        }
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
            let shrunk =
                Shrunk { source, before, gone: gone.into_iter().map(str::to_owned).collect() };
            add(&mut self.shrunk, shrunk, target, || place);
        }
    }
}
