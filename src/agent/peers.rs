//! The Peers of a cluster as its Kilo holds them: which it accepts, and what each of them keeps
//! (`kilo.md` §2.1 to §2.4).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ptr;

use super::applied::{Applied, AppliedFile};
use crate::kilo::id::{Id, Numbered};
use crate::kilo::peer::Translation;
use crate::kilo::peer::translation::{AllowedIp, AllowedIpId, TranslationFault};
use crate::net::prefixes::Order;
use crate::place::Place;

pub use key_contest::{Contest, ContestId, Contests, Prize, Won};

use key_contest::{contests, decide};

mod key_contest;

/// Peers of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfPeer {}

/// The number of a Peer in its cluster, in order of name; of one name in the order of the manifests.
pub type PeerId = Id<OfPeer>;

/// Something about each Peer of one cluster, in the same order.
pub type Peers<T> = Numbered<OfPeer, T>;

/// All Peers of a cluster.
#[derive(Clone, Debug)]
pub struct AppliedPeers<'a> {
    /// By name, bytewise; of one name in the order of the manifests.
    pub all: Peers<ClusterPeer<'a>>,
    /// The Peers that Kilo counts.
    pub by_key: KeyOrder,
    /// The contests between them.
    pub contests: Contests<Contest>,
    /// The ranges that those want which Kilo counts, in order; of one range by name and index.
    pub by_range: Vec<WantedRange>,
}

/// A range that a Peer wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WantedRange {
    /// The Peer.
    pub peer: PeerId,
    /// The range in its spec.
    pub range: AllowedIpId,
}

/// Peers in the order of their keys; of one key by name.
#[derive(Clone, Debug, Default)]
pub struct KeyOrder {
    /// The beginning of each key. Most keys differ in it, and a search needs nothing else.
    begins: Vec<u64>,
    /// The Peers, in the same order.
    peers: Vec<PeerId>,
}

/// A Peer of the manifests.
#[derive(Clone, Debug)]
pub struct ClusterPeer<'a> {
    /// Its place in the file.
    pub file: &'a AppliedFile,
    /// The object as written.
    pub applied: &'a Applied,
    /// The way in which Kilo treats it.
    pub standing: PeerStanding<'a>,
}

/// The way in which Kilo treats a Peer.
#[derive(Clone, Debug)]
pub enum PeerStanding<'a> {
    /// It never reaches WireGuard, for this reason.
    Faulty(&'a TranslationFault),
    /// `Peer.Ready` is false: no allowed IP, or the zero key.
    NotReady,
    /// Configured.
    Certain(PeerShare<'a>),
    /// Configured unless another Peer wins the contest with this number.
    Contested(PeerShare<'a>, ContestId),
}

/// The ranges that a Peer keeps after `deduplicatePeerIPs`.
#[derive(Clone, Debug)]
pub struct PeerShare<'a> {
    /// The kind.
    pub translation: &'a Translation,
    /// The ranges that it does not have for certain; none for most Peers.
    disputed: Option<Box<DisputedRanges>>,
    /// True if it is in no contest itself.
    is_certain: bool,
}

/// Ranges of a Peer that others have too, in the order of the spec.
#[derive(Clone, Debug, Default)]
struct DisputedRanges {
    /// The ranges that a Peer with an earlier name has instead.
    lost: Vec<Lost>,
    /// The ranges that it keeps only with a certain result of another Peer's contest.
    doubtful: Vec<AllowedIpId>,
}

/// An allowed IP that a Peer keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeptRange {
    /// Its number in the spec.
    pub id: AllowedIpId,
    /// The range.
    pub allowed: AllowedIp,
    /// True if the Peer keeps it with every result of the contests before it.
    pub is_certain: bool,
}

/// An allowed IP that another Peer has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    /// Its number in the spec.
    pub id: AllowedIpId,
    /// The Peer that has it.
    pub to: PeerId,
}

impl<'a> AppliedPeers<'a> {
    /// Reads the Peers of a cluster's manifests, and takes some contests as won.
    pub fn decided(files: &'a [AppliedFile], won: &[Won]) -> Self {
        let mut all = translated(files);
        let mut by_key = KeyOrder::sort(&all);
        let contests = contests(&mut all, &by_key.peers);
        for won in won {
            for &peer in &contests[won.contest].peers {
                decide(&mut all[peer], peer, *won);
            }
        }
        let by_range = deduplicate(&mut all);
        by_key.retain(|it| all[it].share().is_some());
        Self { all, by_key, contests, by_range }
    }
}

impl<'a> AppliedPeers<'a> {
    /// Reads the Peers of manifests if they have the names, keys and ranges of others, of which no contest
    /// is taken as won: then the same becomes of each.
    pub(super) fn like(
        others: &Peers<ClusterPeer>,
        files: &'a [AppliedFile],
    ) -> Option<Peers<ClusterPeer<'a>>> {
        let mut all = translated(files);
        if all.len() != others.len() {
            return None;
        }
        for ((_, peer), other) in all.numbered_mut().zip(others.iter()) {
            peer.standing = peer.standing_like(other)?;
        }
        Some(all)
    }
}

