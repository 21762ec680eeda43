//! Claimed failures: packets that fail only because of what a few nodes report of themselves. A single node must not make
//! a proof fail.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::agent::fabric::{Fabric, NodeRef, SiteId, are_few};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::agent::peers::PeerId;
use crate::net::Cidr;
use crate::packet::trace::Trace;
use crate::packet::{Doubt, Ending};
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
    match *failing.ending() {
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
        Ending::SourceRejected { by, owner: Some((claim, _)), .. } if claim.peer().is_none() => {
            have_few(fabric, by.site, beyond(by.site))
        }
        // Nodes of several segments have the destination. One of them may be right.
        Ending::SourceRejected { by, owner: None, peer: None } => {
            site(by).are_claimants_few(end(by.site), 1)
        }
        Ending::StolenBy { at, claim, .. } => {
            site(at).segment(at.node).map(Tunnel::Segment) == Some(claim.tunnel)
        }
        _ => false,
    }
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
