//! Claimed failures: packets that fail only because of what a few nodes report of themselves. A single node must not make
//! a proof fail.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::agent::fabric::{Fabric, NodeRef, SiteId, are_few};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::agent::peers::PeerId;
use crate::kilo::node::KiloNode;
use crate::mesh::Range;
use crate::net::Cidr;
use crate::packet::trace::Trace;
use crate::packet::{Doubt, Ending, Goal, Packet};
use crate::wireguard::Endpoint;

/// Returns whether a packet fails only because of what a few nodes report.
pub(super) fn is_of_few(fabric: &Fabric, failing: &Trace) -> bool {
    let packet = &failing.packet;
    let site = |at: NodeRef| fabric.site(at.site);
    // The end of the packet in a cluster.
    let end = |in_site: SiteId| {
        if in_site == packet.to.site() { packet.destination } else { packet.source }
    };
    // The end of the packet in the other one.
    let beyond = |in_site: SiteId| {
        if in_site == packet.to.site() { packet.source } else { packet.destination }
    };
    has_claimed_end(fabric, packet)
        || match *failing.ending() {
            Ending::LocalShadow { at, .. } => have_few(fabric, at.site, beyond(at.site)),
            // Nodes of the cluster itself have an endpoint in their ranges.
            Ending::Loops { at, claim, range, address, .. } if claim.peer().is_none() => {
                if range.is_host() {
                    site(at).is_captured_by_few()
                } else {
                    site(at).are_claimants_few(address, 0)
                }
            }
            Ending::Loops { at, peer, address, .. } => {
                let endpoint = site(at).model.endpoint(Tunnel::Peer(peer));
                let is_dialled = endpoint.and_then(Endpoint::address) == Some(address);
                // Elsewhere than on the LAN the other side is seen at another address.
                let is_on_lan = site(at).connection(at.node, address).is_some();
                !is_dialled && is_on_lan && have_few(fabric, at.site, address)
            }
            Ending::NoInitiator { from, peer, to, back } => {
                is_misplaced(fabric, from, peer, to) || is_misplaced(fabric, to, back, from)
            }
            Ending::Flapping { at, peer, other } => is_misplaced(fabric, at, peer, other),
            // An election makes no declared path fail, to pods or to services. A key that two nodes have is a copy.
            Ending::NoHop { .. }
            | Ending::Ambiguous {
                doubt: Doubt::Nodes { .. } | Doubt::Leader | Doubt::Key { .. },
                ..
            } => true,
            Ending::NotReady { node } => site(node).has_few_unready(),
            Ending::Ambiguous { at, doubt: Doubt::Range { ref claims, range } } => {
                is_range_of_few(fabric, at.site, claims, range)
            }
            Ending::Ambiguous { at, doubt: Doubt::Refused(refusal) } => {
                site(at).is_refused_for_few(refusal)
            }
            Ending::SourceRejected { by, owner: Some((claim, _)), .. }
                if claim.peer().is_none() =>
            {
                have_few(fabric, by.site, beyond(by.site))
            }
            // Nodes of several segments have the destination. One of them may be right.
            Ending::SourceRejected { by, owner: None, peer: None } => {
                site(by).are_claimants_few(end(by.site), 1)
            }
            // A silent leader without a successor keeps its Peer.
            Ending::StolenBy { thief: Some(thief), .. }
                if !site(thief).node(thief.node).kilo.is_ready() =>
            {
                site(thief).has_few_unready()
            }
            Ending::StolenBy { at, claim, .. } => {
                site(at).segment(at.node).map(Tunnel::Segment) == Some(claim.tunnel)
            }
            _ => false,
        }
}

/// Returns whether a packet begins or ends at an address that its node reports, and that node may be wrong: another node of
/// its cluster reports it too, or only that node has such an address outside of what the entry declares for nodes.
fn has_claimed_end(fabric: &Fabric, packet: &Packet) -> bool {
    let receiver = match packet.to {
        Goal::Node(at) => Some((at, packet.destination)),
        Goal::Services(_) | Goal::Network(_) => None,
    };
    let mut ends = std::iter::once((packet.from, packet.source)).chain(receiver);
    ends.any(|(at, address)| {
        let site = fabric.site(at.site);
        let nodes = &site.model.topology.nodes;
        let addresses =
            |it: &KiloNode| [it.internal_address(), it.wireguard_ip().map(|it| it.address)];
        let [internal, wireguard] = addresses(&nodes[at.node].kilo).map(|it| it == Some(address));
        if !internal && !wireguard {
            return false;
        }
        let reports = |it: &KiloNode| {
            addresses(it).contains(&Some(address)) || it.pods().any(|it| it.holds(address))
        };
        let others = nodes.numbered().filter(|it| it.0 != at.node && reports(&it.1.kilo)).count();
        let networks = &site.entry.networks;
        let is_in = |ranges: Vec<&Range>, it| ranges.iter().any(|range| range.cidr.holds(it));
        let is_outside = |it: &KiloNode| {
            let of_nodes = |it| is_in(networks.all(), it) && !is_in(networks.exclusive(), it);
            let [lan, tunnel] = addresses(it);
            internal && lan.is_some_and(|it| !of_nodes(it))
                || wireguard && tunnel.is_some_and(|it| !is_in(networks.all(), it))
        };
        let outside = nodes.iter().filter(|it| is_outside(&it.kilo)).count();
        let is_only = outside == 1 && 1 < nodes.len() && is_outside(&nodes[at.node].kilo);
        0 < others && are_few(others, nodes.len()) || is_only
    })
}

/// Returns whether nodes of the cluster itself have a contested range, as their own pods or addresses, and only a few of
/// them can be wrong: one of several may be right, and none whose range only others declare.
fn is_range_of_few(fabric: &Fabric, number: SiteId, claims: &[TunnelClaim], range: Cidr) -> bool {
    let site = fabric.site(number);
    // One node may claim a range twice.
    let own = claims.iter().filter(|it| it.peer().is_none()).map(|it| it.tunnel);
    let own = own.collect::<BTreeSet<Tunnel>>().len();
    let nodes = site.model.topology.nodes.len();
    if claims.iter().all(|it| it.peer().is_none()) {
        return are_few(own.saturating_sub(1), nodes);
    }
    let mut declared = site.entry.networks.all().into_iter();
    0 < own && are_few(own, nodes) && !declared.any(|it| it.cidr.overlaps(range))
}

/// Returns whether a node dials another one where the other one claims to be: at an address of the node that dials, or where
/// the Kilo of the other one reports another port than that of most nodes.
fn is_misplaced(fabric: &Fabric, at: NodeRef, peer: PeerId, other: NodeRef) -> bool {
    let endpoint = fabric.site(at.site).model.endpoint(Tunnel::Peer(peer));
    endpoint.is_some_and(|it| {
        let is_claimed = it.address().is_some_and(|it| fabric.has_endpoint_at(it, other));
        is_claimed && fabric.is_at(at, other, it)
            || fabric.site(other.site).has_port_of_few(other.node, it.port.get())
    })
}

/// Returns whether only a few nodes of a cluster report that an address is theirs or on their LAN.
fn have_few(fabric: &Fabric, number: SiteId, address: IpAddr) -> bool {
    let site = fabric.site(number);
    let nodes = site.model.topology.nodes.ids();
    let all = nodes.len();
    let having = nodes.filter(|node| {
        site.connection(*node, address).is_some() || site.has_address(*node, address)
    });
    are_few(having.count(), all)
}