impl PeerShare<'_> {
    /// Returns the same for another version of the Peer, with the same ranges.
    fn for_version<'t>(&self, translation: &'t Translation) -> PeerShare<'t> {
        PeerShare { translation, disputed: self.disputed.clone(), is_certain: self.is_certain }
    }

    /// Returns what it keeps of its allowed IPs, in their order.
    pub fn kept(&self) -> impl Iterator<Item = KeptRange> {
        self.translation.allowed_ips.numbered().filter_map(|(id, it)| self.keep(id, *it))
    }

    /// Returns one of its allowed IPs, if it keeps it.
    pub fn range(&self, id: AllowedIpId) -> Option<KeptRange> {
        self.keep(id, self.translation.allowed_ips[id])
    }

    fn keep(&self, id: AllowedIpId, allowed: AllowedIp) -> Option<KeptRange> {
        let disputed = self.disputed.as_deref();
        let is_lost = |it: &DisputedRanges| it.lost.binary_search_by_key(&id, |it| it.id).is_ok();
        let is_doubtful = |it: &DisputedRanges| it.doubtful.binary_search(&id).is_ok();
        (!disputed.is_some_and(is_lost)).then(|| KeptRange {
            id,
            allowed,
            is_certain: self.is_certain && !disputed.is_some_and(is_doubtful),
        })
    }

    /// Returns how many of its allowed IPs it keeps.
    pub fn count(&self) -> usize {
        self.translation.allowed_ips.len() - self.lost().len()
    }

    /// Returns the ranges that a Peer with an earlier name has instead, in the order of the spec.
    pub fn lost(&self) -> &[Lost] {
        self.disputed.as_ref().map_or(&[], |it| &it.lost)
    }
}

impl<'a> ClusterPeer<'a> {
    /// Returns what it keeps, if it is one to Kilo.
    pub fn share(&self) -> Option<&PeerShare<'a>> {
        match &self.standing {
            PeerStanding::Certain(share) | PeerStanding::Contested(share, _) => Some(share),
            PeerStanding::Faulty(_) | PeerStanding::NotReady => None,
        }
    }

    fn share_mut(&mut self) -> Option<&mut PeerShare<'a>> {
        match &mut self.standing {
            PeerStanding::Certain(share) | PeerStanding::Contested(share, _) => Some(share),
            PeerStanding::Faulty(_) | PeerStanding::NotReady => None,
        }
    }

    /// Returns what becomes of it if the same becomes of it as of another one, whose name, key and ranges
    /// it has.
    fn standing_like(&self, other: &ClusterPeer) -> Option<PeerStanding<'a>> {
        if !has_same_routes(self.applied, other.applied) {
            return None;
        }
        match (&self.applied.spec, &other.standing) {
            (Err(fault), PeerStanding::Faulty(_)) => Some(PeerStanding::Faulty(fault)),
            (Ok(_), PeerStanding::NotReady) => Some(PeerStanding::NotReady),
            (Ok(translation), PeerStanding::Certain(share)) => {
                Some(PeerStanding::Certain(share.for_version(translation)))
            }
            (Ok(translation), PeerStanding::Contested(share, contest)) => {
                Some(PeerStanding::Contested(share.for_version(translation), *contest))
            }
            _ => None,
        }
    }

    /// Returns its key, if it has one that an agent can read.
    pub(super) fn key(&self) -> Option<&'a [u8; 32]> {
        Some(&self.applied.spec.as_ref().ok()?.key)
    }

    /// Returns the place of the object.
    pub fn place(&self) -> Place {
        self.file.place(&self.applied.spot)
    }

    /// Returns the place of one of its allowed IPs.
    pub fn allowed_ip(&self, index: usize) -> Place {
        self.file.allowed_ip(self.applied, index)
    }
}

/// Returns whether two Peers have the same name, key and ranges, which is all that the tables of a cluster
/// depend on.
pub fn has_same_routes(one: &Applied, other: &Applied) -> bool {
    let has_same_spec = || match (&one.spec, &other.spec) {
        (Ok(one), Ok(other)) => one.key == other.key && one.allowed_ips == other.allowed_ips,
        (Err(one), Err(other)) => one == other,
        _ => false,
    };
    // Those from the same text are one in memory.
    ptr::eq(one, other) || one.name == other.name && has_same_spec()
}

/// Takes every Peer through admission and `Peer.Ready` (`kilo.md` §2.1), and sorts by name.
fn translated(files: &[AppliedFile]) -> Peers<ClusterPeer<'_>> {
    let all = files.iter().flat_map(|file| file.content.peers.iter().map(move |it| (file, it)));
    let count = files.iter().map(|it| it.content.peers.len()).sum();
    let mut peers: Vec<ClusterPeer> = Vec::with_capacity(count);
    peers.extend(all.map(|(file, applied)| ClusterPeer {
        file,
        applied,
        standing: match &applied.spec {
            Err(fault) => PeerStanding::Faulty(fault),
            Ok(translation) if !translation.is_ready() => PeerStanding::NotReady,
            Ok(translation) => {
                PeerStanding::Certain(PeerShare { translation, disputed: None, is_certain: true })
            }
        },
    }));
    peers.sort_by_key(|it| &*it.applied.name);
    Peers::new(peers)
}

