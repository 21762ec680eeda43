//! Known Peers: what a cluster knows of each of its Peers, for every packet alike.

use crate::agent::fabric::{Fabric, Holding, NodeRef, Secret, SiteId};
use crate::agent::model::{Dial, Tunnel};
use crate::agent::peers::{ContestId, PeerId, PeerStanding};
use crate::net::prefixes::SlotId;
use crate::wireguard::Endpoint;

/// The facts about a Peer that hold for every packet of its cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPeer {
    pub(super) holding: Holding,
    /// The tunnel with the one who has the key.
    pub(super) link: PeerLink,
    /// Whether all of the cluster's nodes agree about it.
    pub(super) is_uniform: bool,
}

/// A cluster's tunnel with a node of another one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum PeerLink {
    None,
    /// It depends on order or time which Peer it is: the number of the contest, where it is one.
    Doubt(Option<ContestId>),
    /// Not the leader of its segment.
    Silent,
    One {
        dial: DialOutcome,
        secret: Secret,
    },
}

/// Whether a cluster gets there where it dials.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum DialOutcome {
    Yes,
    /// Whether it expects to be called from elsewhere.
    No {
        is_expected: bool,
    },
    Loops(SlotId),
}

impl KnownPeer {
    /// Finds what a cluster knows of one of its Peers.
    pub(super) fn new(fabric: &Fabric, site: SiteId, peer: PeerId) -> Self {
        let holding = fabric.holding(site, peer);
        let (link, is_uniform) = match holding {
            Holding::One(at) => PeerLink::find(fabric, site, peer, at),
            Holding::Nobody | Holding::Many => (PeerLink::None, true),
        };
        Self { holding, link, is_uniform }
    }
}

impl PeerLink {
    /// Returns the tunnel through a Peer with a node that has its key, and whether it is the same for
    /// all nodes of the cluster.
    pub(super) fn find(fabric: &Fabric, number: SiteId, peer: PeerId, at: NodeRef) -> (Self, bool) {
        let site = fabric.site(number);
        let tunnel = Tunnel::Peer(peer);
        let share = site.model.share(peer);
        let secret = fabric.secret(site, peer);
        let endpoint = site.model.endpoint(tunnel);
        let dialled = endpoint.and_then(Endpoint::address);
        let is_in_range = dialled.is_some_and(|it| site.model.has_range_around(it));
        // The address from which it is seen counts as well as its endpoint.
        let may_loop = is_in_range || site.may_swallow(&fabric.node(at).kilo);
        let standing = &site.model.peers[peer].standing;
        let contest = match standing {
            PeerStanding::Contested(_, contest) => Some(*contest),
            _ => None,
        };
        let is_certain = matches!(standing, PeerStanding::Certain(_));
        let leads = fabric.site(at.site).led(at.node).is_some();
        // Another one with its key would contest it.
        let link = if !is_certain {
            Self::Doubt(contest)
        } else if leads {
            // Without a segment, no node dials.
            let any = site.model.topology.segments.ids().next();
            let dial = match endpoint {
                Some(endpoint) if !is_in_range => Dial::Address(endpoint),
                _ => any.map_or(Dial::Unknown, |it| site.model.dial(it, tunnel)),
            };
            let is_expected = share.is_some_and(|it| it.translation.keepalive.is_some());
            let found = DialOutcome::new(&dial, |it| fabric.answers(it, at), endpoint);
            let dial = found.unwrap_or(DialOutcome::No { is_expected });
            Self::One { dial, secret }
        } else {
            Self::Silent
        };
        let is_known = secret == Secret::Absent || matches!(link, Self::One { .. });
        // A node that itself has the endpoint's address dials no other one there.
        let is_host = endpoint.is_some_and(|it| fabric.may_be_at(number, it));
        let is_uniform = is_known && !may_loop && !is_host && !site.has_own_key(peer);
        (link, is_uniform)
    }
}

impl DialOutcome {
    fn new(
        dial: &Dial,
        answers: impl Fn(&Endpoint) -> bool,
        endpoint: Option<&Endpoint>,
    ) -> Option<Self> {
        match dial {
            Dial::Name(_) => Some(Self::Yes),
            Dial::Address(endpoint) if answers(endpoint) => Some(Self::Yes),
            Dial::Loops(slot) if endpoint.is_some_and(answers) => Some(Self::Loops(*slot)),
            Dial::Address(_) | Dial::Loops(_) | Dial::Unknown => None,
        }
    }
}
