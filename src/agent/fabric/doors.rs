//! Doors: the addresses at which nodes are dialled.

use std::net::IpAddr;

use super::{At, Fabric};
use crate::wireguard::{Endpoint, Host};

impl Fabric<'_> {
    /// Returns whether a caller of `endpoint` can reach a node. An address that no node has may
    /// belong to a device in front of it, and so may a name.
    pub fn answers(&self, endpoint: &Endpoint, at: At) -> bool {
        let Host::Ip(address) = endpoint.host else {
            return true;
        };
        let Some(found) = self.index.doors.get(&address) else {
            return true;
        };
        let port = endpoint.port.get();
        let mut here = found.iter().filter(|it| it.0 == at);
        here.any(|it| it.1.is_none_or(|it| it == port))
    }

    /// Returns whether an endpoint is an address that no node shows. It may belong to a device in front of
    /// a node.
    pub fn is_stranger(&self, endpoint: &Endpoint) -> bool {
        let address = endpoint.address();
        address.is_some_and(|it| !self.has_door(it))
    }

    /// Returns whether any Peer or node is dialled at an address that no node shows.
    pub fn has_strangers(&self) -> bool {
        self.index.has_strangers
    }

    /// Returns whether any node is known to be dialled at an address.
    pub fn has_door(&self, address: IpAddr) -> bool {
        self.index.doors.contains_key(&address)
    }
}
