//! Tunnels: whether the other side knows the sender, how the two find each other, and whether it
//! believes the source.

use std::net::IpAddr;

use super::missing_routes::missing;
use super::{AssumedDial, Doubt, Ending, Session, Step, Unaccepted};
use crate::agent::fabric::{Dials, Fabric, NodeRef, Site};
use crate::agent::model::{Dial, RangeHolder, Tunnel};
use crate::agent::peers::{PeerId, PeerStanding};
use crate::kilo::seen::SeenAddress;
use crate::kilo::topology::Leader;
use crate::net::prefixes::SlotId;
use crate::wireguard::Endpoint;

/// The two ends of a tunnel before it is used.
pub(super) struct Tunnels {
    pub(super) sender: NodeRef,
    /// Its Peer for the receiver.
    pub(super) peer: PeerId,
    pub(super) receiver: NodeRef,
    /// Its Peer for the sender.
    pub(super) back: PeerId,
}

/// One side of a tunnel.
struct TunnelSide {
    /// The node.
    at: NodeRef,
    /// Its Peer for the other.
    peer: PeerId,
    other: NodeRef,
}

/// Packets that are to carry a tunnel.
struct Outward {
    /// The node that sends them.
    at: NodeRef,
    /// Its Peer for the other side.
    peer: PeerId,
    /// The address to which it sends them.
    address: IpAddr,
}

impl Tunnels {
    fn sides(&self) -> [TunnelSide; 2] {
        [
            TunnelSide { at: self.sender, peer: self.peer, other: self.receiver },
            TunnelSide { at: self.receiver, peer: self.back, other: self.sender },
        ]
    }
}

