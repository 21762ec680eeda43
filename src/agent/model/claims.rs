//! Claims: which tunnels get which ranges.

use std::iter;

use super::{Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, KeptRange, PeerId, PeerShare, Peers, WantedRange};
use crate::kilo::id::SegmentId;
use crate::kilo::topology::{KiloTopology, Leader, TopologySegment, WireguardIp};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// Returns all that `Topology.Conf` writes on any node, masked as WireGuard stores it. Of one range, the claims of
/// segments come first. `by_range` has the ranges of the Peers in order.
pub(super) fn tunnels(
    topology: &KiloTopology,
    peers: &Peers<ClusterPeer>,
    by_range: &[WantedRange],
    is_certain: bool,
) -> Prefixes<TunnelClaim> {
    let mut of_segments: Vec<_> =
        topology.segments.numbered().flat_map(|(id, it)| claims_of_segment(id, it)).collect();
    of_segments.sort_by_key(|it| it.0);
    let count = of_segments.len() + by_range.len();
    let mut of_segments = of_segments.into_iter().peekable();
    let mut of_peers = by_range
        .iter()
        .filter_map(|it| {
            let kept = peers[it.peer].share()?.range(it.range)?;
            Some(claim_of_peer(it.peer, kept))
        })
        .peekable();
    let all = iter::from_fn(|| {
        let next = of_peers.peek();
        let (range, mut claim) = of_segments
            .next_if(|it| next.is_none_or(|next| it.0 <= next.0))
            .or_else(|| of_peers.next())?;
        claim.is_certain &= is_certain;
        Some((range, claim))
    });
    Prefixes::from_sorted(count, all)
}

pub(super) fn claims_of_segment(
    id: SegmentId,
    segment: &TopologySegment,
) -> impl Iterator<Item = (Cidr, TunnelClaim)> {
    let is_led = matches!(segment.leader, Leader::Certain(_));
    let claim = move |is_certain| TunnelClaim {
        tunnel: Tunnel::Segment(id),
        range: None,
        is_certain: is_certain && is_led,
    };
    let addresses = match segment.wireguard_ip {
        WireguardIp::Certain(address) => [Some((address, true)), None],
        WireguardIp::Ambiguous { computed, announced } => {
            [Some((computed, false)), Some((announced, false))]
        }
        WireguardIp::None => [None; 2],
    };
    let ranges = segment
        .allowed_ips
        .iter()
        .chain(&segment.location_ranges)
        .map(move |it| (it.interface.network, claim(!it.is_mapped)));
    let addresses = addresses.into_iter().flatten();
    ranges
        .chain(addresses.map(move |(address, is_certain)| (Cidr::host(address), claim(is_certain))))
}

pub(super) fn claims_of_peer(
    id: PeerId,
    peer: &ClusterPeer,
) -> impl Iterator<Item = (Cidr, TunnelClaim)> {
    let kept = peer.share().into_iter().flat_map(PeerShare::kept);
    kept.map(move |kept| claim_of_peer(id, kept))
}

fn claim_of_peer(id: PeerId, kept: KeptRange) -> (Cidr, TunnelClaim) {
    let claim =
        TunnelClaim { tunnel: Tunnel::Peer(id), range: Some(kept.id), is_certain: kept.is_certain };
    (kept.allowed.interface.network, claim)
}
