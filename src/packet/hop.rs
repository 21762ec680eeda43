//! Hops: what becomes of a packet between a leader and another node of its location.

use super::{Doubt, Ending, Goal, Packet};
use crate::agent::fabric::{HopFault, NodeRef, Site};
use crate::agent::model::{Tunnel, TunnelClaim};

/// Looks whether a packet gets from a node to its leader.
pub(super) fn reaches(site: &Site, from: NodeRef, leader: NodeRef) -> Result<(), Ending> {
    site.hop_fault(from.node, leader.node)
        .map_or(Ok(()), |it| Err(ending(site, [from, leader], it)))
}

/// Looks whether the leader of a location hands a packet to the node that it is meant for.
pub(super) fn hands(site: &Site, leader: NodeRef, packet: &Packet) -> Result<(), Ending> {
    let Goal::Node(to) = packet.to else {
        return Ok(());
    };
    site.delivery_fault(leader.node, to.node, packet.destination)
        .map_or(Ok(()), |it| Err(ending(site, [leader, to], it)))
}

fn ending(site: &Site, [at, to]: [NodeRef; 2], fault: HopFault) -> Ending {
    let ambiguous = |range| {
        let nodes = site.sharing(to.node, range);
        Ending::Ambiguous { at, doubt: Doubt::Nodes { nodes, range } }
    };
    match (fault, site.segment(at.node)) {
        (HopFault::NoRoute, _) => Ending::NoHop { from: at, to },
        (HopFault::Shared(range), _) | (HopFault::Taken { range, .. }, None) => ambiguous(range),
        (HopFault::Taken { range, by }, Some(segment)) => {
            let tunnel = Tunnel::Segment(segment);
            let claim = TunnelClaim { tunnel, range: None, is_certain: true };
            let thief = Some(NodeRef { node: by, ..at });
            Ending::StolenBy { at, claim, range, thief }
        }
    }
}
