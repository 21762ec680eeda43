//! The model: how the Kilo of one cluster handles its Peers, and the WireGuard table that results
//! (`kilo.md` §2).
//!
//! If Kilo's result depends on order or time, the answer contains all possible results.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::applied::AppliedFile;
use super::peers::{
    AppliedPeers, ClusterPeer, Contest, Contests, KeyOrder, PeerId, PeerShare, PeerStanding, Peers,
    WantedRange, Won,
};
use crate::kilo::id::SegmentId;
use crate::kilo::peer::translation::{AllowedIpId, TranslationFault};
use crate::kilo::topology::{KiloTopology, TopologyNode};
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, SlotId};
use crate::place::Place;
use crate::wireguard::{Endpoint, Host};

mod alike;
mod claims;

use claims::{claims_of_peer, claims_of_segment, tunnels};

/// One cluster with its Peers.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    /// The cluster's own nodes and segments.
    pub topology: Arc<KiloTopology>,
    /// All Peers of its manifests, by name, bytewise; of one name in the order of the manifests.
    pub peers: Arc<Peers<ClusterPeer<'a>>>,
    /// The contests between its Peers.
    pub contests: Contests<Contest>,
    /// The problems that leave nothing certain on any node.
    pub stoppers: Vec<AgentStopper>,
    /// The ranges that are routed into the tunnels, and through which one: what `Topology.Conf`
    /// writes, for all nodes together. See [`Model::holder`].
    pub tunnels: Arc<Prefixes<TunnelClaim>>,
    /// The Peers that Kilo configures, by key.
    by_key: Arc<KeyOrder>,
    /// The ranges that Peers want, in order.
    by_range: Arc<Vec<WantedRange>>,
    /// Keys that a segment shares with another segment or a Peer.
    shared_keys: BTreeMap<[u8; 32], Vec<Tunnel>>,
}

/// A problem that stops every agent of the cluster sooner or later: a running agent may continue
/// for a while, and an agent that starts fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentStopper {
    /// A Peer that the API server stores and no agent can decode, nor then the list that it is in
    /// (`kilo.md` §1.4).
    Undecodable(PeerId),
    /// A range that kernels refuse, together with everything that is written after it (`kilo.md`
    /// §2.1).
    Mapped {
        /// The Peer.
        peer: PeerId,
        /// The index of the allowed IP in its spec.
        index: usize,
    },
    /// The Kilo subnet has too few addresses for the segments (`kilo.md` §4.4).
    Exhausted,
}

/// A far end of the cluster's WireGuard.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Tunnel {
    /// A segment of its own.
    Segment(SegmentId),
    /// A Peer.
    Peer(PeerId),
}

/// A range that a far end lays claim to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunnelClaim {
    /// The far end.
    pub tunnel: Tunnel,
    /// The allowed IP of a Peer.
    pub range: Option<AllowedIpId>,
    /// True if the entry exists at all times, in the form that WireGuard takes.
    pub is_certain: bool,
}

/// The holder of a range in the WireGuard table of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RangeHolder {
    /// This far end.
    Certain(TunnelClaim),
    /// It depends on order or time: one of these, or none of them.
    Ambiguous(Vec<TunnelClaim>),
}

