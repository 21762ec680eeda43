//! Firewalls: the ports of each cluster that must be open, and to whom, and the endpoints to which each cluster sends.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::{Fleet, Member};
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::kilo::id::NodeId;
use crate::name::{ClusterName, MeshName, NodeName};
use crate::plan::Plan;
use crate::schema::ExampleFile;
use crate::wireguard::{Endpoint, PublicKey};

mod sent;

pub use sent::{SendingCluster, SendingNode, SentEndpoint, SentTo};

/// The packets between clusters that firewalls must let through: the ports that must be open, and what each cluster sends.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Firewall", example = ExampleFile(include_str!("firewall/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct Firewall<'a> {
    /// The clusters, and the external peers that dial or are dialled, by name.
    pub clusters: Vec<ClusterPorts<'a>>,
}

/// The open ports of a cluster, or of an external peer, and the endpoints to which it sends.
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
    /// The endpoints of others to which its nodes send UDP, by cluster. A cluster behind NAT has only these, and the
    /// answers pass a firewall that keeps state.
    pub sends: Vec<SentTo>,
    /// The nodes that send: each of them to all endpoints.
    pub senders: Vec<SendingNode>,
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
    /// The same clusters, with the addresses of their sending nodes that their snapshots show. A NAT gateway between the
    /// clusters may send from another address.
    pub senders: Vec<SendingCluster>,
}

/// A node that the other nodes of its cluster dial.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InsidePort {
    /// The node.
    pub node: String,
    /// The endpoint at which Kilo dials it.
    #[serde(flatten)]
    pub endpoint: SentEndpoint,
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

/// The packets of one cluster, while they are collected.
struct Collected<'a> {
    ports: ClusterPorts<'a>,
    endpoints: Endpoints<'a>,
    sends: BTreeMap<String, BTreeSet<SentEndpoint>>,
}

impl<'a> Firewall<'a> {
    /// Returns the ports of one cluster or external peer, or of all of them.
    pub fn new(fleet: &Fleet, plan: &'a Plan, only: Option<&ClusterName>) -> Self {
        let sources: BTreeMap<(&MeshName, &ClusterName), DialledMember> = fleet
            .members()
            .iter()
            .map(|it| ((&it.mesh.name, &it.entry.name), DialledMember::new(it)))
            .collect();
        let members = fleet.members().iter();
        let mut clusters: BTreeMap<&ClusterName, Collected> = members
            .filter(|it| only.is_none_or(|only| *only == it.entry.name))
            .map(|it| (&it.entry.name, Collected::new(it)))
            .collect();
        for target in plan.targets.iter().chain(&plan.externals) {
            for set in plan.sets_of(target) {
                let pair = sources
                    .get(&(&set.mesh, &set.source))
                    .zip(sources.get(&(&set.mesh, &target.cluster)));
                let Some((source, sending)) = pair else { continue };
                let peers = set.peers.iter().filter_map(|it| Some((it.key, it.endpoint.as_ref()?)));
                for (key, endpoint) in peers.filter(|(_, it)| !it.is_placeholder()) {
                    if let Some(cluster) = clusters.get_mut(&target.cluster) {
                        let sent = cluster.sends.entry(set.source.to_string()).or_default();
                        sent.insert(SentEndpoint::of(endpoint));
                    }
                    if let Some(cluster) = clusters.get_mut(&set.source) {
                        let by = (&target.cluster, sending.member);
                        source.add(key, endpoint, by, &mut cluster.endpoints);
                    }
                }
            }
        }
        let clusters = clusters.into_values().map(Collected::finish);
        Self { clusters: clusters.filter(|it| !it.is_empty()).collect() }
    }
}

impl<'a> Collected<'a> {
    fn new(member: &Member) -> Self {
        Self { ports: inside(member), endpoints: Endpoints::new(), sends: BTreeMap::new() }
    }

    fn finish(self) -> ClusterPorts<'a> {
        let sends = self.sends.into_iter().map(|(cluster, endpoints)| SentTo {
            cluster,
            endpoints: endpoints.into_iter().collect(),
        });
        let sends: Vec<SentTo> = sends.collect();
        let endpoints = self.endpoints.into_values().map(|mut it| {
            it.senders.sort_by(|a, b| a.cluster.cmp(&b.cluster));
            it
        });
        let mut senders = self.ports.senders;
        senders.retain(|_| !sends.is_empty());
        ClusterPorts { endpoints: endpoints.collect(), sends, senders, ..self.ports }
    }
}

impl ClusterPorts<'_> {
    /// Returns the UDP ports on which its nodes must be reachable.
    pub fn listen_ports(&self) -> BTreeSet<u16> {
        let endpoints = self.endpoints.iter().map(|it| it.listen_port);
        endpoints.chain(self.inside.iter().map(|it| it.listen_port)).collect()
    }

    fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
            && self.inside.is_empty()
            && self.encapsulated.is_empty()
            && self.sends.is_empty()
    }
}

/// A member of a mesh that others dial.
struct DialledMember<'m> {
    member: &'m Member<'m>,
    leaders: BTreeMap<PublicKey, &'m NodeName>,
}

impl<'m> DialledMember<'m> {
    fn new(member: &'m Member<'m>) -> Self {
        let candidates = member.membership.candidates.iter();
        Self { member, leaders: candidates.map(|it| (it.key, &it.leader)).collect() }
    }

    /// Adds the endpoint of one of its Peers, and the cluster that dials it.
    fn add<'a>(
        &self,
        key: PublicKey,
        endpoint: &Endpoint,
        (by, sending): (&'a ClusterName, &Member),
        endpoints: &mut Endpoints<'a>,
    ) {
        let is_external = self.member.entry.name.is_external();
        let leader = self.leaders.get(&key).filter(|_| !is_external);
        let node = leader.and_then(|it| self.member.cluster.node(it.as_str()));
        let lan = node.and_then(|it| it.kilo.lan);
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
            senders: Vec::new(),
        });
        if open.dialled_by.insert(by) {
            open.senders.push(sent::seen_from(by, sending, lan));
        }
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
        encapsulation: if cluster.pod_network.has_vxlan {
            Encapsulation::Vxlan
        } else {
            Encapsulation::Ipip
        },
        sends: Vec::new(),
        senders: sent::sending_nodes(member),
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
                endpoint: SentEndpoint::of(endpoint),
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
        let mut nodes: Vec<LocationNode> = group
            .into_iter()
            .map(|it| &topology.nodes[it].kilo)
            .map(|it| LocationNode { node: it.name.clone(), address: it.internal_address() })
            .collect();
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        nodes
    };
    several.map(located).collect()
}