impl Fabric<'_> {
    /// Finds the receiver's Peer for the sender.
    pub(super) fn back(
        &self,
        sender: NodeRef,
        peer: PeerId,
        by: NodeRef,
    ) -> Result<PeerId, Ending> {
        let refused = |why| Ending::NotAccepted { by, why };
        let site = self.site(by.site);
        let Some(key) = self.node(sender).kilo.key else {
            return Err(refused(Unaccepted::NoPeer));
        };
        let Some(segment) = site.segment(by.node) else {
            return Err(Ending::NotReady { node: by });
        };
        match site.leader(segment) {
            Leader::Certain(node) if node == by.node => {}
            // Of an open tunnel, the end with the key counts.
            Leader::Ambiguous(_) if self.has_open_tunnels() => {}
            Leader::Ambiguous(_) => {
                let doubt = Doubt::Leader;
                return Err(Ending::Ambiguous { at: by, doubt });
            }
            Leader::Certain(_) => return Err(refused(Unaccepted::NotLeader)),
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
        let is_one = matches!(site.model.peers[back].standing, PeerStanding::Certain(_))
            && !site.model.shares_key(segment, Tunnel::Peer(back));
        if !is_one || !site.model.stoppers.is_empty() {
            let doubt = Doubt::Peers { peers: vec![back] };
            return Err(Ending::Ambiguous { at: by, doubt });
        }
        let secret =
            |site: &Site, peer| site.model.share(peer).and_then(|it| it.translation.preshared_key);
        if secret(self.site(sender.site), peer) != secret(site, back) {
            return Err(refused(Unaccepted::PresharedKey { peer: back }));
        }
        Ok(back)
    }

    /// Opens the tunnel. It is there without an assumption if it is when no assumed dial is answered.
    pub(super) fn dial(&self, tunnels: &Tunnels, session: Session) -> Result<Step, Ending> {
        if self.has_open_tunnels() {
            return Ok(Step::Dialled { by: tunnels.sender, endpoint: None, assumes: Vec::new() });
        }
        let sides = tunnels.sides();
        let [near, far] = &sides;
        let dials =
            [self.dials(near.at, near.peer, near.other)?, self.dials(far.at, far.peer, far.other)?];
        let (by, endpoint) = self.opens(&sides, dials.map(Dials::may_be), session)?;
        let needed = dials.iter().zip(&sides).filter_map(|(dials, side)| {
            let Dials::Assumed(premise) = *dials else {
                return None;
            };
            Some(AssumedDial { premise, at: side.at, peer: side.peer })
        });
        let mut assumes: Vec<AssumedDial> = needed.collect();
        let is_shown = || self.opens(&sides, dials.map(|it| it == Dials::Shown), session);
        if !assumes.is_empty() && is_shown().is_ok() {
            assumes.clear();
        }
        Ok(Step::Dialled { by, endpoint, assumes })
    }

    /// Returns who opens the tunnel and where it dials, given which of the two get to the other.
    fn opens(
        &self,
        [near, far]: &[TunnelSide; 2],
        [there, again]: [bool; 2],
        session: Session,
    ) -> Result<(NodeRef, Option<Endpoint>), Ending> {
        let endpoint = |side: &TunnelSide| {
            self.site(side.at.site).model.endpoint(Tunnel::Peer(side.peer)).cloned()
        };
        let calls = 0 < self.node(far.at).kilo.keepalive;
        let opened = match session {
            Session::Open => (near.at, None),
            Session::New if there => (near.at, endpoint(near)),
            Session::New if again && calls => (far.at, endpoint(far)),
            Session::New => {
                return Err(Ending::NoInitiator {
                    from: near.at,
                    peer: near.peer,
                    to: far.at,
                    back: far.peer,
                });
            }
        };
        let missing = || {
            [(there, near), (again, far)]
                .into_iter()
                .filter(|(dials, _)| !dials)
                .map(|(_, side)| side)
        };
        // A side that cannot dial the other one answers at the address from which it sees the other one.
        for &TunnelSide { at, peer, other } in missing() {
            if let Some((address, slot)) = self.swallows(at, other) {
                return Err(self.looped(&Outward { at, peer, address }, slot));
            }
        }
        let mut missing = missing().filter(|side| {
            let share = self.site(side.at.site).model.share(side.peer);
            share.is_some_and(|it| it.translation.keepalive.is_none())
        });
        match missing.next() {
            Some(&TunnelSide { at, peer, other }) => Err(Ending::Flapping { at, peer, other }),
            None => Ok(opened),
        }
    }

    /// Returns whether `from` gets to `to` where it dials its Peer.
    ///
    /// # Errors
    /// Packets to that endpoint would go into a tunnel again.
    pub fn dials(&self, from: NodeRef, peer: PeerId, to: NodeRef) -> Result<Dials, Ending> {
        let site = self.site(from.site);
        let Some(segment) = site.segment(from.node) else {
            return Ok(Dials::No);
        };
        let slot = match site.model.dial(segment, Tunnel::Peer(peer)) {
            Dial::Address(endpoint) | Dial::Name(endpoint) => {
                return Ok(self.reaches(from, to, endpoint));
            }
            Dial::Unknown => return Ok(Dials::No),
            Dial::Loops(slot) => slot,
        };
        let endpoint = site.model.endpoint(Tunnel::Peer(peer));
        let dialled = endpoint.filter(|endpoint| self.answers(endpoint, to));
        let Some(address) = dialled.and_then(Endpoint::address) else {
            // No node has this endpoint anyway, and a caller is answered at the address from which
            // it connects.
            return Ok(Dials::No);
        };
        let at = from;
        Err(self.looped(&Outward { at, peer, address }, slot))
    }

    /// Returns the address from which `from` sees `to`, with the range by which it routes packets for it into
    /// a tunnel; none if the address is unknown.
    fn swallows(&self, from: NodeRef, to: NodeRef) -> Option<(IpAddr, SlotId)> {
        let site = self.site(from.site);
        let seen = SeenAddress::of(&self.node(to).kilo).from(site.node(from.node).kilo.lan)?;
        let slot = site.model.carries(site.segment(from.node)?, seen)?;
        Some((seen, slot))
    }

    /// Returns how a packet ends that a tunnel would have to carry which itself is routed by the range in
    /// `slot`.
    fn looped(&self, &Outward { at, peer, address }: &Outward, slot: SlotId) -> Ending {
        let site = self.site(at.site);
        if let Some(missing) = missing(site, at) {
            return missing;
        }
        match site.model.tunnels.at(slot) {
            (range, [claim, ..]) => Ending::Loops { at, peer, address, range, claim: *claim },
            _ => Ending::NoRoute { at },
        }
    }

    /// Lets the receiver's WireGuard look at the source.
    pub(super) fn accept(&self, tunnels: &Tunnels, source: IpAddr) -> Result<Step, Ending> {
        let (by, back) = (tunnels.receiver, tunnels.back);
        let reject = |owner| Ending::SourceRejected { by, owner, peer: Some(back) };
        let site = self.site(by.site);
        let Some(segment) = site.segment(by.node) else {
            return Err(reject(None));
        };
        let Some((slot, holder)) = site.model.select(segment, source) else {
            return Err(reject(None));
        };
        let (range, _) = site.model.tunnels.at(slot);
        match holder {
            RangeHolder::Certain(claim) if claim.tunnel == Tunnel::Peer(back) => {
                Ok(Step::Accepted { by, range, place: site.model.place(claim) })
            }
            RangeHolder::Certain(claim) => Err(reject(Some((claim, range)))),
            RangeHolder::Ambiguous(claims) => {
                let doubt = Doubt::Range { claims, range };
                Err(Ending::Ambiguous { at: by, doubt })
            }
        }
    }
}
