//! Steps: what happens to a packet, in words, and what they take for granted.

use super::{called, peer_of};
use crate::agent::fabric::{DialPremise, Fabric, NodeRef, Owner};
use crate::agent::model::Tunnel;
use crate::diagnostic::Label;
use crate::packet::premise::{Distant, MaskedPod, Unencapsulated};
use crate::packet::{AssumedDial, Goal, Packet, Session, Step};
use crate::wireguard::{Endpoint, Host};

/// Returns what happens in a step.
pub fn step(fabric: &Fabric, packet: &Packet, step: &Step) -> String {
    match step {
        Step::Handed { to } => format!(
            "{} forwards it to {}, the leader of its location",
            called(fabric, packet.from),
            called(fabric, *to)
        ),
        Step::Selected { by, range, peer, receiver, .. } => format!(
            "{} routes {} (by {range}) to the Peer {}, the key of {}",
            called(fabric, *by),
            packet.destination,
            peer_of(fabric, by.site, *peer),
            called(fabric, *receiver)
        ),
        Step::Dialled { by, endpoint, .. } => match endpoint {
            Some(endpoint) => {
                format!("{} dials {endpoint} to open the tunnel", called(fabric, *by))
            }
            None => "through the existing tunnel".to_owned(),
        },
        Step::Accepted { by, range, .. } => format!(
            "{} accepts source {} from this key (by {range})",
            called(fabric, *by),
            packet.source
        ),
        Step::Arrived { at } => arrived(fabric, packet, *at),
    }
}

/// Returns the range of a manifest by which a step is decided, if a file has it.
pub fn selected(step: &Step) -> Option<Label> {
    let place = match step {
        Step::Selected { place, .. } | Step::Accepted { place, .. } => place.clone()?,
        Step::Handed { .. } | Step::Dialled { .. } | Step::Arrived { .. } => return None,
    };
    let text = "by this range".to_owned();
    Some(Label { place, text })
}

fn arrived(fabric: &Fabric, packet: &Packet, at: NodeRef) -> String {
    let (here, to) = (called(fabric, at), packet.destination);
    match packet.to {
        Goal::Services(_) => format!("{here} replaces the service address {to} with a backend"),
        Goal::Network(_) => format!("{here} forwards it to {to}, outside the cluster"),
        Goal::Node(node) => {
            let owner = fabric.site(node.site).owner(to);
            let whom = match owner {
                Some(Owner::Pods(_)) if !fabric.site(node.site).cluster.is_external() => {
                    format!("the pod {to}")
                }
                _ => to.to_string(),
            };
            if node == at {
                format!("{here} delivers it to {whom}")
            } else {
                format!(
                    "{here} forwards it to {}, which delivers it to {whom}",
                    called(fabric, node)
                )
            }
        }
    }
}

/// Returns the assumption of a step that no file can confirm.
pub fn premises(fabric: &Fabric, packet: &Packet, step: &Step) -> Vec<String> {
    let mut premises = Vec::new();
    match step {
        Step::Dialled { by, endpoint, assumes } => {
            premises.extend(endpoint.as_ref().and_then(|it| of_name(fabric, *by, it)));
            premises.extend(
                assumes.iter().filter(|_| endpoint.is_some()).filter_map(|it| of_dial(fabric, it)),
            );
        }
        Step::Arrived { at } => {
            let here = called(fabric, *at);
            premises.extend(fabric.reached_by_plugin(packet).map(|it| of_plugin(fabric, it)));
            match packet.to {
                Goal::Services(_) => premises.push(format!(
                    "{here} is the only entry point to the services of its cluster, and its proxy \
                     masquerades outside callers so that replies return through it"
                )),
                Goal::Network(_) => {
                    let route = format!("{here} has a route to {}", packet.destination);
                    premises.push(match fabric.distant(packet, *at) {
                        Some(Distant { node, range, .. }) => format!(
                            "{route} although only {} is on the LAN {range}",
                            called(fabric, node)
                        ),
                        None => route,
                    });
                }
                Goal::Node(_) => {
                    premises.extend(of_pods(fabric, packet));
                    premises.extend(
                        fabric.unencapsulated(packet, *at).map(|it| of_location(fabric, it)),
                    );
                }
            }
        }
        // The answer goes to the address with which the packet arrived.
        Step::Accepted { .. } if packet.session == Session::New => {
            premises.extend(fabric.lost_if_masked(packet).map(|it| of_source(fabric, it)));
        }
        Step::Handed { .. } | Step::Selected { .. } | Step::Accepted { .. } => {}
    }
    premises
}

fn of_pods(fabric: &Fabric, packet: &Packet) -> impl Iterator<Item = String> {
    fabric.unrouted_pods(packet).map(|it| {
        format!(
            "pods of {} have addresses of their nodes' pod CIDRs, although its nodes show others",
            fabric.site(it).cluster
        )
    })
}

fn of_plugin(fabric: &Fabric, at: NodeRef) -> String {
    format!(
        "the network plugin has a route between {} and the leader of its location, as another node has the same internal IP \
         or pod CIDR",
        called(fabric, at)
    )
}

fn of_source(fabric: &Fabric, MaskedPod { at, address }: MaskedPod) -> String {
    let node = called(fabric, at);
    match address {
        Some(address) => format!(
            "the network plugin keeps the address of the pod: with {address} of {node} the packet would be lost"
        ),
        None => format!("the network plugin keeps the address of the pod, as {node} has no other"),
    }
}

fn of_location(fabric: &Fabric, unencapsulated: Unencapsulated) -> String {
    let Unencapsulated { leader, node, peer, range } = unencapsulated;
    format!(
        "Kilo does not encapsulate packets from {} to {} (`--encapsulate=never`), whose LAN the Peer {} \
         takes with {range}",
        called(fabric, leader),
        called(fabric, node),
        peer_of(fabric, leader.site, peer)
    )
}

/// Returns what must be so for a dial to be answered.
fn of_dial(fabric: &Fabric, &AssumedDial { premise, at, peer }: &AssumedDial) -> Option<String> {
    let endpoint = fabric.site(at.site).model.endpoint(Tunnel::Peer(peer))?;
    let here = called(fabric, at);
    let name = peer_of(fabric, at.site, peer);
    Some(match premise {
        DialPremise::Private => format!(
            "{here} can dial {endpoint} of the Peer {name}, which is a private address in a network that no \
             `underlays` of the mesh name"
        ),
        DialPremise::Claimed => format!(
            "{endpoint} of the Peer {name} leads to the other side, although another node claims this address too"
        ),
        DialPremise::Family(family) => format!(
            "{here} has an {family} address (not in its snapshot) from which it can dial {endpoint} of \
             the Peer {name}"
        ),
        DialPremise::Stranger => format!(
            "{endpoint} of the Peer {name}, which is not the address of any node, leads to the other side, \
             for example through a load balancer or NAT"
        ),
        DialPremise::Name => format!(
            "{endpoint} of the Peer {name} leads to the other side: `endpointDomains` does not list this whole \
             name"
        ),
    })
}

fn of_name(fabric: &Fabric, by: NodeRef, endpoint: &Endpoint) -> Option<String> {
    let Host::Dns(name) = &endpoint.host else {
        return None;
    };
    let cluster = fabric.site(by.site).cluster;
    Some(format!(
        "`{name}` resolves on every node of {cluster}: Kilo applies no changes on nodes that cannot resolve it"
    ))
}
