//! Captured endpoints: internal addresses of nodes at which nodes of other clusters are dialled.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::membership::PeerCandidate;
use crate::wireguard::Endpoint;

/// A node whose internal address is where a node of another cluster is dialled.
pub(super) struct CapturedEndpoint<'f> {
    /// The cluster of the node.
    pub(super) member: &'f Member<'f>,
    /// The node.
    pub(super) node: &'f ClusterNode<'f>,
    /// The address.
    pub(super) address: IpAddr,
    /// The cluster of the node that is dialled there.
    pub(super) source: &'f Member<'f>,
    /// The Peer of that node.
    pub(super) candidate: &'f PeerCandidate,
}

/// Finds the internal addresses of nodes at which Peers of their cluster are dialled.
///
/// Kilo routes the internal address of a node to its segment on the leaders of all others, unless it is where
/// they dial the segment itself (`kilo.md` §2.6).
pub(super) fn captured<'f>(fleet: &'f Fleet<'f>) -> Vec<CapturedEndpoint<'f>> {
    let mut captured = Vec::new();
    for cluster in fleet.clusters() {
        let Some(member) = fleet.memberships(cluster).next() else {
            continue;
        };
        let taken = taken(member);
        if taken.is_empty() {
            continue;
        }
        for source in fleet.sources(cluster).map(|it| it.member) {
            let candidates = source.membership.candidates.iter();
            captured.extend(candidates.filter_map(|candidate| {
                let address = candidate.outer_address()?;
                Some(CapturedEndpoint {
                    member,
                    node: taken.get(&address)?,
                    address,
                    source,
                    candidate,
                })
            }));
        }
    }
    captured
}

/// Returns the internal addresses that the nodes of a cluster route into its tunnels, each with its node.
fn taken<'f>(member: &'f Member<'f>) -> BTreeMap<IpAddr, &'f ClusterNode<'f>> {
    let cluster = &member.cluster;
    let topology = &cluster.topology;
    let nodes = cluster.nodes.numbered().filter_map(|(id, node)| {
        let address = node.kilo.internal_address()?;
        let segment = topology.nodes[id].segment?;
        let endpoint = topology.leader(segment).endpoint();
        let is_dialled = endpoint.and_then(Endpoint::address) == Some(address);
        let mut segments = topology.segments.ids();
        let is_routed = segments.any(|it| !topology.are_one(segment, it));
        (is_routed && !is_dialled).then_some((address, node))
    });
    nodes.collect()
}
