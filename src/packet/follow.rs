//! Following: what each node on the way does with a packet.

use std::net::IpAddr;

use super::diversion::diverted_host;
use super::hop;
use super::missing_routes::missing;
use super::tunnel::Tunnels;
use super::{Doubt, Ending, Goal, Packet, Step, Way};
use crate::agent::fabric::{Diversion, Fabric, NodeRef, Owner, Site};
use crate::agent::model::{RangeHolder, Tunnel, TunnelClaim};
use crate::agent::peers::PeerId;
use crate::kilo::id::SegmentId;
use crate::kilo::topology::Leader;
use crate::net::Cidr;

impl Fabric<'_> {
    /// Follows a packet to its end.
    pub fn way(&self, packet: &Packet) -> Way {
        let mut steps = Vec::new();
        let ending = self.follow(packet, &mut steps).err().unwrap_or(Ending::Delivered);
        Way { steps, ending }
    }

    fn follow(&self, packet: &Packet, steps: &mut Vec<Step>) -> Result<(), Ending> {
        let from = packet.from;
        let site = self.site(from.site);
        let unready = Ending::NotReady { node: from };
        let segment = site.segment(from.node).ok_or(unready)?;
        let leader = site.leader(segment);
        let sender = NodeRef { node: leader.node(), ..from };
        stays(site, from, packet.destination)?;
        if sender != from {
            stays(site, sender, packet.destination)?;
            steps.push(Step::Handed { to: sender });
        }
        let (peer, receiver) = self.select(sender, segment, packet, steps)?;
        if let Err(lost) = hop::reaches(site, from, sender) {
            steps.clear();
            return Err(lost);
        }
        if let Leader::Ambiguous(_) = leader {
            let is_open = self.has_open_tunnels();
            let refused =
                if is_open { self.refused(segment, packet, peer, receiver) } else { None };
            let doubt = Doubt::Leader;
            return Err(refused.unwrap_or(Ending::Ambiguous { at: sender, doubt }));
        }
        let back = self.back(sender, peer, receiver)?;
        let tunnels = Tunnels { sender, peer, receiver, back };
        steps.push(self.dial(&tunnels, packet.session)?);
        steps.push(self.accept(&tunnels, packet.source)?);
        self.deliver(receiver, packet)?;
        steps.push(Step::Arrived { at: receiver });
        let site = self.site(receiver.site);
        match site.segment(receiver.node).map(|it| site.leader(it)) {
            Some(Leader::Ambiguous(_)) => {
                Err(Ending::Ambiguous { at: receiver, doubt: Doubt::Leader })
            }
            _ => Ok(()),
        }
    }

    /// Returns why a packet does not arrive from any member of an uncertain segment, if none can send it.
    fn refused(
        &self,
        segment: SegmentId,
        packet: &Packet,
        peer: PeerId,
        receiver: NodeRef,
    ) -> Option<Ending> {
        let possible = self.site(packet.from.site).model.topology.possible_leaders(segment);
        let refusals = possible.into_iter().map(|node| {
            let sender = NodeRef { node, ..packet.from };
            let arrived = self.back(sender, peer, receiver).and_then(|back| {
                let tunnels = Tunnels { sender, peer, receiver, back };
                self.accept(&tunnels, packet.source)?;
                self.deliver(receiver, packet)
            });
            arrived.err().filter(|it| !matches!(it, Ending::Ambiguous { .. }))
        });
        // A source that one of them could send is the nearest to arriving.
        let refusals: Vec<Ending> = refusals.collect::<Option<_>>()?;
        let is_near = |it: &&Ending| !matches!(it, Ending::NotAccepted { .. });
        refusals.iter().find(is_near).or(refusals.first()).cloned()
    }

    /// Lets the WireGuard of `sender` pick a Peer, and finds who has its key.
    fn select(
        &self,
        sender: NodeRef,
        segment: SegmentId,
        packet: &Packet,
        steps: &mut Vec<Step>,
    ) -> Result<(PeerId, NodeRef), Ending> {
        let at = sender;
        let ambiguous = |doubt| Ending::Ambiguous { at, doubt };
        let site = self.site(at.site);
        keeps(site, at, segment, packet.destination)?;
        let (slot, holder) =
            site.model.select(segment, packet.destination).ok_or(Ending::NoRoute { at })?;
        let (range, _) = site.model.tunnels.at(slot);
        let claim = match holder {
            RangeHolder::Certain(claim) => claim,
            RangeHolder::Ambiguous(claims) => {
                return Err(ambiguous(Doubt::Range { claims, range }));
            }
        };
        let Tunnel::Peer(peer) = claim.tunnel else {
            let range = None;
            return Err(Ending::LocalShadow { at, range });
        };
        if let Some(missing) = missing(site, at) {
            return Err(missing);
        }
        let key = site.model.key(claim.tunnel).unwrap_or_default();
        let receiver = match self.holders(&key) {
            [] => return Err(Ending::UnknownKey { at, claim, range }),
            [one] => *one,
            _ => return Err(ambiguous(Doubt::Key { key })),
        };
        self.hits(packet.to, receiver, at, claim, range)?;
        let place = site.model.place(claim);
        steps.push(Step::Selected { by: at, range, peer, place, receiver });
        Ok((peer, receiver))
    }

    /// Holds whom a Peer leads to against whom the packet is meant for.
    fn hits(
        &self,
        goal: Goal,
        receiver: NodeRef,
        at: NodeRef,
        claim: TunnelClaim,
        range: Cidr,
    ) -> Result<(), Ending> {
        let of = |at: NodeRef| self.site(at.site).segment(at.node);
        let is_meant = match goal {
            Goal::Node(node) => {
                let Some(segment) = of(node) else {
                    return Err(Ending::NotReady { node });
                };
                // A later check finds nodes of the segment that are not its leader.
                receiver.site == node.site && of(receiver) == Some(segment)
            }
            Goal::Services(site) | Goal::Network(site) => receiver.site == site,
        };
        if is_meant {
            return Ok(());
        }
        Err(Ending::StolenBy { at, claim, range, thief: Some(receiver) })
    }

    /// Takes the packet from the end of the tunnel to where it is meant to go: nothing there may send
    /// it on.
    fn deliver(&self, at: NodeRef, packet: &Packet) -> Result<(), Ending> {
        let site = self.site(at.site);
        let Some(segment) = site.segment(at.node) else {
            return Err(Ending::NotReady { node: at });
        };
        let is_proxied = matches!(packet.to, Goal::Services(_));
        let Some(slot) = site.model.tunnels.holding(packet.destination).next() else {
            // Kilo does not know of a node's second pod CIDR, so no route leads to another node.
            let is_elsewhere = matches!(packet.to, Goal::Node(to) if to != at);
            return if is_elsewhere { Err(Ending::NoRoute { at }) } else { Ok(()) };
        };
        if is_proxied {
            return Ok(());
        }
        hop::hands(site, at, packet)?;
        if let Some(Diversion { slot, claim }) = diverted_host(site, at.node, packet) {
            let (range, _) = site.model.tunnels.at(slot);
            return Err(missing(site, at).unwrap_or_else(|| self.taken(at, claim, range)));
        }
        let (range, claims) = site.model.tunnels.at(slot);
        let connected = site.connection(at.node, packet.destination);
        if site.has_address(at.node, packet.destination)
            || connected.is_some_and(|it| range.prefix_length() < it.prefix_length())
        {
            return Ok(());
        }
        let is_own = |claim: &&TunnelClaim| claim.tunnel == Tunnel::Segment(segment);
        let Some(&claim) = claims.iter().find(|it| !is_own(it)) else {
            // To the pods of another node of the location, too, a route of Kilo's leads.
            return missing(site, at).filter(|_| connected.is_none()).map_or(Ok(()), Err);
        };
        if let Some(missing) = missing(site, at) {
            return Err(missing);
        }
        if claims.iter().any(|it| is_own(&it)) {
            let claims = claims.to_vec();
            let doubt = Doubt::Range { claims, range };
            return Err(Ending::Ambiguous { at, doubt });
        }
        Err(match claim.tunnel {
            Tunnel::Segment(other) => Ending::SourceRejected {
                by: NodeRef { node: site.leader(other).node(), ..at },
                owner: None,
                peer: None,
            },
            Tunnel::Peer(_) => self.taken(at, claim, range),
        })
    }

    /// Returns how a packet ends that another Peer takes at the end of the tunnel.
    fn taken(&self, at: NodeRef, claim: TunnelClaim, range: Cidr) -> Ending {
        let key = self.site(at.site).model.key(claim.tunnel);
        let thief = self.holders(&key.unwrap_or_default()).first().copied();
        Ending::StolenBy { at, claim, range, thief }
    }
}

