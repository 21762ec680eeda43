//! Blocks: the Peers that a source gives, made once for all targets that get the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::anchor;
use super::cut::CutOff;
use super::promise::{self, BrokenPromise};
use super::within::Within;
use super::{Block, anchor::Carrier};
use crate::fleet::Member;
use crate::kilo::peer::Peer;
use crate::membership::PeerCandidate;
use crate::name::{BlockName, PeerName};
use crate::net::{Cidr, Family};
use crate::wireguard::Endpoint;

/// What is cut out of ranges, by these.
pub(super) type Holes = BTreeMap<Cidr, BTreeSet<Cidr>>;

/// What decides a block, beside what a member leaves out for its own sake: the member, the family
/// kept, the candidates dropped, the ranges withheld, and what is cut out of others.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    pub(super) member: usize,
    pub(super) family: Option<Family>,
    pub(super) dropped: BTreeSet<usize>,
    pub(super) withheld: BTreeSet<Cidr>,
    pub(super) holes: Holes,
}

/// Blocks that were made, each once.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) made: Vec<Block>,
    known: BTreeMap<Key, Draft>,
}

/// A block that may turn out empty, with what was cut in it.
#[derive(Clone, Default)]
pub(super) struct Draft {
    pub(super) block: Option<usize>,
    pub(super) cuts: Arc<[Arc<CutOff>]>,
}

impl Blocks {
    pub(super) fn get(&self, block: usize) -> Option<&Block> {
        self.made.get(block)
    }

    pub(super) fn name(&self, block: usize) -> Option<&BlockName> {
        self.get(block).map(|block| &block.name)
    }

    /// Returns the block for `key`, made now or before.
    pub(super) fn draft(
        &mut self,
        source: &Member,
        within: &Within,
        key: Key,
    ) -> Result<Draft, BrokenPromise> {
        if let Some(draft) = self.known.get(&key) {
            return Ok(draft.clone());
        }
        let Offer {
            peers,
            shared,
            cuts,
        } = offer(source, within, &key);
        promise::is_declared(source, &peers)?;
        let cuts = within
            .cuts
            .iter()
            .cloned()
            .chain(cuts.into_iter().map(Arc::new));
        let mut draft = Draft {
            block: None,
            cuts: cuts.collect(),
        };
        if !peers.is_empty() {
            draft.block = Some(self.made.len());
            self.made.push(Block {
                name: source.mesh.block(&source.entry.name),
                mesh: source.mesh.name.clone(),
                source: source.entry.name.clone(),
                peers,
                shared,
            });
        }
        self.known.insert(key, draft.clone());
        Ok(draft)
    }
}

/// What a source has to give: its Peers, the cluster-wide ranges that they carry, what was cut.
struct Offer {
    peers: Vec<Peer>,
    shared: Vec<Cidr>,
    cuts: Vec<CutOff>,
}

/// Makes the Peers of a source, of one family, without what is left out.
fn offer(source: &Member, within: &Within, key: &Key) -> Offer {
    let routable = |cidr: &&Cidr| key.family.is_none_or(|family| cidr.family() == family);
    let is_given = |cidr: &&Cidr| !key.withheld.contains(cidr) && !within.withheld.contains(cidr);
    let mut cuts = Vec::new();
    let mut unroutable = 0;
    let mut left: Vec<Carrier> = Vec::new();
    for (index, candidate) in source.membership.candidates.iter().enumerate() {
        if key.dropped.contains(&index) || within.dropped.contains(&index) {
            continue;
        }
        let routed = candidate.claims.iter().filter(routable);
        unroutable += candidate.claims.len() - routed.clone().count();
        let ranges = routed.filter(is_given).copied().collect();
        left.push(Carrier { candidate, ranges });
    }
    // A target that takes nothing of any node may still take what is the whole cluster's.
    if left.iter().any(Carrier::is_dialled_for_its_own) {
        left.retain(|it| !it.ranges.is_empty());
    }
    let shared = &source.cluster.shared;
    unroutable += shared.iter().filter(|it| !routable(it)).count();
    if let (Some(family), true) = (key.family, 0 < unroutable) {
        cuts.push(CutOff::Family {
            family: family.other(),
            ranges: unroutable,
        });
    }
    let shared = shared.iter().filter(routable).filter(is_given);
    let claimed: BTreeSet<Cidr> = left.iter().flat_map(|it| &it.ranges).copied().collect();
    let mut shared = anchor::carry(source, &mut left, shared.copied().collect(), &mut cuts);
    // Anchors share out whole ranges, so holes come last.
    if !key.holes.is_empty() {
        shared = key.without_holes(&shared, &claimed);
        for carrier in &mut left {
            carrier.ranges = key.without_holes(&carrier.ranges, &claimed);
        }
    }
    let mut peers: Vec<Peer> = left
        .into_iter()
        .filter(|it| !it.ranges.is_empty())
        .map(|Carrier { candidate, ranges }| peer(source, candidate, ranges))
        .collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    Offer {
        peers,
        shared,
        cuts,
    }
}

impl Key {
    /// Returns what stays of ranges, or of parts of them. What a node claims is left to that node, as
    /// a target must not get one range twice.
    fn without_holes(&self, ranges: &[Cidr], claimed: &BTreeSet<Cidr>) -> Vec<Cidr> {
        let stays = |&range: &Cidr| {
            let around = self.holes.iter().filter(|(whole, _)| whole.contains(range));
            let inside = self.holes.keys();
            let inside =
                inside.filter(|it| range != **it && range.contains(**it) && claimed.contains(it));
            let mut left = range.without(around.flat_map(|(_, holes)| holes).chain(inside));
            left.retain(|part| *part == range || !claimed.contains(part));
            left
        };
        ranges.iter().flat_map(stays).collect()
    }
}

fn peer(source: &Member, candidate: &PeerCandidate, allowed_ips: Vec<Cidr>) -> Peer {
    let (mesh, cluster) = (&source.mesh.name, &source.entry.name);
    let endpoint = candidate.endpoint.clone();
    Peer {
        name: PeerName::new(mesh, cluster, &candidate.leader),
        mesh: mesh.clone(),
        cluster: cluster.clone(),
        allowed_ips,
        endpoint: Some(endpoint.unwrap_or(Endpoint::PLACEHOLDER)),
        keepalive: source.entry.keepalive,
        key: candidate.key,
    }
}
