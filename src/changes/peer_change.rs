//! Peer changes: what becomes of each Peer of a target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use by_address::ByAddress;

use super::Versions;
use super::cause::{CauseList, NamedNode, PeerCounts};
use super::clusters::Counterparts;
use crate::agent::applied::{Applied, AppliedFile};
use crate::agent::comparison::{Pair, are_same, compare};
use crate::agent::fabric::{Fabric, NodeRef, Site};
use crate::agent::peers::{ClusterPeer, PeerId};
use crate::kilo::peer::Translation;
use crate::mesh::{Mesh, is_ours};
use crate::net::Cidr;

pub use crate::agent::difference::Difference;

/// A change of a Peer of a target.
#[derive(Clone, Debug)]
pub struct PeerChange {
    /// The Peer. All targets that get the same two versions of it share it.
    pub peer: Arc<ChangedPeer>,
    /// Its causes.
    pub causes: CauseList,
}

/// A Peer that changes.
#[derive(Clone, Debug)]
pub struct ChangedPeer {
    /// Its name.
    pub name: String,
    /// The kind of the change.
    pub kind: PeerChangeKind,
    /// The node that has its key: the new one, or the old one if it goes. None if no node of the fleet has.
    pub holder: Option<NamedNode>,
}

/// The changed Peers that were described for some target. Those from the same texts are one in memory.
#[derive(Debug, Default)]
pub(super) struct DescribedPeers<'a> {
    /// In the order in which they were found. Mostly they follow each other for the next target too.
    all: Vec<(PeerVersions<'a>, Arc<ChangedPeer>)>,
    places: BTreeMap<PeerVersions<'a>, usize>,
    /// The place behind that of the last one.
    next: usize,
}

/// The two versions of a Peer and the one with its key and another name, as they are in memory.
type PeerVersions<'a> = (Versions<Option<ByAddress<&'a Applied>>>, Option<ByAddress<&'a Applied>>);

/// Peers of a target that come or go, by key: those with one key only have another name.
#[derive(Default)]
pub(super) struct RenamedPeers<'a> {
    gone: BTreeMap<[u8; 32], &'a Applied>,
    come: BTreeMap<[u8; 32], &'a Applied>,
}

/// A kind of change of a Peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PeerChangeKind {
    /// It is new.
    Added {
        /// Its name before, if there was a Peer with the same key.
        renamed_from: Option<String>,
        /// Its ranges.
        ranges: Vec<Cidr>,
    },
    /// It has another content.
    Changed(Vec<Difference>),
    /// It goes.
    Removed {
        /// Its new name, if there is a Peer with the same key.
        renamed_to: Option<String>,
        /// Its ranges.
        ranges: Vec<Cidr>,
    },
}

impl PeerChange {
    /// Returns what becomes of a Peer; none if it stays.
    pub(super) fn find<'a>(
        pair: Pair<&ClusterPeer<'a>>,
        fabrics: Versions<&Fabric, &Fabric>,
        counterparts: &Counterparts,
        renamed: &RenamedPeers<'a>,
        described: &mut DescribedPeers<'a>,
    ) -> Option<Self> {
        let ends = match pair {
            Pair::Same(_) => return None,
            Pair::Changed { before, after } => Versions::new(Some(before), Some(after)),
            Pair::Added(after) => Versions::new(None, Some(after)),
            Pair::Removed(before) => Versions::new(Some(before), None),
        };
        let other = renamed.other(pair);
        let find = || ChangedPeer::find(ends, other, fabrics, counterparts);
        let peer = described.get_or_find(ends, other, find)?;
        Some(Self { peer, causes: CauseList::default() })
    }
}

impl<'a> RenamedPeers<'a> {
    /// Finds those of a target.
    pub(super) fn find<'p>(pairs: impl Iterator<Item = Pair<&'p ClusterPeer<'a>>>) -> Self
    where
        'a: 'p,
    {
        let mut found = Self::default();
        for pair in pairs {
            let (peers, peer) = match pair {
                Pair::Removed(it) => (&mut found.gone, it),
                Pair::Added(it) => (&mut found.come, it),
                Pair::Same(_) | Pair::Changed { .. } => continue,
            };
            peers.extend(key(peer.applied).map(|it| (it, peer.applied)));
        }
        found
    }

