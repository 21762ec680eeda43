//! Masking: the address of a node with which packets of its pods may arrive in other clusters.
//!
//! A network plugin that masquerades what leaves the cluster replaces the source by the address of the interface: on a
//! leader that of `kilo0`, its WireGuard address; on another node of a location that of the node.

use std::net::IpAddr;

use super::{Fabric, NodeRef, Site, SiteId};
use crate::agent::model::Tunnel;
use crate::kilo::id::NodeId;
use crate::kilo::topology::Leader;
use crate::net::{Family, family};

impl Site<'_> {
    /// Returns the addresses of a node with which packets of its pods may arrive, the one to be expected first.
    pub fn masks(&self, node: NodeId, of: Family) -> impl Iterator<Item = IpAddr> + use<> {
        let tunnel = self.led(node).and_then(|it| self.tunnel_address(it));
        let internal = self.node(node).kilo.internal_address();
        tunnel.into_iter().chain(internal).filter(move |it| family(*it) == of)
    }
}

impl Fabric<'_> {
    /// Returns whether every node of `viewer` takes packets of a node's pods that arrive with this address, and has a
    /// way back to it, given that it does so for the addresses of the pods; none if packets have to be followed.
    pub fn takes_masked(&self, at: NodeRef, viewer: SiteId, address: IpAddr) -> Option<bool> {
        let (home, away) = (self.site(at.site), self.site(viewer));
        let segment = home.segment(at.node)?;
        let Leader::Certain(leader) = home.leader(segment) else {
            return None;
        };
        let mut around = away.model.tunnels.holding(address);
        let Some(slot) = around.next() else {
            return Some(false);
        };
        let [claim] = away.model.tunnels.at(slot).1 else {
            return None;
        };
        // The leader of a segment does not have that segment's range in WireGuard, so a wider one decides there.
        let is_wider_one_asked = claim.peer().is_none() && around.next().is_some();
        if !claim.is_certain || away.model.is_key_shared(claim.tunnel) || is_wider_one_asked {
            return None;
        }
        if away.model.key(claim.tunnel) != home.node(leader).kilo.key {
            return Some(false);
        }
        let is_own = || {
            let mut around = home.model.tunnels.holding(address);
            let claims = around.next().map(|it| home.model.tunnels.at(it).1);
            claims.is_some_and(|it| it.iter().all(|it| it.tunnel == Tunnel::Segment(segment)))
        };
        let is_apart =
            away.owner(address).is_none() && away.connections().holding(address).next().is_none();
        (is_apart && (leader == at.node || is_own())).then_some(true)
    }
}
