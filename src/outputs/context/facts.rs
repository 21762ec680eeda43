//! Facts: a context, as a fleet and its plan bear it out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Number;

use super::{
    ContextCluster, ContextDestination, ContextFirewall, ContextMesh, ContextNode, ContextSegment,
    ContextSource, ContextTarget,
};
use crate::capacity::{Load, estimates};
use crate::config::Per;
use crate::config::capacity::Capacity;
use crate::firewall::{Firewall, SentEndpoint};
use crate::fleet::{Fleet, Member};
use crate::manifest;
use crate::mesh::{Networks, Range};
use crate::name::{ClusterName, NodeName, delivery_name};
use crate::net::Cidr;
use crate::outputs::ResultSubject;
use crate::plan::{PeerSet, Plan};
use crate::wireguard::{Endpoint, PublicKey};

/// The facts that the values of all results are made of. Targets share their sources.
#[derive(Debug, Deserialize)]
pub struct Facts {
    /// Every different set of Peers.
    pub(super) sources: Vec<ContextSource>,
    /// All clusters as targets, with the places of their sources.
    pub(super) targets: Vec<ContextTarget<usize>>,
    pub(super) meshes: Vec<ContextMesh>,
    /// All clusters as sources.
    pub(super) clusters: Vec<ContextCluster>,
}

/// The same facts, as a fleet and its plan bear them out.
#[derive(Serialize)]
pub struct FleetFacts<'a> {
    sources: SourceFacts<'a>,
    targets: Vec<ContextTarget<usize>>,
    meshes: Vec<ContextMesh>,
    clusters: Vec<ContextCluster>,
}

/// The sources, one after the other: there can be half a million Peers.
struct SourceFacts<'a> {
    fleet: &'a Fleet<'a>,
    plan: &'a Plan,
}

impl Serialize for SourceFacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.plan.peer_sets.iter().map(|it| source(self.fleet, it)))
    }
}

impl<'a> FleetFacts<'a> {
    /// Returns the facts about a fleet and its plan, given the load of each target and the folder of
    /// the rendered tree relative to the config's.
    pub fn new(
        fleet: &'a Fleet,
        plan: &'a Plan,
        loads: &[Load],
        capacity: &Capacity,
        rendered: &str,
    ) -> Self {
        let mut ports = firewalls(fleet, plan);
        let targets = plan.targets.iter().zip(loads).map(|(target, load)| {
            let peers = plan.sets_of(target).map(|it| it.peers.len()).sum();
            ContextTarget {
                name: target.cluster.to_string(),
                delivery_name: delivery_name(&target.cluster),
                path: format!("{}/{}", rendered.trim_end_matches('/'), target.cluster),
                peers,
                files: plan.sets_of(target).map(manifest::file).collect(),
                sources: target.peer_sets.iter().map(|it| it.index()).collect(),
                reconcile_minutes: reconcile_minutes(peers),
                firewall: ports.remove(target.cluster.as_str()).unwrap_or_default(),
                capacity: figures(load, capacity),
            }
        });
        let clusters = fleet.clusters();
        Self {
            targets: targets.collect(),
            sources: SourceFacts { fleet, plan },
            meshes: meshes(fleet),
            clusters: clusters.filter_map(|it| cluster(fleet, it)).collect(),
        }
    }

    /// Returns the subjects of the results of an output.
    pub fn subjects(&self, per: Per) -> Vec<ResultSubject> {
        match per {
            Per::Target => self.targets().map(|it| ResultSubject::Target(it.to_owned())).collect(),
            Per::Mesh => {
                self.meshes.iter().map(|it| ResultSubject::Mesh(it.name.clone())).collect()
            }
            Per::Repository => vec![ResultSubject::Repository],
        }
    }

    /// Returns the names of all targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|it| it.name.as_str())
    }
}

/// Returns all meshes, in the order of the files.
fn meshes(fleet: &Fleet) -> Vec<ContextMesh> {
    let mut meshes: Vec<ContextMesh> = Vec::new();
    for member in fleet.members() {
        let name = member.mesh.name.to_string();
        if meshes.iter().all(|it| it.name != name) {
            let clusters = member.mesh.entries.iter().map(|it| it.name.to_string()).collect();
            meshes.push(ContextMesh { name, clusters });
        }
    }
    meshes
}

