//! Packets: the way of one packet from one cluster to another, and why it ends where it does.
//!
//! Follows one packet at a time and looks up every step. Tests compare [`crate::proof::reach`],
//! which handles all packets together, with this module.

use std::net::IpAddr;

use crate::agent::fabric::{DialPremise, NodeRef, SiteId};
use crate::agent::peers::PeerId;
use crate::net::Cidr;
use crate::place::Place;
use crate::wireguard::Endpoint;

pub use ending::{Doubt, Ending, Unaccepted};
pub(super) use follow::{keeps, stays};

mod diversion;
mod ending;
mod follow;
mod hop;
mod missing_routes;
mod tunnel;
pub mod rule;
pub mod trace;
pub mod premise;
pub mod messages;

/// A packet at its beginning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet {
    /// The node that it is on.
    pub from: NodeRef,
    /// The source address.
    pub source: IpAddr,
    /// The intended receiver.
    pub to: Goal,
    /// The destination address.
    pub destination: IpAddr,
    /// Whether the tunnel is open already, as it is for an answer.
    pub session: Session,
}

/// The intended receiver of a packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Goal {
    /// A node, or a pod on it.
    Node(NodeRef),
    /// A cluster-wide address, behind any node of the cluster.
    Services(SiteId),
    /// As before, but nothing there replaces the destination address.
    Network(SiteId),
}

/// Whether two nodes have a tunnel between them already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Session {
    /// One of them has to call first.
    New,
    /// A packet went the other way just now.
    Open,
}

/// An endpoint at which a node gets to another one only under a condition.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AssumedDial {
    /// The condition.
    pub premise: DialPremise,
    /// The node that dials.
    pub at: NodeRef,
    /// Its Peer with the endpoint.
    pub peer: PeerId,
}

/// The path of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Way {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The result.
    pub ending: Ending,
}

/// A step on the path of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Its node hands it to the leader of its location.
    Handed {
        /// The leader.
        to: NodeRef,
    },
    /// WireGuard picks the Peer with the longest prefix.
    Selected {
        /// The node.
        by: NodeRef,
        /// The prefix.
        range: Cidr,
        /// The Peer.
        peer: PeerId,
        /// The place of the range in the manifest.
        place: Option<Place>,
        /// The node with its key.
        receiver: NodeRef,
    },
    /// A tunnel is there or is opened.
    Dialled {
        /// The node that dialled.
        by: NodeRef,
        /// The endpoint; none if the tunnel was open.
        endpoint: Option<Endpoint>,
        /// Assumptions that no snapshot shows.
        assumes: Vec<AssumedDial>,
    },
    /// The receiver compares the source with the ranges of the sender.
    Accepted {
        /// The node.
        by: NodeRef,
        /// The prefix.
        range: Cidr,
        /// The place of the prefix in the manifest.
        place: Option<Place>,
    },
    /// The label exists.
    Arrived {
        /// The end of the tunnel.
        at: NodeRef,
    },
}

impl Packet {
    /// Returns the answer to a packet that got to `receiver`.
    #[must_use]
    pub fn answer(&self, receiver: NodeRef) -> Self {
        let from = match self.to {
            Goal::Node(at) => at,
            Goal::Services(_) | Goal::Network(_) => receiver,
        };
        Self {
            from,
            source: self.destination,
            to: Goal::Node(self.from),
            destination: self.source,
            session: Session::Open,
        }
    }
}

impl Goal {
    /// Returns the number of the cluster.
    pub fn site(self) -> SiteId {
        match self {
            Self::Node(at) => at.site,
            Self::Services(site) | Self::Network(site) => site,
        }
    }
}

impl Way {
    /// Returns the end of the tunnel that the packet got to.
    pub fn arrival(&self) -> Option<NodeRef> {
        self.steps.iter().find_map(|step| match step {
            Step::Arrived { at } => Some(*at),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
