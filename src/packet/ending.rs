//! Endings: how the way of a packet ends, and why.

use crate::agent::fabric::At;
use crate::agent::flaw::KernelRefusal;
use crate::agent::model::TunnelClaim;
use crate::agent::peers::PeerId;
use crate::diagnostic::Rule;
use crate::net::Cidr;
use crate::packet::rule;

/// How a way ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Where it should.
    Delivered,
    /// It never leaves its cluster, which has the destination itself.
    LocalShadow {
        /// Where it stays.
        at: At,
        /// The range that keeps it, where it is not a segment's.
        range: Option<Cidr>,
    },
    /// No Peer takes it.
    NoRoute {
        /// Where.
        at: At,
    },
    /// It goes to another cluster.
    StolenBy {
        /// Where it is decided.
        at: At,
        /// The Peer, or segment, that takes it.
        claim: TunnelClaim,
        /// For which range.
        range: Cidr,
        /// Who has its key, if it is one of the fleet.
        thief: Option<At>,
    },
    /// It goes to a Peer whose key no node has.
    UnknownKey {
        /// Where it is decided.
        at: At,
        /// The Peer.
        claim: TunnelClaim,
        /// For which range.
        range: Cidr,
    },
    /// The node with the key does not have the sender as a Peer.
    NotAccepted {
        /// Who.
        by: At,
        /// The reason.
        why: Unaccepted,
    },
    /// Neither side can dial the other.
    NoInitiator {
        /// One side.
        from: At,
        /// Its Peer for the other.
        peer: PeerId,
        /// The other side.
        to: At,
        /// Its Peer for the first.
        back: PeerId,
    },
    /// Kilo cuts the tunnel with every pass: one side connects from another address than the
    /// endpoint of its Peer, and that Peer does not allow this (`kilo.md` §2.9).
    Flapping {
        /// Where.
        at: At,
        /// Its Peer for the other side.
        peer: PeerId,
        /// The other side.
        other: At,
    },
    /// What carries it would go through the tunnel itself.
    Loops {
        /// Where.
        at: At,
        /// The Peer whose endpoint it is.
        peer: PeerId,
        /// The range that the endpoint is in.
        range: Cidr,
        /// Who claims that range.
        claim: TunnelClaim,
    },
    /// The receiver does not believe the source.
    SourceRejected {
        /// Who.
        by: At,
        /// The owner of the source there, if any.
        owner: Option<(TunnelClaim, Cidr)>,
        /// The Peer of the sender there.
        peer: Option<PeerId>,
    },
    /// It depends on order or time.
    Ambiguous {
        /// Where.
        at: At,
        /// The assumption.
        doubt: Doubt,
    },
    /// Kilo does not count the node.
    NotReady {
        /// Which.
        node: At,
    },
}

/// Why a sender is not accepted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Unaccepted {
    /// There is no Peer with its key.
    NoPeer,
    /// Only the leader of a location runs WireGuard, and this is not one.
    NotLeader,
    /// The two sides have different pre-shared keys.
    PresharedKey {
        /// The receiver's Peer.
        peer: PeerId,
    },
}

/// What is not certain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Doubt {
    /// More than one, or none, has the range.
    Range {
        /// Who claims it.
        claims: Vec<TunnelClaim>,
        /// The range.
        range: Cidr,
    },
    /// More than one node of the fleet has the key.
    Key {
        /// Who.
        holders: Vec<At>,
    },
    /// More than one Peer has the key.
    Peers {
        /// Which.
        peers: Vec<PeerId>,
    },
    /// The kernel refuses the route of a range, and a pass of Kilo's ends there.
    Refused(KernelRefusal),
    /// Who leads the segment.
    Leader,
}

impl Ending {
    /// Returns whether it is the good one.
    pub fn is_delivered(&self) -> bool {
        *self == Self::Delivered
    }

    /// Returns the node on which it ends, unless it is delivered.
    pub fn at(&self) -> Option<At> {
        match *self {
            Self::Delivered => None,
            Self::LocalShadow { at, .. }
            | Self::NoRoute { at }
            | Self::StolenBy { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::Loops { at, .. }
            | Self::Flapping { at, .. }
            | Self::Ambiguous { at, .. } => Some(at),
            Self::NotAccepted { by, .. } | Self::SourceRejected { by, .. } => Some(by),
            Self::NoInitiator { from, .. } => Some(from),
            Self::NotReady { node } => Some(node),
        }
    }

    /// Returns the rule that it is a case of, unless it is delivered.
    pub fn rule(&self) -> Option<&'static Rule> {
        Some(match self {
            Self::Delivered => return None,
            Self::LocalShadow { .. } => &rule::LOCAL_SHADOW,
            Self::NoRoute { .. } => &rule::NO_ROUTE,
            Self::StolenBy { .. } => &rule::STOLEN_BY,
            Self::UnknownKey { .. } => &rule::UNKNOWN_KEY,
            Self::NotAccepted { .. } => &rule::NOT_ACCEPTED,
            Self::NoInitiator { .. } => &rule::NO_INITIATOR,
            Self::Flapping { .. } => &rule::FLAPPING,
            Self::Loops { .. } => &rule::LOOPS,
            Self::SourceRejected { .. } => &rule::SOURCE_REJECTED,
            Self::Ambiguous { .. } => &rule::AMBIGUOUS,
            Self::NotReady { .. } => &rule::NOT_READY,
        })
    }

    /// Returns its name, as `explain` knows it.
    pub fn name(&self) -> &'static str {
        self.rule().map_or("delivered", |rule| rule.name)
    }
}
