//! Seen addresses: from which address other clusters see the packets of a node that calls them.
//!
//! A node that others cannot dial is answered at this address, so no range may lead it into a tunnel
//! (`kilo.md` §2.6). Behind NAT it is that of the NAT and not the node's own: with real agents, nodes whose
//! own LAN was among the allowed IPs were seen at the address of their NAT and answered.

use std::net::IpAddr;

use super::node::KiloNode;
use crate::net::{Cidr, private_network};
use crate::wireguard::Endpoint;

/// The number of leaders with keepalives of which one publishes the address that the other has forgotten (`kilo.md` §2.9).
pub const PUBLISHING: usize = 2;

/// The address from which other clusters see a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SeenAddress {
    /// This one, from everywhere.
    Public(IpAddr),
    /// This one from its LAN; from elsewhere that of a NAT, which no snapshot shows.
    Private(IpAddr),
    /// Unknown, as Kilo has no endpoint for the node, or a name.
    Unknown,
}

impl SeenAddress {
    /// Returns that of a node, as far as the endpoint shows that Kilo uses for it.
    pub fn of(node: &KiloNode) -> Self {
        match node.endpoint.as_ref().and_then(Endpoint::address) {
            None => Self::Unknown,
            Some(address) if private_network(address).is_some() => Self::Private(address),
            Some(address) => Self::Public(address),
        }
    }

    /// Returns it as a node sees it that is connected to `lan`, if it is known.
    pub fn from(self, lan: Option<Cidr>) -> Option<IpAddr> {
        match self {
            Self::Public(address) => Some(address),
            Self::Private(address) => lan?.holds(address).then_some(address),
            Self::Unknown => None,
        }
    }

    /// Returns it as every other cluster sees it, if it is known.
    pub fn from_everywhere(self) -> Option<IpAddr> {
        self.from(None)
    }
}
