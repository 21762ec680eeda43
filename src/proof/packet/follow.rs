//! Following: what each node on the way does with a packet.

use std::net::IpAddr;

use super::{Doubt, Ending, Goal, Packet, Session, Step, Unaccepted, Way};
use crate::net::Cidr;
use crate::proof::fabric::{At, Fabric, Owner, Site};
use crate::proof::model::{Claim, Dial, Holder, Tunnel};
use crate::proof::own::Leader;
use crate::proof::peers::{Peer, Standing};
use crate::wireguard::Host;

/// What is known of a tunnel before it is used.
struct Tunnels {
    /// Who sends.
    sender: At,
    /// Its Peer for the receiver.
    peer: usize,
    /// Who receives.
    receiver: At,
    /// Its Peer for the sender.
    back: usize,
}

impl Fabric<'_> {
    /// Follows a packet to its end.
    pub fn way(&self, packet: &Packet) -> Way {
        let mut steps = Vec::new();
        let ending = self.follow(packet, &mut steps).err();
        let ending = ending.unwrap_or(Ending::Delivered);
        Way { steps, ending }
    }

    fn follow(&self, packet: &Packet, steps: &mut Vec<Step>) -> Result<(), Ending> {
        let from = packet.from;
        let unready = Ending::NotReady { node: from };
        let site = self.site(from.site).ok_or_else(|| unready.clone())?;
        let segment = site.segment(from.node).ok_or_else(|| unready.clone())?;
        let leader = site.leader(segment).ok_or(unready)?;
        let sender = At {
            node: leader.node(),
            ..from
        };
        stays(site, from, packet.destination)?;
        if sender != from {
            stays(site, sender, packet.destination)?;
            steps.push(Step::Handed { to: sender });
        }
        let (peer, receiver) = self.select(sender, segment, packet, steps)?;
        if let Leader::Ambiguous(_) = leader {
            let doubt = Doubt::Leader;
            return Err(Ending::Ambiguous { at: sender, doubt });
        }
        let back = self.back(sender, peer, receiver)?;
        let tunnels = Tunnels {
            sender,
            peer,
            receiver,
            back,
        };
        steps.push(self.dial(&tunnels, packet.session)?);
        steps.push(self.accept(&tunnels, packet.source)?);
        self.deliver(receiver, packet)?;
        steps.push(Step::Arrived { at: receiver });
        Ok(())
    }

    /// Lets the WireGuard of `sender` pick a Peer, and finds who has its key.
    fn select(
        &self,
        sender: At,
        segment: usize,
        packet: &Packet,
        steps: &mut Vec<Step>,
    ) -> Result<(usize, At), Ending> {
        let at = sender;
        let ambiguous = |doubt| Ending::Ambiguous { at, doubt };
        let site = self.site(at.site).ok_or(Ending::NoRoute { at })?;
        keeps(site, at, segment, packet.destination)?;
        let (slot, holder) = site
            .model
            .select(segment, packet.destination)
            .ok_or(Ending::NoRoute { at })?;
        let (range, _) = site.model.tunnels.get(slot).ok_or(Ending::NoRoute { at })?;
        let claim = match holder {
            Holder::Certain(claim) => claim,
            Holder::Ambiguous(claims) => {
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
            many => {
                let holders = many.to_vec();
                return Err(ambiguous(Doubt::Key { holders }));
            }
        };
        self.hits(packet.to, receiver, (at, claim, range))?;
        let place = site.model.place(claim);
        steps.push(Step::Selected {
            by: at,
            range,
            peer,
            place,
            receiver,
        });
        Ok((peer, receiver))
    }

    /// Holds whom a Peer leads to against whom the packet is meant for.
    fn hits(
        &self,
        goal: Goal,
        receiver: At,
        (at, claim, range): (At, Claim, Cidr),
    ) -> Result<(), Ending> {
        let of = |at: At| self.site(at.site).and_then(|it| it.segment(at.node));
        let is_meant = match goal {
            Goal::Node(node) => {
                let Some(segment) = of(node) else {
                    return Err(Ending::NotReady { node });
                };
                // Whoever is of the segment but does not lead it is found not to, later.
                receiver.site == node.site && of(receiver) == Some(segment)
            }
            Goal::Services(site) | Goal::Network(site) => receiver.site == site,
        };
        if is_meant {
            return Ok(());
        }
        Err(Ending::StolenBy {
            at,
            claim,
            range,
            thief: Some(receiver),
        })
    }

    /// Finds the receiver's Peer for the sender.
    fn back(&self, sender: At, peer: usize, by: At) -> Result<usize, Ending> {
        let refused = |why| Ending::NotAccepted { by, why };
        let (Some(site), Some(key)) = (
            self.site(by.site),
            self.node(sender).and_then(|it| it.kilo.key),
        ) else {
            return Err(refused(Unaccepted::NoPeer));
        };
        let Some(segment) = site.segment(by.node) else {
            return Err(Ending::NotReady { node: by });
        };
        match site.leader(segment) {
            Some(Leader::Certain(node)) if node == by.node => {}
            Some(Leader::Ambiguous(_)) => {
                let doubt = Doubt::Leader;
                return Err(Ending::Ambiguous { at: by, doubt });
            }
            _ => return Err(refused(Unaccepted::NotLeader)),
        }
        let back = match site.model.peers_with(&key) {
            [] => return Err(refused(Unaccepted::NoPeer)),
            [one] => *one,
            many => {
                let peers = many.to_vec();
                let doubt = Doubt::Peers { peers };
                return Err(Ending::Ambiguous { at: by, doubt });
            }
        };
        let is_certain = |peer: &Peer| matches!(peer.standing, Standing::Certain(_));
        let is_one = site.model.peers.get(back).is_some_and(is_certain)
            && !site.model.shares_key(segment, Tunnel::Peer(back));
        if !is_one || !site.model.upsets.is_empty() {
            let doubt = Doubt::Peers { peers: vec![back] };
            return Err(Ending::Ambiguous { at: by, doubt });
        }
        let secret = |site: &Site, peer| {
            let share = site.model.share(peer);
            share.and_then(|it| it.translation.preshared_key)
        };
        let own = self.site(sender.site).and_then(|it| secret(it, peer));
        if own != secret(site, back) {
            return Err(refused(Unaccepted::PresharedKey { peer: back }));
        }
        Ok(back)
    }

    /// Opens the tunnel.
    fn dial(&self, tunnels: &Tunnels, session: Session) -> Result<Step, Ending> {
        let Tunnels {
            sender,
            peer,
            receiver,
            back,
        } = *tunnels;
        let there = self.dials(sender, peer, receiver)?;
        let back_again = self.dials(receiver, back, sender)?;
        let flaps = [(there, sender, peer), (back_again, receiver, back)];
        let flaps = flaps.iter().any(|(dials, at, peer)| {
            let share = self.site(at.site).and_then(|it| it.model.share(*peer));
            !dials && share.is_some_and(|it| it.translation.keepalive.is_none())
        });
        let endpoint = |at: At, peer| {
            let site = self.site(at.site)?;
            site.model.endpoint(Tunnel::Peer(peer)).cloned()
        };
        let calls = self.node(receiver).is_some_and(|it| 0 < it.keepalive);
        let (by, endpoint) = match session {
            Session::Open => (sender, None),
            Session::New if there => (sender, endpoint(sender, peer)),
            Session::New if back_again && calls => (receiver, endpoint(receiver, back)),
            Session::New => {
                return Err(Ending::NoInitiator {
                    from: sender,
                    peer,
                    to: receiver,
                    back,
                });
            }
        };
        // Whoever does not find the other answers it where it calls from.
        for (dials, at, peer, other) in [
            (there, sender, peer, receiver),
            (back_again, receiver, back, sender),
        ] {
            if !dials && let Some(slot) = self.swallows(at, other) {
                return Err(self.looped(at, peer, slot));
            }
        }
        Ok(Step::Dialled {
            by,
            endpoint,
            flaps,
        })
    }

    /// Returns whether `from` gets to `to` where it dials its Peer.
    ///
    /// # Errors
    /// What it sends there goes into a tunnel again.
    pub fn dials(&self, from: At, peer: usize, to: At) -> Result<bool, Ending> {
        let Some((site, segment)) = self
            .site(from.site)
            .and_then(|site| Some((site, site.segment(from.node)?)))
        else {
            return Ok(false);
        };
        let slot = match site.model.dial(segment, Tunnel::Peer(peer)) {
            Dial::Address(endpoint) => return Ok(self.answers(endpoint, to)),
            Dial::Name(_) => return Ok(true),
            Dial::Unknown => return Ok(false),
            Dial::Loops(slot) => slot,
        };
        let endpoint = site.model.endpoint(Tunnel::Peer(peer));
        if !endpoint.is_some_and(|endpoint| self.answers(endpoint, to)) {
            // Nobody was there anyway, and whoever calls is answered where it calls from.
            return Ok(false);
        }
        Err(self.looped(from, peer, slot))
    }

    /// Returns the range by which `from` routes into a tunnel what it sends to where `to` calls from; none
    /// where that cannot be told.
    pub(in crate::proof) fn swallows(&self, from: At, to: At) -> Option<usize> {
        let site = self.site(from.site)?;
        match self.node(to)?.endpoint()?.host {
            Host::Ip(address) => site.model.carries(site.segment(from.node)?, address),
            Host::Dns(_) => None,
        }
    }

    /// Returns how a packet ends that a tunnel would have to carry which itself is routed by the range in
    /// `slot`.
    fn looped(&self, at: At, peer: usize, slot: usize) -> Ending {
        let Some(site) = self.site(at.site) else {
            return Ending::NoRoute { at };
        };
        if let Some(missing) = missing(site, at) {
            return missing;
        }
        match site.model.tunnels.get(slot) {
            Some((range, [claim, ..])) => Ending::Loops {
                at,
                peer,
                range,
                claim: *claim,
            },
            _ => Ending::NoRoute { at },
        }
    }

    /// Lets the receiver's WireGuard look at the source.
    fn accept(&self, tunnels: &Tunnels, source: IpAddr) -> Result<Step, Ending> {
        let (by, back) = (tunnels.receiver, tunnels.back);
        let reject = |owner| Ending::SourceRejected {
            by,
            owner,
            peer: Some(back),
        };
        let Some((site, segment)) = self
            .site(by.site)
            .and_then(|site| Some((site, site.segment(by.node)?)))
        else {
            return Err(reject(None));
        };
        let Some((slot, holder)) = site.model.select(segment, source) else {
            return Err(reject(None));
        };
        let (range, _) = site.model.tunnels.get(slot).ok_or(reject(None))?;
        match holder {
            Holder::Certain(claim) if claim.tunnel == Tunnel::Peer(back) => Ok(Step::Accepted {
                by,
                range,
                place: site.model.place(claim),
            }),
            Holder::Certain(claim) => Err(reject(Some((claim, range)))),
            Holder::Ambiguous(claims) => {
                let doubt = Doubt::Range { claims, range };
                Err(Ending::Ambiguous { at: by, doubt })
            }
        }
    }

    /// Takes the packet from the end of the tunnel to where it is meant to go: nothing there may send
    /// it on.
    fn deliver(&self, at: At, packet: &Packet) -> Result<(), Ending> {
        let Some((site, segment)) = self
            .site(at.site)
            .and_then(|site| Some((site, site.segment(at.node)?)))
        else {
            return Err(Ending::NotReady { node: at });
        };
        let is_proxied = matches!(packet.to, Goal::Services(_));
        let Some(slot) = site.model.tunnels.holding(packet.destination).next() else {
            return Ok(());
        };
        let Some((range, claims)) = site.model.tunnels.get(slot).filter(|_| !is_proxied) else {
            return Ok(());
        };
        let connected = site.connection(at.node, packet.destination);
        if site.has_address(at.node, packet.destination)
            || connected.is_some_and(|it| range.prefix_length() < it.prefix_length())
        {
            return Ok(());
        }
        let is_own = |claim: &&Claim| claim.tunnel == Tunnel::Segment(segment);
        let mut others = claims.iter().filter(|it| !is_own(it));
        let Some(&claim) = others.next() else {
            // To the pods of another node of the location, too, a route of Kilo's leads.
            let missing = missing(site, at).filter(|_| connected.is_none());
            return missing.map_or(Ok(()), Err);
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
                by: At {
                    node: site.leader(other).map_or(at.node, Leader::node),
                    ..at
                },
                owner: None,
                peer: None,
            },
            Tunnel::Peer(_) => {
                let key = site.model.key(claim.tunnel).unwrap_or_default();
                Ending::StolenBy {
                    at,
                    claim,
                    range,
                    thief: self.holders(&key).first().copied(),
                }
            }
        })
    }
}