/// Looks whether a node has the destination beside itself, or thinks so.
pub(crate) fn stays(site: &Site, at: NodeRef, destination: IpAddr) -> Result<(), Ending> {
    let shadow = |range| Err(Ending::LocalShadow { at, range });
    if site.owner(destination) == Some(Owner::Services) {
        return shadow(None);
    }
    if site.has_address(at.node, destination) {
        // No route takes an address away from the node that has it.
        return shadow(Some(Cidr::host(destination)));
    }
    let Some(connected) = site.connection(at.node, destination) else {
        return Ok(());
    };
    let longest = site.model.tunnels.holding(destination).find_map(|slot| {
        let (range, claims) = site.model.tunnels.at(slot);
        let mut claims = claims.iter();
        let is_peer = |it: &TunnelClaim| matches!(it.tunnel, Tunnel::Peer(_));
        claims.any(is_peer).then_some(range)
    });
    if longest.is_none_or(|range| range.prefix_length() < connected.prefix_length()) {
        return shadow(Some(connected));
    }
    Ok(())
}

/// Looks whether the destination belongs to the sender's own segment, whose nodes pass it to each other
/// without a tunnel.
pub(crate) fn keeps(
    site: &Site,
    at: NodeRef,
    segment: SegmentId,
    destination: IpAddr,
) -> Result<(), Ending> {
    let is_own = |claim: &TunnelClaim| claim.tunnel == Tunnel::Segment(segment);
    let mut around =
        site.model.tunnels.holding(destination).map(|slot| site.model.tunnels.at(slot));
    // Wider ranges than that of a Peer have no effect.
    let longest = around.find(|(_, claims)| {
        let is_peer = |claim: &TunnelClaim| matches!(claim.tunnel, Tunnel::Peer(_));
        claims.iter().any(|it| is_own(it) || is_peer(it))
    });
    let Some((range, claims)) = longest.filter(|(_, claims)| claims.iter().any(is_own)) else {
        return Ok(());
    };
    if claims.iter().all(is_own) {
        let range = Some(range);
        return Err(Ending::LocalShadow { at, range });
    }
    if site.connection(at.node, destination) == Some(range) {
        // A Peer's route takes the place of that of the node's own pods.
        return Ok(());
    }
    let claims = claims.to_vec();
    let doubt = Doubt::Range { claims, range };
    Err(Ending::Ambiguous { at, doubt })
}
