//! The context: the values that a template of a user can write, and the same as the template engine takes them, once
//! for all results.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use minijinja::value::Serde;
use minijinja::{Value, context};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::ResultSubject;
use crate::schema::{self, ExampleFile};
use crate::string_map::StringMap;

mod facts;

pub use facts::{Facts, FleetFacts};

/// The values of a template. Every name that a template uses must be one of these.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "TemplateContext", example = ExampleFile(include_str!("context/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The version of these values.
    api_version: ContextApiVersion,
    /// The kind of this document.
    kind: ContextKind,
    /// The target of this result; only with `per: Target` or `--target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<ContextTarget<ContextSource>>,
    /// The mesh of this result; only with `per: Mesh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mesh: Option<ContextMesh>,
    /// All clusters as targets, by name.
    targets: Vec<ContextTarget<ContextSource>>,
    /// All meshes, in the order of the files.
    meshes: Vec<ContextMesh>,
    /// All clusters as sources, by name.
    clusters: Vec<ContextCluster>,
}

/// The only version.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
#[schemars(rename = "ApiVersion")]
enum ContextApiVersion {
    /// The first version.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Kind")]
enum ContextKind {
    /// Values of templates.
    TemplateContext,
}

/// A cluster as a target.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Target")]
struct ContextTarget<S> {
    /// The cluster's name.
    name: String,
    /// The name of the object that delivers its Peers: `clustermesh-` and its name, shortened to 63 characters.
    delivery_name: String,
    /// The folder of its manifests, relative to the config's folder: `rendered/west`.
    path: String,
    /// The number of its Peers.
    peers: usize,
    /// The files of Peers in that folder.
    files: Vec<String>,
    /// The clusters that it reaches, by mesh and name.
    sources: Vec<S>,
    /// An interval for Flux in minutes, at least 10. A reconcile sends two requests for each Peer,
    /// 50 a second, and takes a third of the interval at most.
    reconcile_minutes: usize,
    /// The ports that must be open on its nodes.
    firewall: ContextFirewall,
    /// The results of `clustermesh capacity`, by quantity: `peers`, `rules`, `applySeconds` and others.
    capacity: BTreeMap<String, Number>,
}

/// The ports that must be open on the nodes of a cluster, as `clustermesh firewall` lists them.
#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NodePorts")]
struct ContextFirewall {
    /// The UDP endpoints at which other clusters dial its nodes.
    endpoints: Vec<String>,
    /// The UDP ports on which its nodes listen, for other clusters or for each other.
    listen_ports: BTreeSet<u16>,
    /// The addresses of nodes that send each other IPIP (IP protocol 4), if Kilo encapsulates packets.
    #[serde(rename = "encapsulatedIPs")]
    encapsulated_ips: BTreeSet<IpAddr>,
    /// The UDP endpoints to which its nodes send, in other clusters and in its own.
    destinations: BTreeSet<ContextDestination>,
    /// The addresses of nodes of other clusters that send to its endpoints, as far as they are known.
    known_sources: BTreeSet<IpAddr>,
    /// Whether a node whose address is not known sends to its endpoints, such as one behind NAT.
    has_unknown_sources: bool,
}

/// A UDP endpoint to which nodes send.
#[derive(Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Destination")]
struct ContextDestination {
    /// The address; null if the endpoint is a DNS name.
    address: Option<IpAddr>,
    /// The address or DNS name, and the port.
    endpoint: String,
    /// The port.
    port: u16,
}

/// A cluster that a target reaches.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Source")]
struct ContextSource {
    /// The mesh that links the two clusters.
    mesh: String,
    /// The cluster.
    cluster: String,
    /// The file of its Peers in the folder of the target.
    file: String,
    /// Its tunnel ends, one for each Peer, by name.
    segments: Vec<ContextSegment>,
}

/// A tunnel end, and the ranges behind it.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Segment")]
struct ContextSegment {
    /// The name of the Peer.
    name: String,
    /// The node that runs WireGuard.
    node: String,
    /// The location; empty without one.
    location: String,
    /// The address and port of the tunnel end; null behind NAT.
    endpoint: Option<String>,
    /// Its WireGuard public key.
    public_key: String,
    /// The seconds between keepalives; null without them.
    persistent_keepalive: Option<u16>,
    /// The ranges that are routed to it.
    #[serde(rename = "allowedIPs")]
    allowed_ips: Vec<String>,
}

/// A mesh.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Mesh")]
struct ContextMesh {
    /// The mesh's name.
    name: String,
    /// The names of its clusters, in the order of the file.
    clusters: Vec<String>,
}

/// A cluster as a source: its declared ranges and its nodes.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Cluster")]
struct ContextCluster {
    /// The cluster's name.
    name: String,
    /// The names of its meshes.
    meshes: Vec<String>,
    /// `allowedNetworks`; empty in the typed form.
    allowed_networks: Vec<String>,
    /// `podCIDRs`; empty in the flat form.
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
    /// `wireguardCIDR`; null in the flat form.
    #[serde(rename = "wireguardCIDR")]
    wireguard_cidr: Option<String>,
    /// `serviceCIDR`; null without one.
    #[serde(rename = "serviceCIDR")]
    service_cidr: Option<String>,
    /// `additionalCIDRs`; empty in the flat form.
    #[serde(rename = "additionalCIDRs")]
    additional_cidrs: Vec<String>,
    /// Kilo's `--mesh-granularity`: `Location`, `Full` or `Cross`.
    granularity: String,
    /// The number of its usable nodes.
    usable_nodes: usize,
    /// The number of its segments that other clusters can reach.
    segments: usize,
    /// Its nodes, by name.
    nodes: Vec<ContextNode>,
}

/// A node of a snapshot. Its values are claims of the node.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Node")]
struct ContextNode {
    /// The node's name.
    name: String,
    /// Its location; empty without one.
    location: String,
    /// Whether it passes all checks, so that other clusters can reach it.
    usable: bool,
    /// Its pod CIDRs.
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
    /// The node's address in its cluster's network that Kilo uses; null without one.
    #[serde(rename = "internalIP")]
    internal_ip: Option<String>,
    /// Its WireGuard address; null for nodes that do not lead a segment.
    #[serde(rename = "wireguardIP")]
    wireguard_ip: Option<String>,
    /// Its labels in the snapshot.
    #[schemars(with = "BTreeMap<String, String>")]
    labels: StringMap,
}

/// Returns the JSON Schema of the values that a template can write.
pub fn schema() -> Schema {
    schema::of_output::<Context>()
}

/// The values of all results of a run.
#[derive(Debug)]
pub struct Values {
    targets: BTreeMap<String, Value>,
    meshes: BTreeMap<String, Value>,
    /// The values that all results have.
    shared: Value,
}

impl Facts {
    /// Returns the values for templates.
    pub fn values(self) -> Values {
        let sources: Vec<Value> =
            self.sources.into_iter().map(|it| Value::from(Serde(it))).collect();
        let target = |it: ContextTarget<usize>| {
            let name = it.name.clone();
            (name, Value::from(Serde(it.with_sources(&sources))))
        };
        let targets: Vec<(String, Value)> = self.targets.into_iter().map(target).collect();
        let meshes = self.meshes.into_iter();
        let meshes: Vec<(String, Value)> =
            meshes.map(|it| (it.name.clone(), Value::from(Serde(it)))).collect();
        let all = |of: &[(String, Value)]| of.iter().map(|(_, it)| it.clone()).collect::<Value>();
        Values {
            shared: context! {
                apiVersion => Value::from(Serde(ContextApiVersion::V1)),
                kind => Value::from(Serde(ContextKind::TemplateContext)),
                targets => all(&targets),
                meshes => all(&meshes),
                clusters => Value::from(Serde(self.clusters)),
            },
            targets: targets.into_iter().collect(),
            meshes: meshes.into_iter().collect(),
        }
    }
}

impl ContextTarget<usize> {
    fn with_sources(self, sources: &[Value]) -> ContextTarget<Value> {
        let used = self.sources.iter().filter_map(|&it| sources.get(it).cloned());
        ContextTarget {
            sources: used.collect(),
            name: self.name,
            delivery_name: self.delivery_name,
            path: self.path,
            peers: self.peers,
            files: self.files,
            reconcile_minutes: self.reconcile_minutes,
            firewall: self.firewall,
            capacity: self.capacity,
        }
    }
}

impl Values {
    /// Returns the values of a template for a subject.
    pub fn of(&self, subject: &ResultSubject) -> Value {
        let (name, value) = match subject {
            ResultSubject::Target(target) => ("target", self.targets.get(target)),
            ResultSubject::Mesh(mesh) => ("mesh", self.meshes.get(mesh)),
            ResultSubject::Repository => ("", None),
        };
        let shared = self.shared.clone();
        match value {
            Some(value) => {
                let subject = Value::from_pairs([(name, value.clone())]);
                context! { ..subject, ..shared }
            }
            None => shared,
        }
    }
}