/// The address at which a far end can be dialled, or the reason for which it cannot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Dial<'a> {
    /// At this address.
    Address(&'a Endpoint),
    /// The addresses to which the name resolves. If it does not resolve, no agent does anything
    /// (`kilo.md` §2.8).
    Name(&'a Endpoint),
    /// It has no endpoint, or only the placeholder, and must connect first.
    Unknown,
    /// Its endpoint is itself routed into a tunnel, by this range (`kilo.md` §2.6).
    Loops(SlotId),
}

impl TunnelClaim {
    /// Returns the Peer, if it is one that lays the claim.
    pub fn peer(&self) -> Option<PeerId> {
        match self.tunnel {
            Tunnel::Peer(peer) => Some(peer),
            Tunnel::Segment(_) => None,
        }
    }
}

impl<'a> Model<'a> {
    /// Builds what the Kilo of a cluster builds from the Peers of these files.
    pub fn new(topology: &Arc<KiloTopology>, files: &'a [AppliedFile]) -> Self {
        Self::decided(topology, files, &[])
    }

    /// Builds the same where some contests are won.
    pub fn decided(topology: &Arc<KiloTopology>, files: &'a [AppliedFile], won: &[Won]) -> Self {
        let AppliedPeers { all: peers, by_key, contests, by_range } =
            AppliedPeers::decided(files, won);
        let model = Self {
            topology: Arc::clone(topology),
            peers: Arc::new(peers),
            contests,
            stoppers: Vec::new(),
            tunnels: Arc::new(Prefixes::new([])),
            by_key: Arc::new(by_key),
            by_range: Arc::new(by_range),
            shared_keys: BTreeMap::new(),
        };
        model.formed(topology)
    }

    /// Builds the tables of its Peers and these nodes.
    fn formed(mut self, topology: &Arc<KiloTopology>) -> Self {
        self.topology = Arc::clone(topology);
        if topology.has_location_ranges() {
            let shares = self.peers.iter().filter_map(ClusterPeer::share);
            let kept = shares.flat_map(PeerShare::kept);
            let ranges = kept.map(|it| (it.allowed.interface.network, ()));
            Arc::make_mut(&mut self.topology).filter_location_ranges(&ranges.collect());
        }
        self.stoppers = stoppers(&self.topology, &self.peers);
        let is_certain = self.stoppers.is_empty();
        let tunnels = tunnels(&self.topology, &self.peers, &self.by_range, is_certain);
        self.tunnels = Arc::new(tunnels);
        self.shared_keys = self.shared_keys();
        self
    }

    /// Returns the Peers that have a key, as far as Kilo configures them, by name.
    pub fn peers_with(&self, key: &[u8; 32]) -> &[PeerId] {
        self.by_key.with(key, &self.peers)
    }

    /// Returns the Peers that Kilo configures, in the order of their keys.
    pub fn by_key(&self) -> impl Iterator<Item = (&[u8; 32], PeerId)> {
        self.by_key.iter().filter_map(|peer| Some((self.peers[peer].key()?, peer)))
    }

    /// Finds the keys that a segment shares: with another segment, or with a Peer. Peers among
    /// themselves are [`Contest`]s.
    fn shared_keys(&self) -> BTreeMap<[u8; 32], Vec<Tunnel>> {
        let mut keys: BTreeMap<[u8; 32], Vec<Tunnel>> = BTreeMap::new();
        for segment in self.topology.segments.ids() {
            if let Some(key) = self.topology.leader(segment).kilo.key {
                keys.entry(key).or_default().push(Tunnel::Segment(segment));
            }
        }
        for (key, tunnels) in &mut keys {
            tunnels.extend(self.peers_with(key).iter().copied().map(Tunnel::Peer));
        }
        keys.retain(|_, tunnels| 1 < tunnels.len());
        keys
    }

    /// Returns who has a range of [`Model::tunnels`] on the leader of a segment; none if only the
    /// segment itself claims it.
    pub fn holder(&self, segment: SegmentId, slot: SlotId) -> Option<RangeHolder> {
        let (_, claims) = self.tunnels.at(slot);
        let there =
            || claims.iter().copied().filter(|claim| self.is_configured(segment, claim.tunnel));
        let first = there().next()?;
        // Two ranges of one Peer may be one when they are masked.
        let is_one = there().all(|it| it.tunnel == first.tunnel);
        let certain = there()
            .find(|it| it.is_certain)
            .filter(|_| is_one && !self.shares_key(segment, first.tunnel));
        let ambiguous = || RangeHolder::Ambiguous(there().collect());
        Some(certain.map_or_else(ambiguous, RangeHolder::Certain))
    }

    /// Returns where the WireGuard of a segment's leader sends a packet for `address`, and from whom
    /// it takes one from there: the longest prefix and who has it.
    pub fn select(&self, segment: SegmentId, address: IpAddr) -> Option<(SlotId, RangeHolder)> {
        self.tunnels.holding(address).find_map(|slot| Some((slot, self.holder(segment, slot)?)))
    }

    /// Returns whether the WireGuard of a segment's leader has this far end: not itself, not one
    /// with its own key (`kilo.md` §2.7), and in `Cross` not one of its own location.
    pub fn is_configured(&self, segment: SegmentId, tunnel: Tunnel) -> bool {
        let own = self.topology.leader(segment).kilo.key;
        let is_apart = match tunnel {
            Tunnel::Segment(other) => !self.topology.are_one(segment, other),
            Tunnel::Peer(_) => true,
        };
        is_apart && self.key(tunnel) != own
    }

    /// Returns whether another far end of a segment's leader has the same key.
    pub fn shares_key(&self, segment: SegmentId, tunnel: Tunnel) -> bool {
        let key = self.key(tunnel);
        // WireGuard skips far ends with its own key, so that none of them is there.
        if key == self.topology.leader(segment).kilo.key {
            return false;
        }
        let sharing = key.and_then(|key| self.shared_keys.get(&key));
        let mut others = sharing.into_iter().flatten().filter(|it| **it != tunnel);
        others.any(|it| self.is_configured(segment, *it))
    }

    /// Returns whether another segment or Peer has the same key as this one.
    pub fn is_key_shared(&self, tunnel: Tunnel) -> bool {
        self.key(tunnel).is_some_and(|it| self.shared_keys.contains_key(&it))
    }

    /// Returns whether any segment shares its key with another segment or with a Peer.
    pub fn has_shared_keys(&self) -> bool {
        !self.shared_keys.is_empty()
    }

    /// Returns the far ends of a segment's leader in the order in which `Topology.Conf` lists them:
    /// segments, then Peers by name.
    pub fn configured(&self, segment: SegmentId) -> Vec<Tunnel> {
        let segments = self.topology.segments.ids().map(Tunnel::Segment);
        let peers = self.peers.ids().map(Tunnel::Peer);
        let is_there = |it: &Tunnel| match *it {
            Tunnel::Segment(other) => !self.topology.are_one(segment, other),
            Tunnel::Peer(peer) => self.share(peer).is_some(),
        };
        segments.chain(peers).filter(is_there).collect()
    }

    /// Returns what a Peer keeps, if it is one to Kilo.
    pub fn share(&self, peer: PeerId) -> Option<&PeerShare<'a>> {
        self.peers[peer].share()
    }

    /// Returns the key of a far end.
    pub fn key(&self, tunnel: Tunnel) -> Option<[u8; 32]> {
        match tunnel {
            Tunnel::Segment(segment) => self.topology.leader(segment).kilo.key,
            Tunnel::Peer(peer) => Some(self.share(peer)?.translation.key),
        }
    }

    /// Returns where a far end is dialled, as configured; `None` for a Peer without endpoint or with the
    /// placeholder. With a keepalive of its own it may be found elsewhere (`kilo.md` §2.9).
    pub fn endpoint(&self, tunnel: Tunnel) -> Option<&Endpoint> {
        match tunnel {
            Tunnel::Segment(segment) => self.topology.leader(segment).endpoint(),
            Tunnel::Peer(peer) => self.share(peer)?.translation.dialled(),
        }
    }

    /// Returns whether a segment's leader can dial a far end.
    pub fn dial(&self, segment: SegmentId, tunnel: Tunnel) -> Dial<'_> {
        let Some(endpoint) = self.endpoint(tunnel) else {
            return Dial::Unknown;
        };
        let address = match endpoint.host {
            Host::Ip(address) => address,
            Host::Dns(_) => return Dial::Name(endpoint),
        };
        self.carries(segment, address).map_or(Dial::Address(endpoint), Dial::Loops)
    }

    /// Returns the range by which a segment's leader routes what it sends to `address` into its tunnels,
    /// where that is to carry a tunnel itself.
    ///
    /// A network of its own that is narrower than every range around the address keeps the packets
    /// out of the tunnels, as does Kilo itself for the endpoints of its own segments.
    pub fn carries(&self, segment: SegmentId, address: IpAddr) -> Option<SlotId> {
        let lan = self.topology.leader(segment).kilo.lan;
        let lan = lan.filter(|lan| lan.holds(address));
        let mut around = self.tunnels.holding(address).filter(|&slot| {
            let (range, claims) = self.tunnels.at(slot);
            let is_wider = lan.is_some_and(|lan| range.prefix_length() < lan.prefix_length());
            !is_wider && claims.iter().any(|it| self.routes(segment, *it, address))
        });
        around.next()
    }

    /// Returns whether any far end has a range around an address.
    pub fn has_range_around(&self, address: IpAddr) -> bool {
        self.tunnels.holding(address).next().is_some()
    }

    /// Returns whether a segment's leader routes a claim that contains the endpoint `address` of
    /// another one into its tunnels.
    ///
    /// Peers are routed always, their own key or not; a segment's internal address not where it is
    /// the segment's endpoint.
    fn routes(&self, segment: SegmentId, claim: TunnelClaim, address: IpAddr) -> bool {
        match claim.tunnel {
            Tunnel::Peer(_) => true,
            Tunnel::Segment(other) => {
                let endpoint = self.endpoint(claim.tunnel).map(|it| &it.host);
                !self.topology.are_one(segment, other) && endpoint != Some(&Host::Ip(address))
            }
        }
    }

    /// Returns the ranges of [`Model::tunnels`] to which a far end lays claim.
    pub fn ranges(&self, tunnel: Tunnel) -> impl Iterator<Item = Cidr> {
        let (segment, peer) = match tunnel {
            Tunnel::Segment(id) => (Some(claims_of_segment(id, &self.topology.segments[id])), None),
            Tunnel::Peer(id) => (None, Some(claims_of_peer(id, &self.peers[id]))),
        };
        segment.into_iter().flatten().chain(peer.into_iter().flatten()).map(|it| it.0)
    }

    /// Returns the place of a claim, if it is written in a manifest.
    pub fn place(&self, claim: TunnelClaim) -> Option<Place> {
        match claim.tunnel {
            Tunnel::Segment(_) => None,
            Tunnel::Peer(peer) => Some(self.peers[peer].allowed_ip(claim.range?.index())),
        }
    }

    /// Returns the leader of a segment.
    pub fn leader(&self, segment: SegmentId) -> &TopologyNode {
        self.topology.leader(segment)
    }
}

fn stoppers(topology: &KiloTopology, peers: &Peers<ClusterPeer>) -> Vec<AgentStopper> {
    let mut stoppers = Vec::new();
    for (id, peer) in peers.numbered() {
        if matches!(peer.standing, PeerStanding::Faulty(TranslationFault::Undecodable(_))) {
            stoppers.push(AgentStopper::Undecodable(id));
        }
        // Hardly any has one, and no other has to be looked at.
        let share =
            peer.share().filter(|it| it.translation.allowed_ips.iter().any(|it| it.is_mapped));
        let kept = share.into_iter().flat_map(PeerShare::kept);
        let mapped = kept.filter(|it| it.allowed.is_mapped);
        stoppers.extend(mapped.map(|it| AgentStopper::Mapped { peer: id, index: it.id.index() }));
    }
    stoppers.extend(topology.is_exhausted.then_some(AgentStopper::Exhausted));
    stoppers
}

#[cfg(test)]
mod tests;
