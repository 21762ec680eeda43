//! Premises: what must be so for a packet to arrive, although no snapshot shows it.

use super::diversion::diverted_pod;
use super::trace::Trace;
use super::{Goal, Packet, Step, Unseen, Way};
use crate::agent::fabric::{At, Diversion, Fabric};
use crate::agent::peers::PeerId;
use crate::net::Cidr;

/// The condition.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Premise {
    /// A node has an address of a kind that it does not show.
    Family(Unseen),
    /// A node has a route to a range.
    Distant(Distant),
    /// Kilo does not encapsulate packets within a location.
    Unencapsulated(Unencapsulated),
}

/// A LAN that a Peer takes away from the location whose leader reaches the other nodes over it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Unencapsulated {
    /// The leader.
    pub leader: At,
    /// The node with the pods.
    pub node: At,
    /// The Peer.
    pub peer: PeerId,
    /// Its range.
    pub range: Cidr,
}

/// A range of a cluster on the LAN of one node, which another segment carries.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Distant {
    /// The node on the LAN.
    pub node: At,
    /// The node that carries the range.
    pub carrier: At,
    /// The range.
    pub range: Cidr,
}

impl Fabric<'_> {
    /// Returns the first premise of a packet and its answer.
    pub fn premise(&self, trace: &Trace) -> Option<Premise> {
        let back = trace.back.iter().map(|(packet, way)| (packet, way));
        let mut ways = [(&trace.packet, &trace.there)].into_iter().chain(back);
        ways.find_map(|(packet, way)| self.premise_of(packet, way))
    }

    fn premise_of(&self, packet: &Packet, way: &Way) -> Option<Premise> {
        way.steps.iter().find_map(|step| match step {
            Step::Dialled { assumes, .. } => assumes.first().copied().map(Premise::Family),
            Step::Arrived { at } => {
                let distant = self.distant(packet, *at).map(Premise::Distant);
                let unencapsulated = || self.unencapsulated(packet, *at);
                distant.or_else(|| unencapsulated().map(Premise::Unencapsulated))
            }
            Step::Handed { .. } | Step::Selected { .. } | Step::Accepted { .. } => None,
        })
    }

    /// Returns the LAN that a packet to a pod must not take, if its leader would send it there to a Peer.
    pub fn unencapsulated(&self, packet: &Packet, leader: At) -> Option<Unencapsulated> {
        let site = self.site(leader.site);
        let Diversion { slot, claim } = diverted_pod(site, leader.node, packet)?;
        let Goal::Node(node) = packet.to else {
            return None;
        };
        Some(Unencapsulated {
            leader,
            node,
            peer: claim.peer()?,
            range: site.model.tunnels.at(slot).0,
        })
    }

    /// Returns the range that a packet is meant for, if it arrives beside the only node on the LAN.
    pub fn distant(&self, packet: &Packet, carrier: At) -> Option<Distant> {
        let Goal::Network(_) = packet.to else {
            return None;
        };
        let site = self.site(carrier.site);
        let (range, node) = site.distant(carrier.node, packet.destination)?;
        Some(Distant {
            node: At { node, ..carrier },
            carrier,
            range,
        })
    }
}
