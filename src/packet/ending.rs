//! Endings: how the way of a packet ends, and why.

use std::net::IpAddr;

use crate::agent::fabric::NodeRef;
use crate::agent::model::TunnelClaim;
use crate::agent::peers::PeerId;
use crate::agent::refusal::KernelRefusal;
use crate::diagnostic::Rule;
use crate::kilo::id::NodeId;
use crate::net::Cidr;
use crate::packet::rule;

/// The end of a packet's path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It arrives.
    Delivered,
    /// It never leaves its cluster, which has the destination itself.
    LocalShadow {
        /// The node that keeps it.
        at: NodeRef,
        /// The range that keeps it, where it is not a segment's.
        range: Option<Cidr>,
    },
    /// No Peer takes it.
    NoRoute {
        /// The node.
        at: NodeRef,
    },
    /// Between a leader and another node of its location, Kilo sets no route.
    NoHop {
        /// The node without the route.
        from: NodeRef,
        /// The other one.
        to: NodeRef,
    },
    /// It goes to another cluster.
    StolenBy {
        /// The node that decides.
        at: NodeRef,
        /// The Peer, or segment, that takes it.
        claim: TunnelClaim,
        /// For which range.
        range: Cidr,
        /// The node with its key, if there is one.
        thief: Option<NodeRef>,
    },
    /// It goes to a Peer whose key no node has.
    UnknownKey {
        /// The node that decides.
        at: NodeRef,
        /// The Peer.
        claim: TunnelClaim,
        /// For which range.
        range: Cidr,
    },
    /// The node with the key does not have the sender as a Peer.
    NotAccepted {
        /// The node that rejects it.
        by: NodeRef,
        /// The reason.
        why: Unaccepted,
    },
    /// Neither side can dial the other.
    NoInitiator {
        /// One side.
        from: NodeRef,
        /// Its Peer for the other.
        peer: PeerId,
        /// The other side.
        to: NodeRef,
        /// Its Peer for the first.
        back: PeerId,
    },
    /// Kilo cuts the tunnel with every pass: one side connects from another address than the
    /// endpoint of its Peer, and that Peer does not allow this (`kilo.md` §2.9).
    Flapping {
        /// The node.
        at: NodeRef,
        /// Its Peer for the other side.
        peer: PeerId,
        /// The other side.
        other: NodeRef,
    },
    /// WireGuard's own packets would go through the tunnel that they carry.
    Loops {
        /// The node.
        at: NodeRef,
        /// Its Peer for the other side.
        peer: PeerId,
        /// The address to which it would send them: the endpoint of the Peer, or the one from which it sees
        /// the other side.
        address: IpAddr,
        /// The range that the address is in.
        range: Cidr,
        /// The Peer or segment that claims that range.
        claim: TunnelClaim,
    },
    /// The receiver does not believe the source.
    SourceRejected {
        /// The node that rejects it.
        by: NodeRef,
        /// The owner of the source there, if any.
        owner: Option<(TunnelClaim, Cidr)>,
        /// The Peer of the sender there.
        peer: Option<PeerId>,
    },
    /// It depends on order or time.
    Ambiguous {
        /// The node.
        at: NodeRef,
        /// The assumption.
        doubt: Doubt,
    },
    /// Kilo does not count the node.
    NotReady {
        /// The node.
        node: NodeRef,
    },
}

/// The reason why a sender is not accepted.
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

/// An uncertainty.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Doubt {
    /// More than one, or none, has the range.
    Range {
        /// The Peers or segments that claim it.
        claims: Vec<TunnelClaim>,
        /// The range.
        range: Cidr,
    },
    /// More than one node of a cluster has the internal address, or of a location the pod CIDR.
    Nodes {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// The address or pod CIDR.
        range: Cidr,
    },
    /// More than one node of the fleet has the key.
    Key {
        /// The key.
        key: [u8; 32],
    },
    /// More than one Peer has the key.
    Peers {
        /// The Peers.
        peers: Vec<PeerId>,
    },
    /// The kernel refuses the route of a range, and a pass of Kilo's ends there.
    Refused(KernelRefusal),
    /// The leader of the segment is uncertain.
    Leader,
}

impl Ending {
    /// Returns whether it is the good one.
    pub fn is_delivered(&self) -> bool {
        *self == Self::Delivered
    }

    /// Returns the node on which it ends, unless it is delivered.
    pub fn at(&self) -> Option<NodeRef> {
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
            Self::NoInitiator { from, .. } | Self::NoHop { from, .. } => Some(from),
            Self::NotReady { node } => Some(node),
        }
    }

    /// Returns the rule that it is a case of, unless it is delivered.
    pub fn rule(&self) -> Option<&'static Rule> {
        Some(match self {
            Self::Delivered => return None,
            Self::LocalShadow { .. } => &rule::LOCAL_SHADOW,
            Self::NoRoute { .. } | Self::NoHop { .. } => &rule::NO_ROUTE,
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
        self.rule().map_or("delivered", Rule::name)
    }
}
