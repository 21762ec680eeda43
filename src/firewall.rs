//! Firewalls: the ports of each cluster that must be open, and to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::{Fleet, Member};
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::name::{ClusterName, NodeName};
use crate::plan::{PeerSet, Plan};
use crate::schema::ExampleFile;
use crate::snapshot::plugin::NetworkPlugin;
use crate::wireguard::{Endpoint, PublicKey};

/// The ports that must be open.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Firewall", example = ExampleFile(include_str!("firewall/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct Firewall<'a> {
    /// The clusters, and the external peers that are dialled, by name.
    pub clusters: Vec<ClusterPorts<'a>>,
}

/// The open ports of a cluster, or of an external peer.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPorts<'a> {
    /// The cluster; `external.NAME` for an external peer.
    pub cluster: String,
    /// The UDP endpoints at which others dial it.
    pub endpoints: Vec<OpenEndpoint<'a>>,
    /// The nodes whose UDP port the other nodes of the cluster dial: the leaders of its segments, if there are
    /// several. Kilo's own endpoints may differ from those for other clusters.
    pub inside: Vec<InsidePort>,
    /// The nodes of each location that has several, which send encapsulated packets to each other.
    pub encapsulated: Vec<Vec<LocationNode>>,
    /// The protocol of these packets.
    pub encapsulation: Encapsulation,
}

/// The protocol of packets between nodes of one location.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Encapsulation {
    /// IP protocol 4, Kilo's default.
    #[serde(rename = "IPIP")]
    Ipip,
    /// UDP 8472, if most nodes show Cilium.
    #[serde(rename = "VXLAN")]
    Vxlan,
}

impl Encapsulation {
    fn of(cluster: &Cluster) -> Self {
        let show_cilium = cluster.nodes.iter().filter(|it| {
            it.node.plugin.as_ref().is_some_and(|it| it.name == NetworkPlugin::Cilium)
        });
        if cluster.nodes.len() < 2 * show_cilium.count() { Self::Vxlan } else { Self::Ipip }
    }
}

impl std::fmt::Display for Encapsulation {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Self::Ipip => "IPIP (protocol 4)",
            Self::Vxlan => "VXLAN (UDP 8472)",
        })
    }
}

/// An endpoint at which a node is dialled from outside of its cluster.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenEndpoint<'a> {
    /// The address or DNS name, and the UDP port.
    pub endpoint: String,
    /// The address, without a port; missing if the endpoint is a DNS name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The UDP port of the endpoint.
    pub port: u16,
    /// The node; missing for an external peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The UDP port on which WireGuard listens on the node. If it is not that of the endpoint, something in between
    /// must forward the packets.
    pub listen_port: u16,
    /// The address to which something in between must forward the packets; missing if the node itself has the address
    /// of the endpoint, if the endpoint is a DNS name, or if the node shows no address in the network of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<IpAddr>,
    /// The clusters and external peers that dial it.
    #[schemars(with = "BTreeSet<String>")]
    pub dialled_by: BTreeSet<&'a ClusterName>,
    /// The ranges from which they may send: any, because a node does not send from the endpoint at which it is dialled.
    pub sources: Vec<&'static str>,
}

/// A node that the other nodes of its cluster dial.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InsidePort {
    /// The node.
    pub node: String,
    /// The endpoint at which Kilo dials it.
    pub endpoint: String,
    /// The UDP port on which WireGuard listens.
    pub listen_port: u16,
}

/// A node of a location that has several.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationNode {
    /// The node.
    pub node: String,
    /// Its address in the network of the nodes, from and to which it sends; missing if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// The endpoints of a cluster, by node and text.
type Endpoints<'a> = BTreeMap<(Option<String>, String), OpenEndpoint<'a>>;

impl<'a> Firewall<'a> {
    /// Returns the ports of one cluster or external peer, or of all of them.
    pub fn new(fleet: &Fleet, plan: &'a Plan, only: Option<&ClusterName>) -> Self {
        let mut dialling: BTreeMap<usize, BTreeSet<&'a ClusterName>> = BTreeMap::new();
        for target in plan.targets.iter().chain(&plan.externals) {
            for &set in &target.peer_sets {
                dialling.entry(set).or_default().insert(&target.cluster);
            }
        }
        let mut sets: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (set, by) in dialling {
            if let Some(set) = plan.peer_sets.get(set) {
                let member = (&set.mesh, &set.source);
                sets.entry(member).or_default().push((set, by));
            }
        }
        let mut clusters: BTreeMap<&ClusterName, (ClusterPorts<'a>, Endpoints<'a>)> =
            BTreeMap::new();
        let members = fleet.members().iter();
        for member in members.filter(|it| only.is_none_or(|only| *only == it.entry.name)) {
            let name = &member.entry.name;
            let cluster = clusters.entry(name);
            let (_, endpoints) = cluster.or_insert_with(|| (inside(member), Endpoints::new()));
            let sets = sets.get(&(&member.mesh.name, name)).into_iter().flatten();
            for (set, by) in sets {
                dialled(member, set, by, endpoints);
            }
        }
        let clusters = clusters.into_values().map(|(ports, endpoints)| ClusterPorts {
            endpoints: endpoints.into_values().collect(),
            ..ports
        });
        Self { clusters: clusters.filter(|it| !it.is_empty()).collect() }
    }
}

