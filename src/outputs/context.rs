//! The context: the values that a template of a user can write.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Number, json};

use crate::schema;

mod facts;
mod values;

pub use values::Values;

/// The values of a template. Every name that a template uses must be one of these.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "TemplateContext", example = example())]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The version of these values.
    api_version: ApiVersion,
    /// The kind of this document.
    kind: Kind,
    /// The cluster that this result is for: only with `per: Target`, or `--target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    /// The mesh that this result is for: only with `per: Mesh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mesh: Option<Mesh>,
    /// Every cluster as one that gets Peers, by name.
    targets: Vec<Target>,
    /// Every mesh, in the order of the files.
    meshes: Vec<Mesh>,
    /// Every cluster as one whose ranges others reach, by name.
    clusters: Vec<Cluster>,
}

/// The only version.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
enum ApiVersion {
    /// The first.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
enum Kind {
    /// Values of templates.
    TemplateContext,
}

/// A cluster, and what it gets.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    /// The cluster's name.
    name: String,
    /// The folder of its manifests, relative to the config's folder: `rendered/west`.
    path: String,
    /// How many Peers it gets.
    peers: usize,
    /// The files of Peers in that folder.
    files: Vec<String>,
    /// The clusters that its Peers lead to, by mesh and name.
    sources: Vec<Source>,
    /// How many minutes should lie between two reconciles of Flux, so that one takes a third of that
    /// at most: two requests for each Peer, 50 a second; 10 or more.
    reconcile_minutes: usize,
    /// What `clustermesh capacity` computes, by quantity: `peers`, `rules`, `applySeconds` and others.
    capacity: BTreeMap<String, Number>,
}

/// A cluster that a target reaches.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    /// The mesh that links the two clusters.
    mesh: String,
    /// The cluster.
    cluster: String,
    /// The file of its Peers in the folder of the target.
    file: String,
    /// A tunnel end for each Peer, by name.
    segments: Vec<Segment>,
}

/// A tunnel end, and what is behind it.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    /// The name of the Peer.
    name: String,
    /// The node that speaks WireGuard.
    node: String,
    /// The location, empty without one.
    location: String,
    /// Address and port at which it is dialled; null behind NAT.
    endpoint: Option<String>,
    /// Its WireGuard public key.
    public_key: String,
    /// The seconds between keepalives; null without them.
    persistent_keepalive: Option<u16>,
    /// What is routed to it.
    #[serde(rename = "allowedIPs")]
    allowed_ips: Vec<String>,
}

/// Clusters that are joined.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mesh {
    /// The mesh's name.
    name: String,
    /// The names of its clusters, in the order of the file.
    clusters: Vec<String>,
}

/// A cluster, and what it declares and has.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
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
    /// How Kilo cuts it into segments: `Location`, `Full` or `Cross`.
    granularity: String,
    /// How many of its nodes are usable.
    usable_nodes: usize,
    /// How many segments can be given to others.
    segments: usize,
    /// Its nodes, by name.
    nodes: Vec<Node>,
}

/// A node of a snapshot. Its values are what the node claims.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    /// The node's name.
    name: String,
    /// Its location, empty without one.
    location: String,
    /// Whether it passes every check, so that its ranges are given to others.
    usable: bool,
    /// Its pod CIDRs, as Kubernetes has them.
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
    /// The address in the nodes' network that Kilo uses; null without one.
    #[serde(rename = "internalIP")]
    internal_ip: Option<String>,
    /// Its address in Kilo's subnet; null for nodes that do not lead.
    #[serde(rename = "wireguardIP")]
    wireguard_ip: Option<String>,
    /// Its labels, as the snapshot has them.
    labels: BTreeMap<String, String>,
}

/// Returns the JSON Schema of the values that a template can write.
pub fn schema() -> Schema {
    schema::of_output::<Context>()
}

/// Values of everything.
fn example() -> serde_json::Value {
    let target = json!({
        "name": "west",
        "path": "rendered/west",
        "peers": 1,
        "files": ["prod--east.yaml"],
        "sources": [{
            "mesh": "prod",
            "cluster": "east",
            "file": "prod--east.yaml",
            "segments": [{
                "name": "prod--east--n1",
                "node": "n1",
                "location": "rack-1",
                "endpoint": "198.51.100.7:51820",
                "publicKey": "CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws=",
                "persistentKeepalive": 25,
                "allowedIPs": ["10.1.1.0/24", "10.101.0.1/32"],
            }],
        }],
        "reconcileMinutes": 10,
        "capacity": { "peers": 1, "rules": 12, "applySeconds": 0.001 },
    });
    json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "TemplateContext",
        "target": target,
        "mesh": { "name": "prod", "clusters": ["east", "west"] },
        "targets": [target],
        "meshes": [{ "name": "prod", "clusters": ["east", "west"] }],
        "clusters": [{
            "name": "east",
            "meshes": ["prod"],
            "allowedNetworks": [],
            "podCIDRs": ["10.1.0.0/16"],
            "wireguardCIDR": "10.101.0.0/24",
            "serviceCIDR": "10.201.0.0/16",
            "additionalCIDRs": ["192.168.1.0/24"],
            "granularity": "full",
            "usableNodes": 1,
            "segments": 1,
            "nodes": [{
                "name": "n1",
                "location": "rack-1",
                "usable": true,
                "podCIDRs": ["10.1.1.0/24"],
                "internalIP": "192.168.1.1",
                "wireguardIP": "10.101.0.1",
                "labels": { "kubernetes.io/hostname": "n1" },
            }],
        }],
    })
}