/// Looks whether a node has the destination beside itself, or thinks so.
pub(in crate::proof) fn stays(site: &Site, at: At, destination: IpAddr) -> Result<(), Ending> {
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
    let mut around = site.model.tunnels.holding(destination);
    let longest = around.find_map(|slot| {
        let (range, claims) = site.model.tunnels.get(slot)?;
        let mut claims = claims.iter();
        let is_peer = |it: &Claim| matches!(it.tunnel, Tunnel::Peer(_));
        claims.any(is_peer).then_some(range)
    });
    if longest.is_none_or(|range| range.prefix_length() < connected.prefix_length()) {
        return shadow(Some(connected));
    }
    Ok(())
}

/// Looks whether any of a node's routes may be missing: what is decided by one, for better or worse, is
/// chance then.
fn missing(site: &Site, at: At) -> Option<Ending> {
    let (peer, index) = site.refused()?;
    let doubt = Doubt::Refused { peer, index };
    Some(Ending::Ambiguous { at, doubt })
}

/// Looks whether the destination belongs to the sender's own segment, whose nodes pass it to each other
/// without a tunnel.
pub(in crate::proof) fn keeps(
    site: &Site,
    at: At,
    segment: usize,
    destination: IpAddr,
) -> Result<(), Ending> {
    let is_own = |claim: &Claim| claim.tunnel == Tunnel::Segment(segment);
    let around = site.model.tunnels.holding(destination);
    let mut around = around.filter_map(|slot| site.model.tunnels.get(slot));
    // What is wider than a Peer's range has no say.
    let longest = around.find(|(_, claims)| {
        let is_peer = |claim: &Claim| matches!(claim.tunnel, Tunnel::Peer(_));
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