impl ClusterPorts<'_> {
    /// Returns the UDP ports on which its nodes must be reachable.
    pub fn listen_ports(&self) -> BTreeSet<u16> {
        let endpoints = self.endpoints.iter().map(|it| it.listen_port);
        endpoints.chain(self.inside.iter().map(|it| it.listen_port)).collect()
    }

    fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.inside.is_empty() && self.encapsulated.is_empty()
    }
}

/// Adds the endpoints of a set of Peers of a member, and who dials them.
fn dialled<'a>(
    member: &Member,
    set: &PeerSet,
    by: &BTreeSet<&'a ClusterName>,
    endpoints: &mut Endpoints<'a>,
) {
    let candidates = member.membership.candidates.iter();
    let leaders: BTreeMap<PublicKey, &NodeName> =
        candidates.map(|it| (it.key, &it.leader)).collect();
    let is_external = member.entry.name.is_external();
    for peer in &set.peers {
        let Some(endpoint) = peer.endpoint.as_ref().filter(|it| !it.is_placeholder()) else {
            continue;
        };
        let leader = leaders.get(&peer.key).filter(|_| !is_external);
        let node = leader.and_then(|it| member.cluster.node(it.as_str()));
        let listening = node.and_then(|it| it.kilo.endpoint.as_ref());
        let elsewhere = node.zip(endpoint.address()).filter(|(node, at)| !node.has_address(*at));
        let forward_to = elsewhere.and_then(|(node, _)| node.internal_addresses().next());
        let node = node.map(|it| it.node.name.clone());
        let key = (node.clone(), endpoint.to_string());
        let open = endpoints.entry(key).or_insert_with(|| OpenEndpoint {
            endpoint: endpoint.to_string(),
            address: endpoint.address().map(|it| it.to_string()),
            port: endpoint.port.get(),
            node,
            listen_port: listening.unwrap_or(endpoint).port.get(),
            forward_to,
            dialled_by: BTreeSet::new(),
            sources: anyone(endpoint),
        });
        open.dialled_by.extend(by);
    }
}

/// Returns all addresses of the family of an endpoint.
fn anyone(endpoint: &Endpoint) -> Vec<&'static str> {
    match endpoint.address() {
        Some(address) if address.is_ipv4() => vec!["0.0.0.0/0"],
        Some(_) => vec!["::/0"],
        None => vec!["0.0.0.0/0", "::/0"],
    }
}

/// Returns the ports for the nodes of the cluster itself.
fn inside<'a>(member: &Member) -> ClusterPorts<'a> {
    let cluster = &member.cluster;
    let mut ports = ClusterPorts {
        cluster: member.entry.name.to_string(),
        endpoints: Vec::new(),
        inside: Vec::new(),
        encapsulated: locations(cluster),
        encapsulation: Encapsulation::of(cluster),
    };
    let topology = &cluster.topology;
    if topology.segments.iter().count() < 2 {
        return ports;
    }
    for leader in topology.all_possible_leaders() {
        let kilo = &topology.nodes[leader].kilo;
        if let Some(endpoint) = &kilo.endpoint {
            ports.inside.push(InsidePort {
                node: kilo.name.clone(),
                endpoint: endpoint.to_string(),
                listen_port: endpoint.port.get(),
            });
        }
    }
    ports.inside.sort_by(|a, b| a.node.cmp(&b.node));
    ports
}

/// Returns the nodes that are in one location, for each location with several.
fn locations(cluster: &Cluster) -> Vec<Vec<LocationNode>> {
    let topology = &cluster.topology;
    let mut groups: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for segment in &topology.segments {
        let key = match topology.granularity {
            // In `Cross`, every node is a segment, and there are tunnels only between locations.
            Granularity::Cross => {
                segment.members.first().map_or("", |&it| &topology.nodes[it].kilo.location)
            }
            Granularity::Location | Granularity::Full => &segment.key,
        };
        groups.entry(key).or_default().extend(&segment.members);
    }
    let several = groups.into_values().filter(|it| 1 < it.len());
    let located = |group: Vec<NodeId>| {
        let kilos = group.into_iter().map(|it| &topology.nodes[it].kilo);
        let mut nodes: Vec<LocationNode> = kilos
            .map(|it| LocationNode { node: it.name.clone(), address: it.internal_address() })
            .collect();
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        nodes
    };
    several.map(located).collect()
}
