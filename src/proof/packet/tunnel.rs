//! Tunnels: whether the other side knows the sender, how the two find each other, and whether it
//! believes the source.

use std::net::IpAddr;

use super::follow::missing;
use super::{Doubt, Ending, Session, Step, Unaccepted};
use crate::kilo::own::Leader;
use crate::proof::fabric::{At, Fabric, Site};
use crate::proof::model::{Dial, Holder, Tunnel};
use crate::proof::peers::{Peer, Standing};
use crate::wireguard::Host;

/// What is known of a tunnel before it is used.
pub(super) struct Tunnels {
    /// Who sends.
    pub(super) sender: At,
    /// Its Peer for the receiver.
    pub(super) peer: usize,
    /// Who receives.
    pub(super) receiver: At,
    /// Its Peer for the sender.
    pub(super) back: usize,
}

impl Fabric<'_> {
    /// Finds the receiver's Peer for the sender.
    pub(super) fn back(&self, sender: At, peer: usize, by: At) -> Result<usize, Ending> {
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
    pub(super) fn dial(&self, tunnels: &Tunnels, session: Session) -> Result<Step, Ending> {
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
        let calls = self.node(receiver).is_some_and(|it| 0 < it.kilo.keepalive);
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
    pub(super) fn accept(&self, tunnels: &Tunnels, source: IpAddr) -> Result<Step, Ending> {
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
}