    /// Returns the Peer with the key of another one, and another name.
    fn other(&self, pair: Pair<&ClusterPeer<'a>>) -> Option<&'a Applied> {
        let (own, others, peer) = match pair {
            Pair::Removed(it) => (&self.gone, &self.come, it),
            Pair::Added(it) => (&self.come, &self.gone, it),
            Pair::Same(_) | Pair::Changed { .. } => return None,
        };
        let key = key(peer.applied)?;
        let is_own = own.get(&key).is_some_and(|it| it.name == peer.applied.name);
        others.get(&key).copied().filter(|_| is_own)
    }
}

impl<'a> DescribedPeers<'a> {
    /// Returns a Peer in its two versions, which is described if it was not yet.
    fn get_or_find(
        &mut self,
        ends: Versions<Option<&ClusterPeer<'a>>>,
        other: Option<&'a Applied>,
        find: impl FnOnce() -> Option<ChangedPeer>,
    ) -> Option<Arc<ChangedPeer>> {
        let versions = (ends.map(|it| it.map(|it| ByAddress(it.applied))), other.map(ByAddress));
        let is_next = |it: &&(PeerVersions<'a>, Arc<ChangedPeer>)| it.0 == versions;
        let place = match self.all.get(self.next).filter(is_next) {
            Some(_) => Some(self.next),
            None => self.places.get(&versions).copied(),
        };
        let place = place.unwrap_or(self.all.len());
        self.next = place + 1;
        if let Some((_, known)) = self.all.get(place) {
            return Some(Arc::clone(known));
        }
        let found = Arc::new(find()?);
        self.all.push((versions, Arc::clone(&found)));
        self.places.insert(versions, place);
        Some(found)
    }
}

impl ChangedPeer {
    /// Describes a Peer in its old and its new version, given the one with its key and another name.
    fn find(
        Versions { before, after }: Versions<Option<&ClusterPeer>>,
        other: Option<&Applied>,
        fabrics: Versions<&Fabric, &Fabric>,
        counterparts: &Counterparts,
    ) -> Option<Self> {
        let (old, new) = (fabrics.before, fabrics.after);
        let holder = after.and_then(|it| Some(named_node(new, holder_of(new, it)?)));
        let holder = holder.or_else(|| {
            let at = holder_of(old, before?)?;
            let mut holder = named_node(old, at);
            if let Some(site) = counterparts.after(at.site) {
                holder.cluster = new.site(site).cluster.clone();
            }
            Some(holder)
        });
        let other = other.map(|it| it.name.clone());
        let kind = match (before, after) {
            (Some(before), Some(after)) => {
                PeerChangeKind::Changed(Difference::between(before, after))
            }
            (None, Some(it)) => {
                PeerChangeKind::Added { renamed_from: other, ranges: it.applied.networks() }
            }
            (Some(it), None) => {
                PeerChangeKind::Removed { renamed_to: other, ranges: it.applied.networks() }
            }
            (None, None) => return None,
        };
        Some(Self { name: after.or(before)?.applied.name.clone(), kind, holder })
    }

    /// Returns the differences of its content; none if it comes or goes.
    pub fn differences(&self) -> &[Difference] {
        match &self.kind {
            PeerChangeKind::Changed(differences) => differences,
            PeerChangeKind::Added { .. } | PeerChangeKind::Removed { .. } => &[],
        }
    }

    /// Returns whether ranges go with it, and no node of the fleet has its key. Without a mesh and
    /// snapshots of the old version, it may be of a node or a cluster that left.
    pub(super) fn is_removed_stranger(&self) -> bool {
        let PeerChangeKind::Removed { renamed_to, ranges } = &self.kind else {
            return false;
        };
        self.holder.is_none() && renamed_to.is_none() && !ranges.is_empty()
    }

