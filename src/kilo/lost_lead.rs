//! Lost leads: marks leaders that fell silent or stopped, and that Kilo has replaced.

use super::id::{NodeId, Nodes};
use super::node::KiloNode;
use super::segment::{elected, segments};
use crate::granularity::Granularity;
use crate::snapshot::Snapshot;
use crate::snapshot::listing::Heartbeats;

/// A node that has lost the lead of its location.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LostLead {
    /// Its name, as it claims.
    pub node: String,
    /// The time since its last heartbeat in seconds; none if its agent removed it.
    pub seconds: Option<i64>,
    /// The node that leads now, as it claims.
    pub leader: String,
}

/// The number of seconds without a heartbeat after which a leader was replaced for certain. Kilo waits 60 (`kilo.md`
/// §3.3), and the agents look every 30.
const REPLACED_AFTER: i64 = 90;

/// Marks the nodes of a live cluster that lost the lead of their location, and returns them in order.
///
/// Only a leader has a WireGuard address. Of several nodes with one, those are marked whose agents are away, if one is
/// left, its agent is there, and Kilo elects it among the nodes that are not marked. The clock of this machine counts only
/// if most of the other nodes agree with it.
pub fn mark_lost_leads(
    snapshot: &mut Snapshot,
    heartbeats: &Heartbeats,
    topology_label: &str,
) -> Vec<LostLead> {
    let kilos: Vec<KiloNode> =
        snapshot.nodes.iter().map(|it| KiloNode::read(it, topology_label)).collect();
    let nodes = Nodes::new(kilos.iter().collect());
    let locations = Locations { nodes: &nodes, heartbeats };
    let cut = segments(&nodes, Granularity::Location);
    let replaced: Vec<(Vec<NodeId>, NodeId)> =
        cut.formed.iter().filter_map(|it| locations.replaced(&it.members)).collect();
    let former = replaced.iter().flat_map(|it| &it.0).map(|it| nodes[*it].name.as_str());
    if !heartbeats.are_fresh_without(&former.collect()) {
        return Vec::new();
    }
    let mut lost = Vec::new();
    for (former, leader) in replaced {
        for node in former {
            let KiloNode { name, carried_over, .. } = nodes[node];
            let seconds = (!carried_over).then(|| heartbeats.lateness(name));
            lost.push(LostLead { node: name.clone(), seconds, leader: nodes[leader].name.clone() });
        }
    }
    lost.sort_by(|a, b| a.node.cmp(&b.node));
    for node in &mut snapshot.nodes {
        node.lost_lead = lost.binary_search_by(|it| it.node.cmp(&node.name)).is_ok();
    }
    lost
}

/// The locations of a live cluster.
struct Locations<'a> {
    nodes: &'a Nodes<&'a KiloNode>,
    heartbeats: &'a Heartbeats,
}

impl Locations<'_> {
    /// Returns the former leaders of a location and the one that has replaced them, if that is certain.
    fn replaced(&self, members: &[NodeId]) -> Option<(Vec<NodeId>, NodeId)> {
        let nodes = self.nodes;
        let location = Some(Granularity::Location);
        let agreeing = members.iter().filter(|it| nodes[**it].granularity == location).count();
        let holders = members.iter().copied().filter(|it| nodes[*it].has_wireguard_ip());
        let (former, mut live): (Vec<NodeId>, Vec<NodeId>) =
            holders.partition(|it| self.is_away(*it));
        live.retain(|it| nodes[*it].claims_lead());
        let [leader] = live[..] else { return None };
        let left: Vec<NodeId> = members.iter().copied().filter(|it| !former.contains(it)).collect();
        let is_certain = members.len() < 2 * agreeing
            && !former.is_empty()
            && self.heartbeats.is_fresh(&nodes[leader].name)
            && elected(nodes, &left) == Some(leader);
        is_certain.then_some((former, leader))
    }

    fn is_away(&self, node: NodeId) -> bool {
        let node = self.nodes[node];
        node.carried_over || REPLACED_AFTER < self.heartbeats.lateness(&node.name)
    }
}

#[cfg(test)]
mod tests;
