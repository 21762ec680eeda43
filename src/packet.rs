//! Packets: the way of one packet from one cluster to another, and why it ends where it does.
//!
//! Follows one packet at a time and looks up every step. Tests compare [`crate::proof::reach`],
//! which handles all packets together, with this module.

use std::net::IpAddr;

use crate::agent::fabric::{At, SiteId};
use crate::agent::peers::PeerId;
use crate::net::{Cidr, Family};
use crate::place::Place;
use crate::wireguard::Endpoint;

pub use ending::{Doubt, Ending, Unaccepted};
pub(super) use follow::{keeps, stays};
pub use tunnel::Dials;

mod ending;
mod follow;
mod tunnel;
pub mod rule;
pub mod trace;
pub mod premise;
pub mod messages;

/// A packet at its beginning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet {
    /// The node that it is on.
    pub from: At,
    /// The source address.
    pub source: IpAddr,
    /// Who it is meant for.
    pub to: Goal,
    /// The destination address.
    pub destination: IpAddr,
    /// Whether the tunnel is open already, as it is for an answer.
    pub session: Session,
}

/// Who a packet is meant for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Goal {
    /// A node, or a pod on it.
    Node(At),
    /// What a cluster has as a whole, behind any node of it.
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

/// An endpoint of a kind of address that the node which dials it does not show.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Unseen {
    /// The node.
    pub at: At,
    /// The Peer with the endpoint.
    pub peer: PeerId,
    /// The kind.
    pub family: Family,
}

/// The path of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Way {
    /// What happened to it, in order.
    pub steps: Vec<Step>,
    /// How it ended.
    pub ending: Ending,
}

/// A step on the path of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Its node hands it to the leader of its location.
    Handed {
        /// The leader.
        to: At,
    },
    /// WireGuard picks the Peer with the longest prefix.
    Selected {
        /// Where.
        by: At,
        /// The prefix.
        range: Cidr,
        /// The Peer.
        peer: PeerId,
        /// Where the manifest has the range.
        place: Option<Place>,
        /// Who has its key.
        receiver: At,
    },
    /// A tunnel is there or is opened.
    Dialled {
        /// Who called.
        by: At,
        /// Where; none where the tunnel was open.
        endpoint: Option<Endpoint>,
        /// What must be so for it, although no snapshot shows it.
        assumes: Vec<Unseen>,
    },
    /// The receiver compares the source with the ranges of the sender.
    Accepted {
        /// Where.
        by: At,
        /// The prefix.
        range: Cidr,
        /// Where the manifest has it.
        place: Option<Place>,
    },
    /// The label exists.
    Arrived {
        /// The end of the tunnel.
        at: At,
    },
}

impl Packet {
    /// Returns the answer to a packet that got to `receiver`.
    #[must_use]
    pub fn answer(&self, receiver: At) -> Self {
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
    pub fn arrival(&self) -> Option<At> {
        self.steps.iter().find_map(|step| match step {
            Step::Arrived { at } => Some(*at),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
