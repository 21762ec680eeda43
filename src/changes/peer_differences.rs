//! Peer differences: what becomes of the Peers of one cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::applied::Applied;
use crate::agent::comparison::{Pair, are_same, compare};
use crate::agent::fabric::Site;
use crate::agent::peers::{ClusterPeer, PeerId};
use crate::kilo::peer::Translation;
use crate::net::Cidr;

/// A cluster with two versions of its Peers.
pub(super) struct PeerDifferences<'s> {
    /// It with its old Peers and its new nodes.
    pub(super) now: Arc<Site<'s>>,
    /// It in the new version.
    pub(super) after: Arc<Site<'s>>,
    /// Each Peer that does not stay as it is, with its difference, in order of name.
    pub(super) pairs: Vec<Pair<PeerId>>,
}

impl<'s> PeerDifferences<'s> {
    /// Compares them.
    pub(super) fn find(now: Arc<Site<'s>>, after: Arc<Site<'s>>) -> Self {
        let mut found = Self { now, after, pairs: Vec::new() };
        let (old, new) = (&found.now.model.peers, &found.after.model.peers);
        if Arc::ptr_eq(&found.now, &found.after) {
            return found;
        }
        if found.have_same_routes() {
            // Each Peer has the number that it had.
            let pairs = old.numbered().zip(new.iter());
            let changed = pairs.filter(|((_, old), new)| !are_same(old.applied, new.applied));
            found.pairs =
                changed.map(|((it, _), _)| Pair::Changed { before: it, after: it }).collect();
        } else {
            let all = compare(old, new);
            found.pairs = all.filter(|it| !matches!(it, Pair::Same(_))).collect();
        }
        found
    }

    /// Returns whether both versions are known to have the same Peers, but for endpoints and keepalives.
    pub(super) fn have_same_routes(&self) -> bool {
        self.after.model.has_tables_of(&self.now.model)
    }

    /// Returns the ranges of Peers that change in a way that is meant: those of both versions.
    pub(super) fn ranges(&self, is_meant: impl Fn(&Pair<&ClusterPeer>) -> bool) -> Vec<Cidr> {
        let specs = self.specs(is_meant);
        let allowed = specs.flat_map(|it| &it.allowed_ips);
        let mut ranges: Vec<Cidr> = allowed.map(|it| it.interface.network).collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges
    }

    /// Returns the keys of Peers that change: those of both versions.
    pub(super) fn keys(&self) -> BTreeSet<[u8; 32]> {
        self.specs(|_| true).map(|it| it.key).collect()
    }

    /// Returns what becomes of each Peer that does not stay as it is.
    pub(super) fn changes(&self) -> impl Iterator<Item = Pair<&ClusterPeer<'s>>> {
        let (old, new) = (&self.now.model.peers, &self.after.model.peers);
        self.pairs.iter().map(|it| it.among(old, new))
    }

    /// Returns the Peers that stay as they are and have one of some keys.
    pub(super) fn staying(&self, keys: &BTreeSet<[u8; 32]>) -> impl Iterator<Item = &'s Applied> {
        // Both are in the order of names.
        let differing = self.pairs.iter().filter_map(|it| match *it {
            Pair::Changed { after, .. } | Pair::Added(after) => Some(after),
            Pair::Same(_) | Pair::Removed(_) => None,
        });
        let mut differing = differing.peekable();
        let peers = self.after.model.peers.numbered();
        let staying = peers.filter(move |(peer, _)| differing.next_if_eq(peer).is_none());
        staying.map(|it| it.1.applied).filter(|it| {
            let spec = it.spec.as_ref();
            spec.is_ok_and(|spec| keys.contains(&spec.key))
        })
    }

    /// Returns the Peers that change in a way that is meant, in both versions.
    fn specs(
        &self,
        is_meant: impl Fn(&Pair<&ClusterPeer>) -> bool,
    ) -> impl Iterator<Item = &'s Translation> {
        let peers = self.changes().filter(is_meant).flat_map(|it| match it {
            Pair::Same(_) => [None, None],
            Pair::Changed { before, after } => [Some(before), Some(after)],
            Pair::Added(peer) | Pair::Removed(peer) => [Some(peer), None],
        });
        let applied = peers.flatten().map(|it| it.applied);
        applied.filter_map(|it| it.spec.as_ref().ok())
    }
}
