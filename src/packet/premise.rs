//! Premises: what must be so for a packet to arrive, although no snapshot shows it.

use std::net::IpAddr;

use super::diversion::diverted_pod;
use super::trace::Trace;
use super::{AssumedDial, Goal, Packet, Step, Way};
use crate::agent::fabric::{Diversion, Fabric, NodeRef, Owner, SiteId};
use crate::agent::peers::PeerId;
use crate::kilo::pod_network::Masquerading;
use crate::net::{Cidr, family};

/// The condition, the weakest one last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Premise {
    /// Pods of a cluster have addresses of their nodes' pod CIDRs, although its nodes show others.
    Pods(SiteId),
    /// A node gets to another one where it dials it.
    Dial(AssumedDial),
    /// A node has a route to a range that is on the LAN of another node.
    Distant(Distant),
    /// Kilo does not encapsulate packets within a location.
    Unencapsulated(Unencapsulated),
    /// A network plugin has the routes between this node and its leader.
    Plugin(NodeRef),
    /// A network plugin keeps the address of a pod, or replaces it by that of its node.
    Masqueraded(MaskedPod),
    /// A node has a route to a range in a network that no node shows.
    Route(UnshownRoute),
}

/// The pods of a node whose packets a network plugin may masquerade.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MaskedPod {
    /// The node.
    pub at: NodeRef,
    /// The address with which they may arrive, if it is known.
    pub address: Option<IpAddr>,
}

/// A range of a cluster in a network that no node shows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct UnshownRoute {
    /// The node that carries the range.
    pub carrier: NodeRef,
    /// The range.
    pub range: Cidr,
}

/// A LAN that a Peer takes away from the location whose leader reaches the other nodes over it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Unencapsulated {
    /// The leader.
    pub leader: NodeRef,
    /// The node with the pods.
    pub node: NodeRef,
    /// The Peer.
    pub peer: PeerId,
    /// Its range.
    pub range: Cidr,
}

/// A range of a cluster on the LAN of one node, which another segment carries.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Distant {
    /// The node on the LAN.
    pub node: NodeRef,
    /// The node that carries the range.
    pub carrier: NodeRef,
    /// The range.
    pub range: Cidr,
}

impl Fabric<'_> {
    /// Returns the strongest premise of a packet and its answer.
    pub fn premise(&self, trace: &Trace) -> Option<Premise> {
        let back = trace.back.iter().map(|(packet, way)| (packet, way));
        let ways = [(&trace.packet, &trace.there)].into_iter().chain(back);
        let premises = ways.filter_map(|(packet, way)| self.premise_of(packet, way));
        let pods = self.unrouted_pods(&trace.packet).map(Premise::Pods);
        let plugins = self.reached_by_plugin(&trace.packet).map(Premise::Plugin);
        pods.chain(plugins).chain(premises).min()
    }

    /// Returns those ends of a packet that their leaders reach only by routes that another plugin may have.
    pub fn reached_by_plugin(&self, packet: &Packet) -> impl Iterator<Item = NodeRef> {
        let to = if let Goal::Node(to) = packet.to { Some(to) } else { None };
        let ends = [Some(packet.from), to].into_iter().flatten();
        ends.filter(|it| self.site(it.site).is_reached_by_plugin(it.node))
    }

    /// Returns the clusters of a packet's ends that are pods whose nodes show that pods have other addresses.
    pub fn unrouted_pods(&self, packet: &Packet) -> impl Iterator<Item = SiteId> {
        [(packet.from.site, packet.source), (packet.to.site(), packet.destination)]
            .into_iter()
            .filter(|it| self.site(it.0).has_unrouted_pods(it.1))
            .map(|it| it.0)
    }

    /// Returns the pods that sent a packet, if a network plugin may masquerade it and it is lost then.
    pub fn lost_if_masked(&self, packet: &Packet) -> Option<MaskedPod> {
        let site = self.site(packet.from.site);
        let is_pod = matches!(site.owner(packet.source), Some(Owner::Pods(_)));
        if !is_pod || site.reading.masquerading() == Masquerading::No {
            return None;
        }
        let address = site.masks(packet.from.node, family(packet.source)).next();
        let masked = address.map(|source| self.exchange(Packet { source, ..*packet }));
        let is_lost = !masked.is_some_and(|it| it.is_delivered());
        is_lost.then_some(MaskedPod { at: packet.from, address })
    }

    fn premise_of(&self, packet: &Packet, way: &Way) -> Option<Premise> {
        let premises = way.steps.iter().filter_map(|step| match step {
            Step::Dialled { assumes, .. } => assumes.iter().min().copied().map(Premise::Dial),
            Step::Arrived { at } => {
                let distant = self.distant(packet, *at).map(Premise::Distant);
                let unencapsulated = || self.unencapsulated(packet, *at);
                let unshown = || self.unshown(packet, *at).map(Premise::Route);
                let beyond = || unencapsulated().map(Premise::Unencapsulated);
                distant.or_else(beyond).or_else(unshown)
            }
            Step::Handed { .. } | Step::Selected { .. } | Step::Accepted { .. } => None,
        });
        premises.min()
    }

    /// Returns the range that a packet is meant for, if it is in a network that no node shows.
    fn unshown(&self, packet: &Packet, carrier: NodeRef) -> Option<UnshownRoute> {
        let Goal::Network(_) = packet.to else {
            return None;
        };
        let range = self.site(carrier.site).unshown(packet.destination)?;
        Some(UnshownRoute { carrier, range })
    }

    /// Returns the LAN that a packet to a pod must not take, if its leader would send it there to a Peer.
    pub fn unencapsulated(&self, packet: &Packet, leader: NodeRef) -> Option<Unencapsulated> {
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
    pub fn distant(&self, packet: &Packet, carrier: NodeRef) -> Option<Distant> {
        let Goal::Network(_) = packet.to else {
            return None;
        };
        let (range, node) = self.site(carrier.site).distant(carrier.node, packet.destination)?;
        Some(Distant { node: NodeRef { node, ..carrier }, carrier, range })
    }
}
