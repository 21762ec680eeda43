//! Snapshots after a loss: the nodes of a cluster after some are lost and the agents of the others have converged.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::harmless::are_tunnel_addresses_alone;
use super::obstacle::OutageObstacle;
use crate::agent::fabric::{Fabric, Site, SiteId};
use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::kilo::node::annotation;
use crate::kilo::topology::{KiloTopology, WireguardIp};
use crate::snapshot::Snapshot;

/// Returns the snapshot of a cluster once its Kilo ignores the lost nodes. They stay in it, as nodes that do not check
/// in: their keys and addresses are still in the Peers of other clusters.
pub(super) fn snapshot_after_loss(
    fabric: &Fabric,
    number: SiteId,
    lost: &BTreeSet<NodeId>,
) -> Result<Snapshot, OutageObstacle> {
    let site = fabric.site(number);
    let mut snapshot = site.snapshot.clone();
    let nodes = snapshot.nodes.iter_mut().zip(site.reading.nodes.ids());
    for (node, _) in nodes.filter(|it| lost.contains(&it.1)) {
        node.stale = true;
        node.annotations.remove(annotation::WIREGUARD_IP);
    }
    let addresses = {
        let left = Cluster::new(site.entry, &snapshot).topology;
        let before = &site.reading.topology;
        if left.granularity != before.granularity {
            return Err(OutageObstacle::Granularity);
        }
        if has_other_numbers(before, &left)
            && !is_numbering_known(before)
            && !are_tunnel_addresses_alone(fabric, number)
        {
            return Err(OutageObstacle::Numbering);
        }
        addresses(site, &left)
    };
    let nodes = snapshot.nodes.iter_mut().zip(site.reading.nodes.ids());
    let mut addresses = addresses.into_iter().peekable();
    for (node, id) in nodes {
        if let Some((_, address)) = addresses.next_if(|it| it.0 == id) {
            node.annotations.insert(annotation::WIREGUARD_IP, address);
        }
    }
    Ok(snapshot)
}

/// Returns whether a segment is gone, so that Kilo gives all later ones other numbers (`kilo.md` §4.4).
fn has_other_numbers(before: &KiloTopology, left: &KiloTopology) -> bool {
    before.segments.len() != left.segments.len()
}

/// Returns whether the WireGuard addresses of all segments follow from their order.
fn is_numbering_known(topology: &KiloTopology) -> bool {
    let mut segments = topology.segments.iter();
    let announces = |leader: NodeId| topology.nodes[leader].kilo.wireguard_ip().is_some();
    segments.all(|it| {
        matches!(it.wireguard_ip, WireguardIp::Certain(_))
            && (topology.subnet.is_some() || !announces(it.leader.node()))
    })
}

/// Returns the annotations with the WireGuard addresses of all leaders, as their agents write them, in the order of
/// nodes.
fn addresses(site: &Site, left: &KiloTopology) -> Vec<(NodeId, String)> {
    let before = &site.reading.topology;
    let Some(subnet) = before.subnet.filter(|_| is_numbering_known(before)) else {
        return Vec::new();
    };
    let length = subnet.prefix_length();
    let numbered = left.segments.iter().zip(1u128..);
    let mut addresses: Vec<(NodeId, String)> = numbered
        .filter_map(|(segment, offset)| {
            let address: IpAddr = subnet.address(offset)?;
            Some((segment.leader.node(), format!("{address}/{length}")))
        })
        .collect();
    addresses.sort_unstable_by_key(|it| it.0);
    addresses
}
