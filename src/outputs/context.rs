//! The context: the values that a template of a user can write.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value, context};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Number, json};

use crate::config::Per;
use crate::config::capacity::Capacity;
use crate::fleet::{Fleet, Member};
use crate::manifest;
use crate::mesh::{Networks, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::plan::{Block, Plan};
use crate::proof::capacity::{Load, estimates};
use crate::schema;
use crate::wireguard::Endpoint;

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

/// The values of all results of a run.
#[derive(Debug)]
pub struct Values {
    targets: Vec<(String, Value)>,
    meshes: Vec<(String, Value)>,
    clusters: Value,
}

/// Returns the JSON Schema of the values that a template can write.
pub fn schema() -> Schema {
    schema::of_output::<Context>()
}

impl Context {
    /// Returns the context of a fleet and its plan, given the load of each target and the folder of
    /// the rendered tree relative to the config's.
    pub fn new(
        (fleet, plan): (&Fleet, &Plan),
        loads: &[Load],
        capacity: &Capacity,
        rendered: &str,
    ) -> Self {
        let targets = plan.targets.iter().zip(loads);
        let mut meshes: Vec<Mesh> = Vec::new();
        for member in fleet.members() {
            let name = member.mesh.name.to_string();
            if meshes.iter().all(|it| it.name != name) {
                let entries = member.mesh.entries.iter();
                let clusters = entries.map(|it| it.name.to_string()).collect();
                meshes.push(Mesh { name, clusters });
            }
        }
        Self {
            api_version: ApiVersion::V1,
            kind: Kind::TemplateContext,
            target: None,
            mesh: None,
            targets: targets
                .map(|(target, load)| {
                    let blocks = target.blocks.iter().filter_map(|&it| plan.blocks.get(it));
                    let sources: Vec<Source> = blocks.map(|it| source(fleet, it)).collect();
                    let peers = sources.iter().map(|it| it.segments.len()).sum();
                    Target {
                        name: target.cluster.to_string(),
                        path: format!("{}/{}", rendered.trim_end_matches('/'), target.cluster),
                        peers,
                        files: sources.iter().map(|it| it.file.clone()).collect(),
                        sources,
                        reconcile_minutes: reconcile_minutes(peers),
                        capacity: figures(load, capacity),
                    }
                })
                .collect(),
            meshes,
            clusters: fleet
                .clusters()
                .filter_map(|it| cluster(fleet, it))
                .collect(),
        }
    }

    /// Returns the values for templates.
    pub fn values(self) -> Values {
        let target = |it: Target| (it.name.clone(), Value::from(Serde(it)));
        let mesh = |it: Mesh| (it.name.clone(), Value::from(Serde(it)));
        Values {
            targets: self.targets.into_iter().map(target).collect(),
            meshes: self.meshes.into_iter().map(mesh).collect(),
            clusters: Value::from(Serde(self.clusters)),
        }
    }
}

impl Values {
    /// Returns the values of each result, and whom it is for.
    pub(super) fn each(&self, per: Per) -> Vec<(Option<&str>, Value)> {
        match per {
            Per::Target => {
                let targets = self.targets.iter();
                targets
                    .map(|(name, it)| (Some(name.as_str()), self.with("target", Some(it))))
                    .collect()
            }
            Per::Mesh => {
                let meshes = self.meshes.iter();
                meshes
                    .map(|(name, it)| (Some(name.as_str()), self.with("mesh", Some(it))))
                    .collect()
            }
            Per::Repository => vec![(None, self.with("", None))],
        }
    }

    /// Returns the values of a template that is for a cluster, or for the repository; none if no
    /// target has this name.
    pub fn of(&self, target: Option<&str>) -> Option<Value> {
        let Some(name) = target else {
            return Some(self.with("", None));
        };
        let (_, target) = self.targets.iter().find(|(it, _)| it == name)?;
        Some(self.with("target", Some(target)))
    }

    fn with(&self, name: &'static str, subject: Option<&Value>) -> Value {
        let all = |of: &[(String, Value)]| of.iter().map(|(_, it)| it.clone()).collect::<Vec<_>>();
        let shared = context! {
            apiVersion => Value::from(Serde(ApiVersion::V1)),
            kind => Value::from(Serde(Kind::TemplateContext)),
            targets => all(&self.targets),
            meshes => all(&self.meshes),
            clusters => self.clusters.clone(),
        };
        match subject {
            Some(subject) => {
                let subject = Value::from_pairs([(name, subject.clone())]);
                context! { ..subject, ..shared }
            }
            None => shared,
        }
    }
}

fn source(fleet: &Fleet, block: &Block) -> Source {
    let member = fleet
        .members()
        .iter()
        .find(|it| it.mesh.name == block.mesh && it.entry.name == block.source);
    let prefix = format!("{}--", block.name);
    let segments = block.peers.iter().map(|peer| {
        let name = peer.name.as_str();
        let node = name.strip_prefix(&*prefix).unwrap_or(name);
        let known = member.and_then(|it| it.cluster.node(node));
        let dialled = |it: &&Endpoint| **it != Endpoint::PLACEHOLDER;
        Segment {
            name: name.to_owned(),
            node: node.to_owned(),
            location: known.map_or_else(String::new, |it| it.kilo.location.clone()),
            endpoint: peer
                .endpoint
                .as_ref()
                .filter(dialled)
                .map(ToString::to_string),
            public_key: peer.key.to_string(),
            persistent_keepalive: peer.keepalive.map(|it| it.0.get()),
            allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        }
    });
    Source {
        mesh: block.mesh.to_string(),
        cluster: block.source.to_string(),
        file: manifest::file(block),
        segments: segments.collect(),
    }
}

fn cluster(fleet: &Fleet, name: &ClusterName) -> Option<Cluster> {
    let members: Vec<&Member> = fleet.memberships(name).collect();
    let first = members.first()?;
    let text = |cidr: Cidr| cidr.to_string();
    let list = |ranges: &[Range]| ranges.iter().map(|it| text(it.cidr)).collect::<Vec<_>>();
    let (pods, wireguard, services, additional, allowed) = match &first.entry.networks {
        Networks::Typed {
            pods,
            wireguard,
            services,
            additional,
        } => (
            list(pods),
            Some(text(wireguard.cidr)),
            services.as_ref().map(|it| text(it.cidr)),
            list(additional),
            Vec::new(),
        ),
        Networks::Flat { allowed } => (Vec::new(), None, None, Vec::new(), list(allowed)),
    };
    let nodes = first.cluster.nodes.iter().map(|it| Node {
        name: it.node.name.clone(),
        location: it.kilo.location.clone(),
        usable: first.roster.usable.contains(&it.node.name),
        pod_cidrs: it.node.pod_cidrs.clone(),
        internal_ip: it.kilo.internal_address().map(|it| it.to_string()),
        wireguard_ip: it.kilo.wireguard_ip().map(|it| it.address.to_string()),
        labels: it.node.labels.clone(),
    });
    Some(Cluster {
        name: name.to_string(),
        meshes: members.iter().map(|it| it.mesh.name.to_string()).collect(),
        allowed_networks: allowed,
        pod_cidrs: pods,
        wireguard_cidr: wireguard,
        service_cidr: services,
        additional_cidrs: additional,
        granularity: first.cluster.granularity.to_string(),
        usable_nodes: first.roster.usable.len(),
        segments: first.roster.speakers.len(),
        nodes: nodes.collect(),
    })
}

fn figures(load: &Load, capacity: &Capacity) -> BTreeMap<String, Number> {
    let estimates = estimates(load, None, capacity).into_iter();
    let figures =
        estimates.filter_map(|it| Some((it.quantity.key().to_owned(), number(it.value)?)));
    figures.collect()
}

/// Counts are whole; seconds are rounded to thousandths.
fn number(value: f64) -> Option<Number> {
    let rounded = (value * 1e3).round() / 1e3;
    match format!("{rounded}").parse::<u64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => Number::from_f64(rounded),
    }
}

/// Flux sends two requests for each Peer, 50 a second, and a reconcile should take a third of the
/// interval at most.
fn reconcile_minutes(peers: usize) -> usize {
    let seconds = (2 * peers).div_ceil(50);
    (3 * seconds).div_ceil(60).max(10)
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
