//! Claims: which tunnels get which ranges.

use super::{Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, PeerId, PeerShare, Peers};
use crate::kilo::id::SegmentId;
use crate::kilo::topology::{KiloTopology, Leader, TopologySegment, WireguardIp};
use crate::net::Cidr;

/// Returns all that `Topology.Conf` writes on any node, masked as WireGuard stores it.
pub(super) fn claims(
    topology: &KiloTopology,
    peers: &Peers<ClusterPeer>,
) -> Vec<(Cidr, TunnelClaim)> {
    let mut claims = Vec::with_capacity(3 * (topology.nodes.len() + peers.len()));
    for (id, segment) in topology.segments.numbered() {
        claims.extend(claims_of_segment(id, segment));
    }
    for (id, peer) in peers.numbered() {
        claims.extend(claims_of_peer(id, peer));
    }
    claims
}

pub(super) fn claims_of_segment(
    id: SegmentId,
    segment: &TopologySegment,
) -> impl Iterator<Item = (Cidr, TunnelClaim)> {
    let is_led = matches!(segment.leader, Leader::Certain(_));
    let claim = move |is_certain| TunnelClaim {
        tunnel: Tunnel::Segment(id),
        index: 0,
        is_certain: is_certain && is_led,
    };
    let addresses = match segment.wireguard_ip {
        WireguardIp::Certain(address) => [Some((address, true)), None],
        WireguardIp::Ambiguous {
            computed,
            announced,
        } => [Some((computed, false)), Some((announced, false))],
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
    kept.map(move |kept| {
        let claim = TunnelClaim {
            tunnel: Tunnel::Peer(id),
            index: kept.index,
            is_certain: kept.is_certain,
        };
        (kept.allowed.interface.network, claim)
    })
}
