//! Homes: what nodes have of their own, which nothing may take away where their cluster is a target.

use std::net::IpAddr;

use super::ExcludedReason;
use super::survey::NodeSurvey;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node_checks;
use crate::kilo::node_networks::NodeNetworks;
use crate::wireguard::Endpoint;

/// A node that passes the checks, selected or not: Kilo joins it to the others of its cluster either
/// way.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// The node's index in the snapshot.
    pub node: NodeId,
    /// The endpoints of the node, inside its own cluster and outside.
    pub endpoints: Vec<IpAddr>,
    /// Its networks.
    pub networks: NodeNetworks,
    /// Its internal addresses, at most one of a family.
    pub addresses: Vec<IpAddr>,
    /// Its location; empty for none.
    pub location: String,
}

impl NodeSurvey<'_> {
    /// Returns the local nodes of all segments, once the excluded nodes are known.
    pub(super) fn local_nodes(&self) -> Vec<LocalNode> {
        let is_usable = |index: NodeId, candidate: &ClusterNode| match self.excluded.get(&index) {
            None => true,
            Some(ExcludedReason::NotSelected) => {
                candidate.checked.is_sound() && candidate.checked.pods.is_ok()
            }
            Some(_) => false,
        };
        self.nodes
            .numbered()
            .filter(|(index, candidate)| is_usable(*index, candidate))
            .map(|(index, candidate)| home(index, candidate))
            .collect()
    }
}

fn home(node: NodeId, candidate: &ClusterNode) -> LocalNode {
    let ClusterNode { node: read, kilo, checked, .. } = candidate;
    let mut endpoints: Vec<IpAddr> = kilo.endpoint.iter().filter_map(Endpoint::address).collect();
    let dialled = checked.endpoint().and_then(Endpoint::address);
    endpoints.extend(dialled.filter(|it| !endpoints.contains(it)));
    LocalNode {
        node,
        endpoints,
        addresses: node_checks::internal_addresses(read, kilo),
        networks: NodeNetworks::from_node(candidate),
        location: kilo.location.clone(),
    }
}
