//! Diversions: what a Peer takes that the leader of a location hands to its other nodes.

use super::Site;
use crate::agent::model::{Model, TunnelClaim};
use crate::kilo::id::NodeId;
use crate::net::prefixes::SlotId;

/// A range of a Peer that takes packets away from the LAN of a location.
#[derive(Clone, Copy, Debug)]
pub struct Diversion {
    /// The place of the range in [`Model::tunnels`].
    pub slot: SlotId,
    /// The Peer.
    pub claim: TunnelClaim,
}

impl Site<'_> {
    /// Returns what diverts the packets that a leader sends to the internal address of another node of its
    /// segment.
    ///
    /// No route of Kilo's leads to that address: it is reached by the route of the LAN, which a Peer with the
    /// same range replaces and one with a narrower range overrides (`kilo.md` §2.5).
    pub fn diverted(&self, leader: NodeId, to: NodeId) -> Option<Diversion> {
        diverted(&self.model, leader, to)
    }
}

/// Returns whether anything is diverted in a cluster.
pub(super) fn has_diversions(model: &Model) -> bool {
    model.topology.segments.iter().any(|segment| {
        let leader = segment.leader.node();
        segment.members.iter().any(|it| diverted(model, leader, *it).is_some())
    })
}

fn diverted(model: &Model, leader: NodeId, to: NodeId) -> Option<Diversion> {
    if leader == to {
        return None;
    }
    let nodes = &model.topology.nodes;
    let address = nodes[to].kilo.internal_address()?;
    let lan = nodes[leader].kilo.lan.filter(|it| it.holds(address));
    let mut taking = model.tunnels.holding(address).filter_map(|slot| {
        let mut claims = model.tunnels.at(slot).1.iter();
        let claim = *claims.find(|it| it.peer().is_some())?;
        Some(Diversion { slot, claim })
    });
    taking.next().filter(|it| {
        let (range, _) = model.tunnels.at(it.slot);
        lan.is_none_or(|lan| lan.prefix_length() <= range.prefix_length())
    })
}