fn source(fleet: &Fleet, peer_set: &PeerSet) -> ContextSource {
    let member = fleet
        .members()
        .iter()
        .find(|it| it.mesh.name == peer_set.mesh && it.entry.name == peer_set.source);
    let candidates = member.iter().flat_map(|it| &it.membership.candidates);
    let leaders: BTreeMap<PublicKey, &NodeName> =
        candidates.map(|it| (it.key, &it.leader)).collect();
    let segments = peer_set.peers.iter().map(|peer| {
        let node = leaders.get(&peer.key).map_or("", |it| it.as_str());
        let known = member.and_then(|it| it.cluster.node(node));
        let dialled = |it: &&Endpoint| **it != Endpoint::PLACEHOLDER;
        ContextSegment {
            name: peer.name.to_string(),
            node: node.to_owned(),
            location: known.map_or_else(String::new, |it| it.kilo.location.clone()),
            endpoint: peer.endpoint.as_ref().filter(dialled).map(ToString::to_string),
            public_key: peer.key.to_string(),
            persistent_keepalive: peer.keepalive.map(|it| it.0.get()),
            allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        }
    });
    ContextSource {
        mesh: peer_set.mesh.to_string(),
        cluster: peer_set.source.to_string(),
        file: manifest::file(peer_set),
        segments: segments.collect(),
    }
}

fn cluster(fleet: &Fleet, name: &ClusterName) -> Option<ContextCluster> {
    let members: Vec<&Member> = fleet.memberships(name).collect();
    let first = members.first()?;
    let text = |cidr: Cidr| cidr.to_string();
    let list = |ranges: &[Range]| ranges.iter().map(|it| text(it.cidr)).collect::<Vec<_>>();
    let (pods, wireguard, services, additional, allowed) = match &first.entry.networks {
        Networks::Typed { pods, wireguard, services, additional } => (
            list(pods),
            Some(text(wireguard.cidr)),
            services.as_ref().map(|it| text(it.cidr)),
            list(additional),
            Vec::new(),
        ),
        Networks::Flat { allowed } => (Vec::new(), None, None, Vec::new(), list(allowed)),
    };
    let nodes = first.cluster.nodes.iter().map(|it| ContextNode {
        name: it.node.name.clone(),
        location: it.kilo.location.clone(),
        usable: first.membership.usable.contains(&it.node.name),
        pod_cidrs: it.node.pod_cidrs.clone(),
        internal_ip: it.kilo.internal_address().map(|it| it.to_string()),
        wireguard_ip: it.kilo.wireguard_ip().map(|it| it.address.to_string()),
        labels: it.node.labels.clone(),
    });
    Some(ContextCluster {
        name: name.to_string(),
        meshes: members.iter().map(|it| it.mesh.name.to_string()).collect(),
        allowed_networks: allowed,
        pod_cidrs: pods,
        wireguard_cidr: wireguard,
        service_cidr: services,
        additional_cidrs: additional,
        granularity: first.cluster.granularity.to_string(),
        usable_nodes: first.membership.usable.len(),
        segments: first.membership.candidates.len(),
        nodes: nodes.collect(),
    })
}

/// Returns the ports of each cluster with some.
fn firewalls(fleet: &Fleet, plan: &Plan) -> BTreeMap<String, ContextFirewall> {
    let clusters = Firewall::new(fleet, plan, None).clusters.into_iter();
    let ports = clusters.map(|it| {
        let listen_ports = it.listen_ports();
        let senders = || it.endpoints.iter().flat_map(|it| &it.senders);
        let known_sources = senders().flat_map(|it| it.addresses.iter().copied()).collect();
        let has_unknown_sources = senders().any(|it| 0 < it.unknown);
        let sent = it.sends.into_iter().flat_map(|it| it.endpoints);
        let sent = sent.chain(it.inside.into_iter().map(|it| it.endpoint));
        let destinations = sent.map(|SentEndpoint { endpoint, address, port }| {
            ContextDestination { address, endpoint, port }
        });
        let located = it.encapsulated.into_iter().flatten();
        let firewall = ContextFirewall {
            endpoints: it.endpoints.into_iter().map(|it| it.endpoint).collect(),
            listen_ports,
            encapsulated_ips: located.filter_map(|it| it.address).collect(),
            destinations: destinations.collect(),
            known_sources,
            has_unknown_sources,
        };
        (it.cluster, firewall)
    });
    ports.collect()
}

fn figures(load: &Load, capacity: &Capacity) -> BTreeMap<String, Number> {
    estimates(load, capacity)
        .into_iter()
        .filter_map(|it| Some((it.quantity.key().to_owned(), number(it.value)?)))
        .collect()
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