impl KeyOrder {
    /// Sorts the Peers that have a key.
    fn sort(peers: &Peers<ClusterPeer>) -> Self {
        let keys = peers.numbered().filter_map(|(id, peer)| Some((peer.key()?, id)));
        let mut order: Vec<(u64, PeerId)> = keys.map(|(key, id)| (begin(key), id)).collect();
        order.sort_unstable();
        for alike in order.chunk_by_mut(|a, b| a.0 == b.0) {
            if 1 < alike.len() {
                alike.sort_by_key(|it| peers[it.1].key());
            }
        }
        let (begins, peers) = order.into_iter().unzip();
        Self { begins, peers }
    }

    fn retain(&mut self, mut is_kept: impl FnMut(PeerId) -> bool) {
        if self.peers.iter().all(|it| is_kept(*it)) {
            return;
        }
        let order = self.begins.iter().copied().zip(self.peers.iter().copied());
        (self.begins, self.peers) = order.filter(|it| is_kept(it.1)).unzip();
    }

    /// Returns all of them.
    pub fn iter(&self) -> impl Iterator<Item = PeerId> {
        self.peers.iter().copied()
    }

    /// Returns those with a key.
    pub fn with(&self, key: &[u8; 32], all: &Peers<ClusterPeer>) -> &[PeerId] {
        let begin = begin(key);
        let start = self.begins.partition_point(|it| *it < begin);
        let behind = self.begins.get(start..).unwrap_or_default();
        // Nodes report their keys, so all of them may have one beginning.
        let count = behind.partition_point(|it| *it == begin);
        let alike = self.peers.get(start..start + count).unwrap_or_default();
        let of = |peer: &PeerId| all[*peer].key();
        let behind = alike.get(alike.partition_point(|it| of(it) < Some(key))..);
        let behind = behind.unwrap_or_default();
        behind.get(..behind.partition_point(|it| of(it) == Some(key))).unwrap_or_default()
    }
}

fn begin(key: &[u8; 32]) -> u64 {
    key.first_chunk().map_or(0, |it| u64::from_be_bytes(*it))
}

/// Gives each range to the first Peer by name that has it (`deduplicatePeerIPs`, `kilo.md` §2.4), and returns
/// all ranges in order.
///
/// The printed text is compared: host bits count, and of one Peer's equal ranges the first is kept.
/// A contested Peer may be absent, so the next one may have the range too.
fn deduplicate(peers: &mut Peers<ClusterPeer>) -> Vec<WantedRange> {
    let mut wanted: Vec<WantedRange> = Vec::with_capacity(3 * peers.len());
    let mut ranges: Vec<(IpAddr, u8)> = Vec::with_capacity(3 * peers.len());
    for (peer, it) in peers.numbered() {
        let Some(share) = it.share() else { continue };
        for (range, allowed) in share.translation.allowed_ips.numbered() {
            wanted.push(WantedRange { peer, range });
            let network = allowed.interface.network;
            ranges.push((network.first(), network.prefix_length()));
        }
    }
    let order = Order::sort(ranges.into_iter());
    let wanted_at = |it: usize| wanted.get(it).copied();
    for of_network in order.repeated() {
        let mut runs: BTreeMap<IpAddr, Vec<WantedRange>> = BTreeMap::new();
        for wanted in of_network.into_iter().filter_map(wanted_at) {
            let allowed =
                peers[wanted.peer].share().map(|it| it.translation.allowed_ips[wanted.range]);
            if let Some(allowed) = allowed {
                runs.entry(allowed.interface.address).or_default().push(wanted);
            }
        }
        for run in runs.values() {
            give_to_first(peers, run);
        }
    }
    let shares = peers.numbered_mut().filter_map(|it| it.1.share_mut());
    for disputed in shares.filter_map(|it| it.disputed.as_mut()) {
        disputed.lost.sort_unstable_by_key(|it| it.id);
        disputed.doubtful.sort_unstable();
    }
    order.numbers().filter_map(wanted_at).collect()
}

/// Gives a range to the first that wants it, and to later ones as far as that one may be absent.
fn give_to_first(peers: &mut Peers<ClusterPeer>, run: &[WantedRange]) {
    let mut owner: Option<(PeerId, bool)> = None;
    for &WantedRange { peer, range: id } in run {
        let Some(share) = peers[peer].share_mut() else {
            continue;
        };
        match owner {
            Some((to, is_owned)) if is_owned || to == peer => {
                share.disputed.get_or_insert_default().lost.push(Lost { id, to });
            }
            _ => {
                if owner.is_some() {
                    share.disputed.get_or_insert_default().doubtful.push(id);
                }
                owner = Some((peer, share.is_certain));
            }
        }
    }
}