    /// Returns whether it stays, and loses ranges.
    pub(super) fn loses_ranges(&self) -> bool {
        self.differences().iter().any(|it| matches!(it, Difference::RangesLost(_)))
    }

    /// Returns whether it gains a range that shares addresses with one that it loses.
    pub(super) fn replaces_ranges(&self) -> bool {
        let of = |is_gained: bool| {
            let ranges = self.differences().iter().filter_map(move |it| match it {
                Difference::RangesGained(ranges) if is_gained => Some(ranges),
                Difference::RangesLost(ranges) if !is_gained => Some(ranges),
                _ => None,
            });
            ranges.flatten()
        };
        let mut lost = of(false);
        lost.any(|lost| of(true).any(|gained| gained.overlaps(*lost)))
    }

    /// Returns the ranges that it gains or loses.
    pub fn ranges(&self) -> impl Iterator<Item = Cidr> {
        let whole = match &self.kind {
            PeerChangeKind::Added { ranges, .. } | PeerChangeKind::Removed { ranges, .. } => {
                ranges.as_slice()
            }
            PeerChangeKind::Changed(_) => &[],
        };
        let parts = self.differences().iter().flat_map(|it| match it {
            Difference::RangesGained(ranges) | Difference::RangesLost(ranges) => ranges.as_slice(),
            _ => &[],
        });
        whole.iter().chain(parts).copied()
    }
}

impl PeerCounts {
    /// Adds others.
    pub(super) fn add(&mut self, others: Self) {
        self.added += others.added;
        self.changed += others.changed;
        self.removed += others.removed;
    }

    /// Counts a change.
    pub(super) fn count(&mut self, change: &PeerChange) {
        match change.peer.kind {
            PeerChangeKind::Added { .. } => self.added += 1,
            PeerChangeKind::Changed(_) => self.changed += 1,
            PeerChangeKind::Removed { .. } => self.removed += 1,
        }
    }
}

/// Returns the only node that has the key of a Peer.
fn holder_of(fabric: &Fabric, peer: &ClusterPeer) -> Option<NodeRef> {
    fabric.only_holder(&peer.applied.spec.as_ref().ok()?.key)
}

/// Returns the name of a node.
pub(super) fn named_node(fabric: &Fabric, at: NodeRef) -> NamedNode {
    NamedNode {
        cluster: fabric.site(at.site).cluster.clone(),
        node: fabric.node(at).kilo.name.clone(),
    }
}

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
            found.pairs = compare(old, new).filter(|it| !matches!(it, Pair::Same(_))).collect();
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
        peers.flatten().map(|it| it.applied).filter_map(|it| it.spec.as_ref().ok())
    }
}

/// Returns the foreign Peers of a cluster that has some files and gets others; none if it has none. They
/// stay when the others arrive, so they belong to both versions.
///
/// A Peer with the key of one that arrives is not foreign. The new Peer replaces it, as it does the Peers
/// of `kgctl` and of the operator.
pub fn foreign_peers(
    has: &[AppliedFile],
    gets: &[AppliedFile],
    meshes: &[Mesh],
) -> Option<AppliedFile> {
    let known = gets.iter().flat_map(|it| &it.content.peers);
    let names: BTreeSet<&str> = known.clone().map(|it| it.name.as_str()).collect();
    let keys: BTreeSet<[u8; 32]> = known.filter_map(key).collect();
    let is_replaced = |peer: &Applied| {
        names.contains(peer.name.as_str()) || key(peer).is_some_and(|it| keys.contains(&it))
    };
    let foreign = has.iter().flat_map(|it| &it.content.peers).filter(|it| {
        // Engines prune what was rendered for a mesh that is not there any more.
        let is_ours = is_ours(&it.name, meshes) || it.claims.is_rendered;
        !is_replaced(it) && !is_ours
    });
    let foreign: Vec<_> = foreign.cloned().collect();
    let source = &has.first()?.source;
    (!foreign.is_empty()).then(|| AppliedFile::of_peers(source, foreign))
}

fn key(peer: &Applied) -> Option<[u8; 32]> {
    peer.spec.as_ref().ok().map(|it| it.key)
}
