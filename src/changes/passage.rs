//! Passages: the clusters with their new nodes, on the way from their old to their new Peers.

use std::sync::Arc;

use rayon::prelude::*;

use super::arriving::{Arriving, TransientTable};
use super::clusters::Counterparts;
use super::followed_addresses::FollowedAddresses;
use super::peer_differences::PeerDifferences;
use super::settings;
use super::stage::StageId;
use super::versions::Versions;
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, Site, SiteId, Sites};
use crate::engine::Engines;

/// A cluster on the way from the old to the new version.
pub(super) struct Passage<'s> {
    /// It with its old and its new Peers, and its new nodes.
    pub(super) peers: PeerDifferences<'s>,
    /// True if its Peers have changed.
    pub(super) has_new_peers: bool,
    /// True if its nodes, or the declarations about it, have changed.
    pub(super) has_new_nodes: bool,
    /// The states of its agents in between.
    pub(super) arriving: Arriving<'s>,
}

/// All clusters of the new version on their way.
pub(super) struct Passages<'s>(pub(super) Sites<Passage<'s>>);

impl<'s> Passages<'s> {
    /// Finds them.
    pub(super) fn new<'a: 's, 'b: 's>(
        Versions { before, after }: Versions<&Fabric<'a>, &Fabric<'b>>,
        counterparts: &Counterparts,
        followed: &FollowedAddresses,
        engines: &Engines,
    ) -> Self {
        let sites: Vec<SiteId> = after.sites.ids().collect();
        let passages = sites.into_par_iter().map(|number| {
            let old = counterparts.before(number);
            let old = old.and_then(|it| before.sites.get(it.index()));
            let new: Arc<Site<'s>> = Arc::clone(&after.sites[number]) as _;
            let mut passage = Passage::new(old.map(|it| Arc::clone(it) as _), new);
            if passage.has_new_peers {
                let orders = engines.orders(passage.peers.after.cluster);
                passage.arriving = Arriving::find(number, &passage.peers, followed, &orders);
            }
            passage
        });
        Self(Sites::new(passages.collect()))
    }
}

impl<'s> Passage<'s> {
    fn new(old: Option<Arc<Site<'s>>>, after: Arc<Site<'s>>) -> Self {
        let has_new_nodes = old.as_ref().is_none_or(|old| has_new_nodes(old, &after));
        let files: &'s [AppliedFile] = old.as_ref().map_or(&[], |it| it.files);
        let has_new_peers = !have_same_peers(files, after.files);
        let now = match old {
            _ if !has_new_peers => Arc::clone(&after),
            Some(old) if !has_new_nodes => old,
            Some(old) => Arc::new(old.with_nodes_of(&after)),
            None => Arc::new(after.with_files(files)),
        };
        Self {
            peers: PeerDifferences::find(now, after),
            has_new_peers,
            has_new_nodes,
            arriving: Arriving::default(),
        }
    }

    /// Returns how many stages it has.
    pub(super) fn stages(&self) -> usize {
        if self.has_new_peers { 2 + self.arriving.tables.len() } else { 1 }
    }

    /// Returns whether everything has arrived in a stage between the old and the new Peers, but a Peer is missing.
    pub(super) fn is_final(&self, stage: StageId) -> bool {
        self.table(stage).is_some_and(|it| it.is_final)
    }

    pub(super) fn table(&self, stage: StageId) -> Option<&TransientTable<'s>> {
        self.arriving.tables.get(stage.checked_sub(2)?)
    }
}

/// Returns whether nodes differ, or anything that a mesh declares about their cluster.
fn has_new_nodes(old: &Site, new: &Site) -> bool {
    // Versions that share the reading of a cluster have the same nodes.
    if Arc::ptr_eq(&old.reading, &new.reading) {
        return false;
    }
    old.cluster != new.cluster
        || old.snapshot.nodes != new.snapshot.nodes
        || settings::differ(old.entry, new.entry)
}

/// Returns whether files have the same Peers in the same order. Most texts are read only once.
fn have_same_peers(old: &[AppliedFile], new: &[AppliedFile]) -> bool {
    let is_same = |(old, new): (&AppliedFile, &AppliedFile)| {
        Arc::ptr_eq(&old.content, &new.content) || {
            let (old, new) = (&old.content.peers, &new.content.peers);
            let mut pairs = old.iter().zip(new);
            old.len() == new.len() && pairs.all(|(a, b)| a.name == b.name && a.spec == b.spec)
        }
    };
    old.len() == new.len() && old.iter().zip(new).all(is_same)
}
