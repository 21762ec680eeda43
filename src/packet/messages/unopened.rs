//! Unopened tunnels in words: why neither side gets to the other, or only in circles.

use std::net::IpAddr;

use super::remedy::FailedPacket;
use super::{ChosenRange, called, peer_of, place, tunnel};
use crate::agent::fabric::{Dials, Fabric, NodeRef};
use crate::agent::model::Tunnel;
use crate::agent::peers::PeerId;
use crate::diagnostic::Finding;
use crate::kilo::node::annotation;
use crate::packet::rule;
use crate::place::Place;

/// Returns why a node does not get to another one where it dials its Peer.
fn missed(fabric: &Fabric, at: NodeRef, peer: PeerId, other: NodeRef) -> String {
    let site = fabric.site(at.site);
    let name = peer_of(fabric, at.site, peer);
    match site.model.endpoint(Tunnel::Peer(peer)) {
        None => match site.model.share(peer).and_then(|it| it.translation.endpoint.as_ref()) {
            Some(placeholder) => format!(
                "{placeholder} of the Peer {name} is the placeholder for nodes without an endpoint"
            ),
            None => format!("the Peer {name} has no endpoint"),
        },
        Some(it) if fabric.is_at(at, other, it) => {
            format!("{it} in the Peer {name} is an address of {} itself", called(fabric, at))
        }
        Some(it) => {
            let other_end = called(fabric, other);
            match fabric.other_port(it, other) {
                Some(port) => format!(
                    "Kilo on {other_end} listens on {port}, not at {it} as in the Peer {name}"
                ),
                None => format!("{it} in the Peer {name} is not an address of {other_end}"),
            }
        }
    }
}

pub(super) fn no_initiator(
    fabric: &Fabric,
    from: NodeRef,
    peer: PeerId,
    to: NodeRef,
    back: PeerId,
) -> Finding {
    let there = missed(fabric, from, peer, to);
    let quiet = fabric.dials(to, back, from).is_ok_and(Dials::may_be);
    let (here, other) = (called(fabric, from), called(fabric, to));
    let dialled = "one of the two nodes an endpoint that the other one can dial \
                   (`kilo.squat.ai/clustermesh-endpoint`)";
    let (message, help) = if quiet {
        let message = format!(
            "nothing gets from {here} to {other} until {other} has sent something: {here} cannot dial it \
             ({there}), and {other} sends no keepalives because it has no annotation \
             `kilo.squat.ai/persistent-keepalive`"
        );
        let help = format!(
            "annotate {other} with `kilo.squat.ai/persistent-keepalive: \"25\"`, or give {dialled}"
        );
        (message, help)
    } else {
        let again = missed(fabric, to, back, from);
        let message = format!("{here} and {other} cannot dial each other: {there}, and {again}");
        (message, format!("give {dialled}"))
    };
    Finding::new(&rule::NO_INITIATOR, message)
        .at(endpoint(fabric, from, peer), "one side")
        .at(endpoint(fabric, to, back), "the other side")
        .help(help)
}

/// Returns the place of a Peer's endpoint.
fn endpoint(fabric: &Fabric, at: NodeRef, peer: PeerId) -> Place {
    let peer = &fabric.site(at.site).model.peers[peer];
    peer.place().key("spec").key("endpoint")
}

pub(super) fn flapping(failed: FailedPacket, at: NodeRef, peer: PeerId, other: NodeRef) -> Finding {
    let fabric = failed.fabric;
    let (here, there) = (called(fabric, at), called(fabric, other));
    let why = missed(fabric, at, peer, other);
    let name = peer_of(fabric, at.site, peer);
    let message = format!(
        "Kilo on {here} cuts the tunnel with {there} twice a minute: {why}, and Kilo restores \
         this each time because the Peer has no `persistentKeepalive`"
    );
    // The next render overwrites a change of its own Peers.
    let is_rendered = fabric.site(at.site).model.peers[peer].applied.claims.is_rendered;
    let help = if is_rendered {
        format!(
            "correct the endpoint of {there}: its annotation, or `wireguardPort` and `endpointFrom` in the mesh; \
             `clustermesh validate` may name the line"
        )
    } else {
        format!(
            "set `persistentKeepalive: 25` in the Peer {name}, or give it the endpoint of {there}"
        )
    };
    Finding::new(&rule::FLAPPING, message)
        .at(endpoint(fabric, at, peer), "differs from its current address")
        .help(failed.delivery_or(at.site, &help))
}

pub(super) fn loops(
    fabric: &Fabric,
    peer: PeerId,
    address: IpAddr,
    &ChosenRange { at, claim, range }: &ChosenRange,
) -> Finding {
    let site = fabric.site(at.site);
    let tunnel_of = Tunnel::Peer(peer);
    let key = site.model.key(tunnel_of);
    let holder = key.and_then(|key| fabric.holders(&key).first().copied());
    let endpoint = site.model.endpoint(tunnel_of);
    let dialled = endpoint.filter(|it| it.address() == Some(address));
    let (here, name) = (called(fabric, at), peer_of(fabric, at.site, peer));
    let inside = format!("which is in {range} of {}", tunnel(fabric, at.site, claim.tunnel));
    let message = if let (None, Some(holder)) = (dialled, holder) {
        format!(
            "{here} cannot dial {} ({}) and would answer it at {address}, {inside}, so the answers \
             would loop into the tunnel",
            called(fabric, holder),
            missed(fabric, at, peer, holder)
        )
    } else {
        let endpoint = endpoint.map_or_else(String::new, ToString::to_string);
        format!(
            "{here} would send encrypted packets to {endpoint}, the endpoint of the Peer {name}, \
             {inside}, so they would loop into the tunnel"
        )
    };
    let nodes = &site.model.topology.nodes;
    let own = nodes.position(|it| it.kilo.internal_address() == Some(address));
    let help = match (claim.tunnel, own) {
        (Tunnel::Segment(_), Some(node)) => format!(
            "write the address of {} itself into its annotation `{}`",
            called(fabric, NodeRef { node, ..at }),
            annotation::FORCE_INTERNAL_IP
        ),
        _ => "remove the range that contains the endpoint from its declaration, and render again"
            .to_owned(),
    };
    Finding::new(&rule::LOOPS, message)
        .at(place(fabric, at, claim), "contains the endpoint")
        .at(self::endpoint(fabric, at, peer), "the endpoint")
        .help(help)
}
