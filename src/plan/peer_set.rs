//! Peer sets: the Peers that a source gives, made once for all targets that get the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::carrier::Carrier;
use super::decision::Holes;
use super::own_loops::OwnLoops;
use super::promise::{self, BrokenPromise};
use super::withheld::TargetReason;
use super::{EachPeerSet, PeerSet, PeerSetId, anchor, pods};
use crate::fleet::{Member, MemberId};
use crate::kilo::peer::Peer;
use crate::membership::{CandidateId, PeerCandidate};
use crate::mesh::PodRanges;
use crate::name::PeerName;
use crate::net::{Cidr, Family, merged};
use crate::wireguard::Endpoint;

/// Everything that decides a set of Peers, except the loops of the member itself: the member, the
/// address family, the excluded candidates, the withheld ranges, and the parts that are cut out of
/// others.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PeerSetKey {
    pub(super) member: MemberId,
    pub(super) family: Option<Family>,
    pub(super) excluded: BTreeSet<CandidateId>,
    pub(super) withheld: BTreeSet<Cidr>,
    pub(super) holes: Holes,
}

/// Peer sets that were made, each once.
#[derive(Default)]
pub(super) struct PeerSets {
    pub(super) made: EachPeerSet<PeerSet>,
    known: BTreeMap<PeerSetKey, PeerSetDraft>,
}

/// A set of Peers that may turn out empty, with what was withheld.
#[derive(Clone, Default)]
pub(super) struct PeerSetDraft {
    pub(super) peer_set: Option<PeerSetId>,
    pub(super) reasons: Arc<[Arc<TargetReason>]>,
}

impl PeerSets {
    /// Returns the set of Peers for `key`, made now or before.
    pub(super) fn draft(
        &mut self,
        source: &Member,
        own_loops: &OwnLoops,
        key: PeerSetKey,
    ) -> Result<PeerSetDraft, BrokenPromise> {
        if let Some(draft) = self.known.get(&key) {
            return Ok(draft.clone());
        }
        let SourceOffer { peers, shared, reasons } = offer(source, own_loops, &key);
        promise::is_declared(source, &peers)?;
        let reasons = own_loops.reasons.iter().cloned().chain(reasons.into_iter().map(Arc::new));
        let mut draft = PeerSetDraft { peer_set: None, reasons: reasons.collect() };
        if !peers.is_empty() {
            draft.peer_set = Some(self.made.push(PeerSet {
                name: source.mesh.peer_set_name(&source.entry.name),
                mesh: source.mesh.name.clone(),
                source: source.entry.name.clone(),
                peers,
                shared,
            }));
        }
        self.known.insert(key, draft.clone());
        Ok(draft)
    }
}

/// Everything that a source can give: its Peers, the cluster-wide ranges that they carry, the withheld
/// ranges.
struct SourceOffer {
    peers: Vec<Peer>,
    shared: Vec<Cidr>,
    reasons: Vec<TargetReason>,
}

/// Makes the Peers of a source, of one family, without what is left out.
fn offer(source: &Member, own_loops: &OwnLoops, key: &PeerSetKey) -> SourceOffer {
    let is_routable = |cidr: Cidr| key.family.is_none_or(|family| cidr.family() == family);
    let is_given = |cidr: &Cidr| !key.withheld.contains(cidr) && !own_loops.withheld.contains(cidr);
    let mut unroutable = 0;
    let mut given = |ranges: &mut dyn Iterator<Item = Cidr>| -> Vec<Cidr> {
        let (routed, others): (Vec<Cidr>, Vec<Cidr>) = ranges.partition(|it| is_routable(*it));
        unroutable += others.len();
        routed.into_iter().filter(is_given).collect()
    };
    let candidates = source.membership.candidates.numbered();
    let is_left = |index| !key.excluded.contains(&index) && !own_loops.excluded.contains(&index);
    let left = candidates.filter(|(index, _)| is_left(*index));
    let mut left: Vec<Carrier> = left
        .map(|(_, candidate)| Carrier {
            candidate,
            pods: given(&mut candidate.pods.iter().copied()),
            others: given(&mut candidate.hosts.iter().copied()),
        })
        .collect();
    let shared = given(&mut source.shared());
    let pools = given(&mut source.cluster.anchored.pods.iter().copied());
    let mut reasons = Vec::new();
    if let (Some(family), true) = (key.family, 0 < unroutable) {
        reasons.push(TargetReason::Family { family: family.other(), ranges: unroutable });
    }
    let mut whole = pods::carry(source, &mut left, pools, &mut reasons);
    let mut claimed: BTreeSet<Cidr> = left.iter().flat_map(Carrier::ranges).collect();
    if source.entry.advertise.pods == PodRanges::Merged {
        for carrier in &mut left {
            carrier.pods = merged(key.without_holes(&carrier.pods, &claimed));
        }
        claimed.extend(left.iter().flat_map(|it| &it.pods));
    }
    whole.extend(anchor::carry(source, &mut left, shared, &mut reasons));
    // Anchors share out whole ranges, so holes come last.
    if !key.holes.is_empty() {
        whole = key.without_holes(&whole, &claimed);
        for carrier in &mut left {
            carrier.pods = key.without_holes(&carrier.pods, &claimed);
            carrier.others = key.without_holes(&carrier.others, &claimed);
        }
    }
    let left = left.into_iter().filter(|it| it.ranges().next().is_some());
    let mut peers: Vec<Peer> =
        left.map(|it| peer(source, it.candidate, it.ranges().collect())).collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    SourceOffer { peers, shared: whole, reasons }
}

impl PeerSetKey {
    /// Returns what stays of ranges, or of parts of them. Claims of a node are left to that node, as
    /// a target must not get one range twice.
    fn without_holes(&self, ranges: &[Cidr], claimed: &BTreeSet<Cidr>) -> Vec<Cidr> {
        let stays = |&range: &Cidr| {
            let around = self.holes.iter().filter(|(whole, _)| whole.contains(range));
            let inside = self
                .holes
                .keys()
                .filter(|it| range != **it && range.contains(**it) && claimed.contains(it));
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
