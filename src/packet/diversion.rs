//! Diverted packets: those that a Peer takes when a leader hands them to another node of its location.

use super::{Goal, Packet};
use crate::agent::fabric::{Diversion, Owner, Site};
use crate::kilo::id::NodeId;

/// Returns what diverts a packet to another node itself.
pub(super) fn diverted_host(site: &Site, leader: NodeId, packet: &Packet) -> Option<Diversion> {
    let Goal::Node(to) = packet.to else {
        return None;
    };
    let address = site.node(to.node).kilo.internal_address();
    let is_host = address == Some(packet.destination);
    site.diverted(leader, to.node).filter(|_| is_host)
}

/// Returns what diverts a packet to a pod of another node, if Kilo encapsulates it: the route to the pods
/// leads to the node without a look at other routes.
pub(super) fn diverted_pod(site: &Site, leader: NodeId, packet: &Packet) -> Option<Diversion> {
    let (Goal::Node(to), Some(Owner::Pods(_))) = (packet.to, site.owner(packet.destination)) else {
        return None;
    };
    site.diverted(leader, to.node)
}
