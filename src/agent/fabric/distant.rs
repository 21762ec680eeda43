//! Distant ranges: those of a cluster as a whole that are on the LAN of one node.

use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::kilo::stand::{RangeStanding, Stand, Stands};
use crate::mesh::Networks;
use crate::net::prefixes::Prefixes;

/// Returns the ranges of a cluster as a whole that are on the LAN of one of the nodes that take
/// part.
pub(super) fn distant(cluster: &Cluster) -> Prefixes<NodeId> {
    let usable = cluster.nodes.numbered().filter(|(id, it)| {
        cluster.topology.nodes[*id].segment.is_some()
            && it.checked.is_sound()
            && it.checked.pods.is_ok()
            && cluster.entry.selector.matches(&it.node.labels)
    });
    let services = match &cluster.entry.networks {
        Networks::Typed { services, .. } => services.as_ref().map(|it| it.cidr),
        Networks::Flat { .. } => None,
    };
    let mut ranges = cluster
        .shared
        .iter()
        .filter(|it| Some(**it) != services)
        .peekable();
    if ranges.peek().is_none() {
        return Prefixes::new(&[]);
    }
    let stands: Vec<(NodeId, Stand)> = usable.map(|(id, it)| (id, Stand::from_node(it))).collect();
    let stands: Stands = stands.iter().map(|(id, it)| (*id, it)).collect();
    let distant = ranges.filter_map(|range| match stands.standing(*range) {
        RangeStanding::One(node) => Some((*range, node)),
        RangeStanding::Several(_) | RangeStanding::Nobody => None,
    });
    Prefixes::new(&distant.collect::<Vec<_>>())
}
