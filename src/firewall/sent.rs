//! Sent packets: to which endpoints of other clusters the nodes of a cluster send, and from which addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::Member;
use crate::kilo::node::KiloNode;
use crate::kilo::seen::SeenAddress;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::wireguard::Endpoint;

/// The endpoints of another cluster, or of an external peer, to which a cluster sends UDP.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SentTo {
    /// The other cluster; `external.NAME` for an external peer.
    pub cluster: String,
    /// Its endpoints.
    pub endpoints: Vec<SentEndpoint>,
}

/// An endpoint to which nodes send.
#[derive(Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SentEndpoint {
    /// The address or DNS name, and the UDP port.
    pub endpoint: String,
    /// The address, without a port; missing if the endpoint is a DNS name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The UDP port.
    pub port: u16,
}

/// A node that sends to the endpoints of other clusters. It leads a segment, or may lead one.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendingNode {
    /// The node; missing for an external peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The address from which other clusters see it; missing if no snapshot shows it, as behind NAT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A cluster that sends to an endpoint, with the addresses of its sending nodes.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendingCluster {
    /// The cluster; `external.NAME` for an external peer.
    pub cluster: String,
    /// The addresses from which the node at the endpoint sees the sending nodes, as far as they are known.
    pub addresses: BTreeSet<IpAddr>,
    /// The number of sending nodes whose address is not known.
    pub unknown: usize,
}

impl SentEndpoint {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: endpoint.to_string(),
            address: endpoint.address(),
            port: endpoint.port.get(),
        }
    }
}

/// Returns the nodes that apply all Peers of their cluster: in `Location` the leaders, else all.
fn senders<'m>(member: &'m Member) -> impl Iterator<Item = &'m KiloNode> {
    let topology = &member.cluster.topology;
    topology.all_possible_leaders().map(|it| &*topology.nodes[it].kilo)
}

/// Returns the nodes of a cluster that send to other clusters, by name.
pub(super) fn sending_nodes(member: &Member) -> Vec<SendingNode> {
    let is_external = member.entry.name.is_external();
    let mut nodes: Vec<SendingNode> = senders(member)
        .map(|kilo| SendingNode {
            node: (!is_external).then(|| kilo.name.clone()),
            address: SeenAddress::of(kilo).from_everywhere(),
        })
        .collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    nodes
}

/// Returns the nodes of a cluster as a node sees them that is connected to `lan`.
pub(super) fn seen_from(
    cluster: &ClusterName,
    member: &Member,
    lan: Option<Cidr>,
) -> SendingCluster {
    let seen = senders(member).map(|it| SeenAddress::of(it).from(lan));
    let seen: Vec<Option<IpAddr>> = seen.collect();
    SendingCluster {
        cluster: cluster.to_string(),
        unknown: seen.iter().filter(|it| it.is_none()).count(),
        addresses: seen.into_iter().flatten().collect(),
    }
}
