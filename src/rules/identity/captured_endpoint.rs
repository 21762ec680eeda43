//! Captured endpoints: internal addresses of nodes at which nodes of other clusters are dialled.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::CAPTURED_ENDPOINT;
use super::shared_internal_ip::place;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::rules::command::{annotate, blank};
use crate::rules::{Finding, bare};
use crate::wireguard::Endpoint;

/// The internal addresses that the nodes of a cluster route into its tunnels.
struct RoutedAddresses<'f> {
    /// The cluster.
    member: &'f Member<'f>,
    /// The nodes, by address.
    nodes: BTreeMap<IpAddr, &'f ClusterNode<'f>>,
}

/// Returns findings about internal addresses of nodes at which Peers of their cluster are dialled.
///
/// Kilo routes the internal address of a node to its segment on the leaders of all others, unless it is where
/// they dial the segment itself (`kilo.md` §2.6).
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    let mut findings = Vec::new();
    let candidates = fleet.members().iter().flat_map(|it| it.membership.candidates.iter());
    let dialled: BTreeSet<IpAddr> = candidates.filter_map(PeerCandidate::outer_address).collect();
    let taken = fleet.first_memberships().map(RoutedAddresses::new);
    // In most fleets no node has such an address, and no pair of clusters has to be looked at.
    for taken in taken.filter(|it| it.nodes.keys().any(|it| dialled.contains(it))) {
        for source in fleet.sources(&taken.member.entry.name).map(|it| it.member) {
            let candidates = source.membership.candidates.iter();
            findings.extend(candidates.filter_map(|it| taken.finding(source, it)));
        }
    }
    findings
}

impl<'f> RoutedAddresses<'f> {
    fn new(member: &'f Member<'f>) -> Self {
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
        Self { member, nodes: nodes.collect() }
    }

    /// Reports a Peer of another cluster that is dialled at one of the addresses.
    fn finding(&self, source: &Member, candidate: &PeerCandidate) -> Option<Finding> {
        let address = candidate.outer_address()?;
        let node = self.nodes.get(&address)?.node;
        let cluster = &self.member.entry.name;
        let whose = format!("{}/{}", source.entry.name, bare(candidate.leader.as_str()));
        let message = format!(
            "internal address {address} is the endpoint of {whose}: Kilo on the other nodes of {cluster} \
             routes packets for {whose} to this node"
        );
        let finding = Finding::on_node(&CAPTURED_ENDPOINT, cluster, &node.name, message)
            .at(place(self.member, node), "")
            .at(source.endpoint_place(candidate), format!("of {whose}"))
            .resolved_by(&blank(annotation::FORCE_INTERNAL_IP), cluster, [&*node.name])
            .help(format!(
                "if {address} belongs to this node, correct the endpoint of {whose}; otherwise annotate this node \
                 with its own address: `{}`",
                annotate(node, format!("{}=ADDRESS/LENGTH", annotation::FORCE_INTERNAL_IP))
            ));
        Some(finding)
    }
}
