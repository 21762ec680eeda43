//! The proof of whole classes against following every packet, on random meshes with faults.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use clustermesh::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId, SitePair};
use clustermesh::fleet::{Fleet, external_snapshots};
use clustermesh::mesh::AddressClass;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::net::prefixes::Span;
use clustermesh::packet::premise::Premise;
use clustermesh::packet::trace::Trace;
use clustermesh::packet::{Ending, Goal, Packet, Session};
use clustermesh::plan::{TargetReason, plan};
use clustermesh::proof::reach::{AddressBlock, ClassFate, Proven, Reach, address_blocks};
use clustermesh::proof::verify::{Asked, verify};
use clustermesh::rules::verified::unproved_nodes::unproved_nodes;
use clustermesh::snapshot::{Address, AddressKind, Node};
use clustermesh::wireguard::Endpoint;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::reasons_are_findings;
use crate::support::applied::{AppliedFiles, applied, site};
use crate::support::{self, Snapshots, meshes, snapshots};
use external::{External, externals};

mod expectations;
mod external;
mod hostile;
mod outages;
mod shapes;
mod unallowed;

/// Three clusters of which two don't see each other.
const LINKS: &str = "{ mode: Links, links: [[c0, c1], [c1, c2]] }";

/// A mesh, its nodes, and changes to the manifests.
#[derive(Clone, Debug)]
struct World {
    topology: &'static str,
    addresses: Addresses,
    clusters: Vec<Cluster>,
    externals: Vec<External>,
    faults: Vec<(Index, Index, Fault)>,
}

/// The private addresses that nodes have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Addresses {
    /// Disjoint except one, and declared.
    Apart,
    /// Every cluster has the same ones, which no mesh declares.
    Shared,
    /// As before, in a network for each location.
    SharedByLocation,
    /// Every cluster has a LAN of its own, which the mesh declares.
    Own,
    /// Every cluster has the same ones, which the first cluster declares.
    SharedAndDeclared,
}

#[derive(Clone, Debug)]
struct Cluster {
    granularity: &'static str,
    /// The granularity that its agents report, perhaps another one than the declared one.
    reported: Option<&'static str>,
    is_flat: bool,
    /// The preshared key of every Peer that it gets.
    secret: Option<u8>,
    /// Whether another plugin may have the routes within its locations.
    is_beside_plugin: bool,
    /// The network under the tunnels that its entry names, which some of its nodes are in.
    underlay: Option<&'static str>,
    /// Services that are declared after the render, perhaps in the pod range of another cluster.
    services: Option<(usize, u8)>,
    nodes: Vec<Spec>,
}

#[derive(Clone, Debug)]
struct Spec {
    location: &'static str,
    /// The last part of its internal address; all clusters share one network.
    host: u8,
    lan: Lan,
    pods: Pods,
    shown: Shown,
    found: Found,
    calls: bool,
    stale: bool,
    flaw: Flaw,
    key: u8,
}

/// A reason for which a node is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Flaw {
    None,
    NoKey,
    /// It has no address in Kilo's subnet, as if it did not lead.
    NoWireguardIp,
    /// Its pods are not in the declared range.
    OtherPods,
}

/// The network in which a node's internal address is.
#[derive(Clone, Copy, Debug)]
enum Lan {
    None,
    /// The one of all clusters, by its length.
    Shared(u8),
    /// An IPv6 one of all clusters.
    V6,
    /// The same as its pods'.
    Pods,
}

/// The pod CIDRs of a node, in order.
#[derive(Clone, Copy, Debug)]
enum Pods {
    V4,
    V4AndV6,
    V6AndV4,
    /// Those of the first node.
    OfFirst,
    /// Some of those of the first node.
    InFirst,
}

/// The endpoint that Kilo has for a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    /// A public one, for other clusters too.
    Forced,
    /// A public one, which its entry does not use.
    Public,
    /// Its internal address: the node is behind NAT.
    Private,
    /// Its internal address, for other clusters too.
    ForcedPrivate,
}

/// The kinds of address that a node shows.
#[derive(Clone, Copy, Debug)]
enum Shown {
    V4,
    /// And it is dialled at an IPv6 address.
    V6,
    Both,
    /// As before, and it is dialled at an IPv6 address.
    BothDialledAtV6,
}

/// What is done to a Peer.
#[derive(Clone, Debug)]
enum Fault {
    Remove,
    Copy,
    Range(Index, String),
    Add(String),
    Lose(Index),
    Key(u8),
    Endpoint(String),
    NoEndpoint,
    NoKeepalive,
    Secret(u8),
}

fn key(number: u8) -> String {
    use base64::Engine as _;
    let mut bytes = [9; 32];
    bytes[0] = number;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn cluster_name(i: usize) -> String {
    format!("c{i}")
}

fn mesh(world: &World) -> String {
    let clusters = world.clusters.iter().enumerate();
    let services = |i| format!("172.20.{i}.0/24");
    let entries = clusters.map(|(i, cluster)| entry(i, (cluster, world.addresses), &services(i)));
    mesh_of(world.topology, &entries.collect::<Vec<_>>()) + &external::written(world)
}

fn mesh_of(topology: &str, entries: &[String]) -> String {
    let entries = entries.join("\n  - ");
    format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec:\n  topology: {topology}\n  clusters:\n  - {entries}\n"
    )
}

fn entry(i: usize, (cluster, addresses): (&Cluster, Addresses), services: &str) -> String {
    let granularity = cluster.granularity;
    let ranges = if cluster.is_flat {
        format!(
            "allowedNetworks: [10.{i}.0.0/16, 'fd00:{i}::/48', 100.64.{i}.0/24, 172.20.{i}.0/24]"
        )
    } else {
        let hosts = match addresses {
            Addresses::Apart => format!("172.21.{i}.0/24, 192.168.0.{}/28", 16 * i),
            Addresses::Own => format!("172.21.{i}.0/24, 192.168.{}.0/24", 10 + i),
            Addresses::SharedAndDeclared if i == 0 => format!("172.21.{i}.0/24, 192.168.0.0/24"),
            Addresses::Shared | Addresses::SharedByLocation | Addresses::SharedAndDeclared => {
                format!("172.21.{i}.0/24")
            }
        };
        format!(
            "podCIDRs: [10.{i}.0.0/16, 'fd00:{i}::/48'], wireguardCIDR: 100.64.{i}.0/24, serviceCIDR: {services}, additionalCIDRs: [{hosts}]"
        )
    };
    let underlays = cluster.underlay.map(|it| {
        format!(", underlays: [{{ name: {it}, cidrs: [192.168.0.0/27, 192.168.10.0/28] }}]")
    });
    let underlays = underlays.unwrap_or_default();
    let plugin = if cluster.is_beside_plugin { ", podSource: Kept" } else { "" };
    format!(
        "{{ name: c{i}, {ranges}, granularity: {granularity}, persistentKeepalive: 25{underlays}{plugin} }}"
    )
}

/// A declaration after the render: services in the pod range of another cluster.
fn overlapping(world: &World) -> Vec<Mesh> {
    let clusters = world.clusters.iter().enumerate();
    let moved = clusters.filter_map(|(i, cluster)| {
        let (other, position) = cluster.services?;
        let services = format!("10.{}.{position}.0/24", (i + 1 + other) % 3);
        let other = "{ name: other, allowedNetworks: [172.31.0.0/16] }".to_owned();
        let entries = [entry(i, (cluster, world.addresses), &services), other];
        Some(meshes(&mesh_of("{ mode: FullMesh }", &entries)).remove(0))
    });
    moved.collect()
}

fn node(i: usize, position: usize, spec: &Spec, surroundings: Surroundings) -> Node {
    let Surroundings { addresses, reported } = surroundings;
    let host = usize::from(spec.host);
    let (third, last) = match (addresses, spec.location) {
        // One address that all clusters may have, and the others apart.
        (Addresses::Apart, _) if 14 <= host => (0, 17),
        (Addresses::Apart | Addresses::SharedAndDeclared, _) => (0, 16 * i + host + 1),
        (Addresses::SharedByLocation, "y") => (1, host % 4 + 1),
        (Addresses::Shared | Addresses::SharedByLocation, _) => (0, host % 4 + 1),
        (Addresses::Own, _) => (10 + i, host + 1),
    };
    let internal = format!("192.168.{third}.{last}");
    let outside = format!("2001:db8:{i}::{}", position + 1);
    let endpoint = match (spec.found, spec.shown) {
        (Found::Private | Found::ForcedPrivate, _) => internal.clone(),
        (_, Shown::V4 | Shown::Both) => format!("198.18.{i}.{}", position + 1),
        (_, Shown::V6 | Shown::BothDialledAtV6) => format!("[{outside}]"),
    };
    let mut annotations = BTreeMap::from([
        ("location", spec.location.to_owned()),
        ("endpoint", format!("{endpoint}:51820")),
    ]);
    if spec.flaw != Flaw::NoKey {
        annotations.insert("key", key(spec.key));
    }
    if spec.flaw != Flaw::NoWireguardIp {
        let address = format!("100.64.{i}.{}/24", position + 1);
        annotations.insert("wireguard-ip", address);
    }
    if let Some(reported) = reported {
        annotations.insert("granularity", reported.to_owned());
    }
    match spec.lan {
        Lan::None => {}
        Lan::Shared(length) => {
            annotations.insert("internal-ip", format!("{internal}/{length}"));
        }
        Lan::V6 => {
            annotations.insert("internal-ip", format!("fd01::{last}/64"));
        }
        Lan::Pods => {
            let inside = format!("10.{i}.{position}.1/24");
            annotations.insert("internal-ip", inside);
        }
    }
    if matches!(spec.found, Found::Forced | Found::ForcedPrivate) {
        annotations.insert("force-endpoint", format!("{endpoint}:51820"));
    }
    if spec.calls {
        annotations.insert("persistent-keepalive", "25".to_owned());
    }
    let (v4, v6) = match spec.flaw {
        Flaw::OtherPods => {
            (format!("10.10{i}.{position}.0/24"), format!("fd00:10{i}:0:{position}::/64"))
        }
        _ => (format!("10.{i}.{position}.0/24"), format!("fd00:{i}:0:{position}::/64")),
    };
    let pods = match spec.pods {
        Pods::V4 => vec![v4],
        Pods::V4AndV6 => vec![v4, v6],
        Pods::V6AndV4 => vec![v6, v4],
        Pods::OfFirst => vec![format!("10.{i}.0.0/24")],
        Pods::InFirst => vec![format!("10.{i}.0.128/25")],
    };
    let addresses = match spec.shown {
        Shown::V4 => vec![internal],
        Shown::V6 => vec![outside],
        Shown::Both | Shown::BothDialledAtV6 => vec![internal, outside],
    };
    Node {
        uid: format!("{i}-{position}"),
        stale: spec.stale,
        ..support::node::node(&format!("n{position}"), pods, addresses, annotations)
    }
}

/// What the nodes of a cluster have in common.
#[derive(Clone, Copy)]
struct Surroundings {
    addresses: Addresses,
    reported: Option<&'static str>,
}

/// The input of a proof.
struct Input {
    meshes: Vec<Mesh>,
    overlapping: Vec<Mesh>,
    snapshots: Snapshots,
    files: AppliedFiles,
}

fn input(world: &World) -> Input {
    let meshes = meshes(&mesh(world));
    let clusters: Vec<String> = (0..world.clusters.len()).map(cluster_name).collect();
    let mut names = clusters.clone();
    let nodes = world.clusters.iter().enumerate().map(|(i, cluster)| {
        let surroundings = Surroundings { addresses: world.addresses, reported: cluster.reported };
        let nodes = cluster.nodes.iter().enumerate();
        let nodes = nodes.map(|(position, spec)| node(i, position, spec, surroundings));
        (clusters[i].as_str(), nodes.collect())
    });
    let mut snapshots = snapshots(nodes.collect());
    snapshots.extend(external_snapshots(&meshes));
    let tree = super::tree_of_all(&support::plan(&meshes, &snapshots).0);
    let hosts = meshes[0].externals.iter();
    names.extend(hosts.map(|it| it.entry.name.to_string()));
    let mut peers: Vec<Vec<Value>> = names
        .iter()
        .map(|name| {
            let files = tree.iter().filter(|(path, _)| {
                path.starts_with(&format!("{name}/")) && !path.ends_with("kustomization.yaml")
            });
            files.flat_map(|(_, text)| documents(text)).collect()
        })
        .collect();
    for (peers, cluster) in peers.iter_mut().zip(&world.clusters) {
        for (peer, number) in peers.iter_mut().zip(cluster.secret.into_iter().cycle()) {
            peer["spec"]["presharedKey"] = json!(key(number));
        }
    }
    for (target, peer, fault) in &world.faults {
        let target = target.index(peers.len());
        if !peers[target].is_empty() {
            let peer = peer.index(peers[target].len());
            spoil(&mut peers[target], peer, fault);
        }
    }
    let peers = names.iter().zip(&peers);
    Input {
        meshes,
        overlapping: overlapping(world),
        files: applied(peers.flat_map(|(name, peers)| files(name, peers))),
        snapshots,
    }
}

/// Writes the Peers of a cluster, those of each source into a file: what others get too has the same
/// text there.
fn files(cluster: &str, peers: &[Value]) -> Vec<(String, String)> {
    let mut by_source: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for peer in peers {
        let name = peer["metadata"]["name"].as_str().unwrap();
        let source = name.split("--").nth(1).unwrap_or(name);
        by_source.entry(source).or_default().push(peer);
    }
    let files = by_source.into_iter().map(|(source, peers)| {
        let text = json!({ "kind": "List", "items": peers }).to_string();
        (format!("{cluster}/{source}.json"), text)
    });
    files.collect()
}

fn fabric(input: &Input) -> Fabric<'_> {
    let sites = input.meshes[0].all_entries().map(|entry| {
        let mut moved = input.overlapping.iter().flat_map(|it| &it.entries);
        let entry = moved.find(|it| it.name == entry.name).unwrap_or(entry);
        site(entry, &input.snapshots, &input.files)
    });
    Fabric::new(sites.collect())
}

fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

fn spoil(peers: &mut Vec<Value>, peer: usize, fault: &Fault) {
    if let Fault::Remove = fault {
        peers.remove(peer);
        return;
    }
    let spec = &mut peers[peer]["spec"];
    let ranges = spec["allowedIPs"].as_array_mut().unwrap();
    match fault {
        Fault::Copy => {
            let mut copy = peers[peer].clone();
            copy["metadata"]["name"] = json!(format!("zz-{}", peers.len()));
            peers.push(copy);
        }
        Fault::Range(index, range) if !ranges.is_empty() => {
            let index = index.index(ranges.len());
            ranges[index] = json!(range);
        }
        Fault::Add(range) => ranges.push(json!(range)),
        Fault::Lose(index) if 1 < ranges.len() => {
            ranges.remove(index.index(ranges.len()));
        }
        Fault::Remove | Fault::Range(..) | Fault::Lose(_) => {}
        Fault::Key(number) => spec["publicKey"] = json!(key(*number)),
        Fault::Endpoint(host) => {
            spec["endpoint"] = json!({ "dnsOrIP": { "ip": host }, "port": 51820 });
        }
        Fault::NoEndpoint => drop(spec.as_object_mut().unwrap().remove("endpoint")),
        Fault::NoKeepalive => {
            drop(spec.as_object_mut().unwrap().remove("persistentKeepalive"));
        }
        Fault::Secret(number) => spec["presharedKey"] = json!(key(*number)),
    }
}

fn spec() -> impl Strategy<Value = Spec> {
    (
        select(vec!["x", "y", "z"]),
        0..15u8,
        (lan(), pods(), shown()),
        found(),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.05),
        (flaw(), 0..6u8),
    )
        .prop_map(|(location, host, (lan, pods, shown), found, calls, stale, (flaw, key))| {
            Spec { location, host, lan, pods, shown, found, calls, stale, flaw, key }
        })
}

fn flaw() -> impl Strategy<Value = Flaw> {
    prop_oneof![
        12 => Just(Flaw::None),
        1 => Just(Flaw::NoKey),
        1 => Just(Flaw::NoWireguardIp),
        1 => Just(Flaw::OtherPods),
    ]
}

fn found() -> impl Strategy<Value = Found> {
    prop_oneof![
        6 => Just(Found::Forced),
        1 => Just(Found::Public),
        3 => Just(Found::Private),
        3 => Just(Found::ForcedPrivate),
    ]
}

fn lan() -> impl Strategy<Value = Lan> {
    prop_oneof![
        3 => Just(Lan::None),
        8 => Just(Lan::Shared(24)),
        4 => (25..=32u8).prop_map(Lan::Shared),
        1 => Just(Lan::V6),
        1 => Just(Lan::Pods),
    ]
}

fn pods() -> impl Strategy<Value = Pods> {
    prop_oneof![
        6 => Just(Pods::V4),
        2 => Just(Pods::V4AndV6),
        1 => Just(Pods::V6AndV4),
        1 => Just(Pods::OfFirst),
        1 => Just(Pods::InFirst),
    ]
}

fn shown() -> impl Strategy<Value = Shown> {
    prop_oneof![
        5 => Just(Shown::V4),
        1 => Just(Shown::V6),
        1 => Just(Shown::Both),
        1 => Just(Shown::BothDialledAtV6),
    ]
}

fn range() -> impl Strategy<Value = String> {
    let byte = 0..4u8;
    prop_oneof![
        (byte.clone(), byte.clone()).prop_map(|(i, j)| format!("10.{i}.{j}.0/24")),
        (byte.clone(), byte.clone(), any::<u8>(), 24..=32u8)
            .prop_map(|(i, j, k, length)| masked(&format!("10.{i}.{j}.{k}/{length}"))),
        (byte.clone(), 16..24u8).prop_map(|(i, length)| masked(&format!("10.{i}.0.0/{length}"))),
        (byte.clone(), byte.clone()).prop_map(|(i, k)| format!("100.64.{i}.{}/32", k + 1)),
        (byte.clone(), 24..=28u8).prop_map(|(i, length)| format!("172.20.{i}.0/{length}")),
        (byte.clone(), byte.clone()).prop_map(|(i, k)| format!("198.18.{i}.{}/32", k + 1)),
        byte.clone().prop_map(|i| format!("198.18.{i}.0/24")),
        any::<u8>().prop_map(|k| format!("192.168.0.{k}/32")),
        Just("192.168.0.0/24".to_owned()),
        Just("192.168.0.0/23".to_owned()),
        (byte.clone(), 16..=32u8).prop_map(|(i, length)| masked(&format!(
            "192.168.{}.{}/{length}",
            10 + i,
            i + 1
        ))),
        (byte.clone(), byte.clone()).prop_map(|(i, j)| format!("fd00:{i}:0:{j}::/64")),
        (byte.clone(), byte.clone()).prop_map(|(i, j)| format!("10.{}.{j}.0/24", 220 + i)),
        (byte.clone(), 48..64u8).prop_map(|(i, length)| format!("fd00:{i}::/{length}")),
        Just("10.1.2.3/24".to_owned()),
    ]
}

fn masked(text: &str) -> String {
    let cidr: clustermesh::net::Cidr = text.parse().unwrap();
    cidr.to_string()
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Remove),
        Just(Fault::Copy),
        (any::<Index>(), range()).prop_map(|(index, range)| Fault::Range(index, range)),
        range().prop_map(Fault::Add),
        any::<Index>().prop_map(Fault::Lose),
        any::<u8>().prop_map(Fault::Key),
        (0..4u8, 1..4u8).prop_map(|(i, k)| Fault::Endpoint(format!("198.18.{i}.{k}"))),
        (0..4u8, 0..4u8).prop_map(|(i, j)| Fault::Endpoint(format!("10.{i}.{j}.9"))),
        (0..4u8, 1..4u8).prop_map(|(i, k)| Fault::Endpoint(format!("2001:db8:{i}::{k}"))),
        Just(Fault::NoEndpoint),
        Just(Fault::NoKeepalive),
        (0..3u8).prop_map(Fault::Secret),
    ]
}

fn world() -> impl Strategy<Value = World> {
    let granularity = (
        select(vec!["Full", "Full", "Location", "Cross"]),
        prop::option::weighted(0.5, select(vec!["full", "location"])),
    );
    let cluster = (
        granularity,
        prop::bool::weighted(0.2),
        (prop::option::weighted(0.3, 0..2u8), prop::bool::weighted(0.2)),
        prop::option::weighted(0.4, select(vec!["u", "u", "v"])),
        prop::option::weighted(0.2, (0..2usize, 0..4u8)),
        prop::collection::vec(spec(), 1..5),
    )
        .prop_map(|((granularity, reported), is_flat, own, underlay, services, nodes)| {
            let (secret, is_beside_plugin) = own;
            Cluster {
                granularity,
                reported,
                is_flat,
                secret,
                is_beside_plugin,
                underlay,
                services,
                nodes,
            }
        });
    let topology = select(vec!["{ mode: FullMesh }", "{ mode: Hub, hubs: [c1] }", LINKS]);
    let faults = prop::collection::vec((any::<Index>(), any::<Index>(), fault()), 0..5);
    let clusters = prop::collection::vec(cluster, 2..4);
    let keys = any::<bool>();
    let addresses = select(vec![
        Addresses::Apart,
        Addresses::Shared,
        Addresses::SharedByLocation,
        Addresses::Own,
        Addresses::Own,
        Addresses::SharedAndDeclared,
    ]);
    let all = (topology, addresses, (clusters, externals()), faults, keys);
    all.prop_map(|(topology, addresses, (mut clusters, mut externals), faults, share)| {
        if !share {
            for (i, cluster) in clusters.iter_mut().enumerate() {
                for (position, node) in cluster.nodes.iter_mut().enumerate() {
                    node.key = u8::try_from(16 * i + position).unwrap();
                }
            }
        }
        let topology = match topology {
            LINKS if clusters.len() == 2 => "{ mode: Links, links: [[c0, c1]] }",
            topology => topology,
        };
        for external in &mut externals {
            external.clusters.retain(|it| *it < clusters.len());
        }
        World { topology, addresses, clusters, externals, faults }
    })
}

/// Clusters with declared LANs of their own, each with some nodes behind NAT and others that are dialled at
/// public addresses.
fn behind_nat() -> impl Strategy<Value = World> {
    world().prop_map(|mut world| {
        world.addresses = Addresses::Own;
        world.faults.clear();
        for (i, cluster) in world.clusters.iter_mut().enumerate() {
            cluster.services = None;
            for (position, node) in cluster.nodes.iter_mut().enumerate() {
                node.key = u8::try_from(16 * i + position).unwrap();
                node.lan = Lan::Shared(24);
                if node.found == Found::Public {
                    node.found = Found::Private;
                }
            }
        }
        world
    })
}

/// Addresses of a block between any two of which something may change.
fn samples(fabric: &Fabric, block: AddressBlock) -> Vec<IpAddr> {
    let span = block.span;
    let mut numbers = BTreeSet::from([span.first, span.last]);
    for site in &fabric.sites {
        let ranges = site
            .model
            .tunnels
            .iter()
            .map(|it| it.0)
            .chain(site.owned().iter().map(|it| it.0))
            .chain(site.connections().iter().map(|it| it.0));
        for inner in ranges.map(Span::new).filter(|it| it.family == span.family) {
            numbers.extend([inner.first, inner.last]);
            numbers.extend(inner.first.checked_sub(1));
            numbers.extend(inner.last.checked_add(1));
        }
    }
    let inside = numbers.range(span.first..=span.last);
    let at = |first| Span { first, ..span };
    inside.map(|&number| at(number).first_address()).collect()
}

fn goal(site: SiteId, owner: Owner) -> Goal {
    match owner {
        Owner::Services => Goal::Services(site),
        Owner::Node(node) | Owner::Pods(node) | Owner::Tunnel(node) => {
            Goal::Node(NodeRef { site, node })
        }
        Owner::Network | Owner::Pool => Goal::Network(site),
    }
}

/// What the strongest premise of packets is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Premised {
    Pods,
    Dialling,
    Distance,
    Encapsulation,
    Plugin,
    Source,
    Route,
}

impl From<Premise> for Premised {
    fn from(premise: Premise) -> Self {
        match premise {
            Premise::Pods(_) => Self::Pods,
            Premise::Dial(_) => Self::Dialling,
            Premise::Distant(_) => Self::Distance,
            Premise::Unencapsulated(_) => Self::Encapsulation,
            Premise::Plugin(_) => Self::Plugin,
            Premise::Masqueraded(_) => Self::Source,
            Premise::Route(_) => Self::Route,
        }
    }
}

/// Returns whether an ending is not a loop at the private address of a node behind NAT, at which no node dials
/// it and no other node than those on its LAN sees it.
fn is_no_invention(fabric: &Fabric, ending: &Ending) -> bool {
    let Ending::Loops { at, peer, address, .. } = *ending else {
        return true;
    };
    let site = fabric.site(at.site);
    let peer = &site.model.peers[peer];
    let endpoint = peer.share().and_then(|it| it.translation.endpoint.as_ref());
    let lan = site.node(at.node).kilo.lan;
    let is_private = matches!(address, IpAddr::V4(it) if it.octets()[..2] == [192, 168]);
    !is_private
        || endpoint.and_then(Endpoint::address) == Some(address)
        || lan.is_some_and(|it| it.holds(address))
}

/// Every way in which packets between two blocks end, and their strongest premise.
fn followed(
    fabric: &Fabric,
    (from, sender): (SiteId, AddressBlock),
    (to, receiver): (SiteId, AddressBlock),
) -> (BTreeSet<&'static str>, Option<Premised>) {
    let mut endings = BTreeSet::new();
    let mut premises = Vec::new();
    let node = sender.owner.node().unwrap();
    for source in samples(fabric, sender) {
        for destination in samples(fabric, receiver) {
            let trace = fabric.exchange(Packet {
                from: NodeRef { site: from, node },
                source,
                to: goal(to, receiver.owner),
                destination,
                session: Session::New,
            });
            let ways = [Some(&trace.there), trace.back.as_ref().map(|it| &it.1)];
            for way in ways.into_iter().flatten() {
                assert!(is_no_invention(fabric, &way.ending), "{:?}", way.ending);
            }
            endings.insert(trace.verdict_name());
            premises.extend(fabric.premise(&trace).map(Premised::from));
        }
    }
    (endings, premises.into_iter().min())
}

/// A sender and a receiver: owner and first address of each.
type Owners = (Owner, u128, Owner, u128);

/// How packets end, and the strongest premise of those that arrive.
type Endings = BTreeMap<Owners, (BTreeSet<&'static str>, Option<Premised>)>;

fn owners(sender: &AddressBlock, receiver: &AddressBlock) -> Owners {
    let (from, to) = (sender.span.first, receiver.span.first);
    (sender.owner, from, receiver.owner, to)
}

fn pairs<'p>(
    senders: &'p [AddressBlock],
    receivers: &'p [AddressBlock],
) -> impl Iterator<Item = (&'p AddressBlock, &'p AddressBlock)> {
    let senders = senders.iter();
    senders.flat_map(move |sender| receivers.iter().map(move |receiver| (sender, receiver)))
}

/// Compares the results of whole classes with every packet.
fn agree(world: &World) -> Result<(), TestCaseError> {
    let input = input(world);
    let fabric = fabric(&input);
    let reach = Reach::new(&fabric, u64::MAX);
    let mut proven = Proven::default();
    let brief = Reach::among(&fabric, u64::MAX, |_, _| true);
    let mut with_lost = Proven::with_lost();
    for from in fabric.sites.ids() {
        for to in fabric.sites.ids().filter(|to| *to != from) {
            let mut said = Endings::new();
            let verdicts = reach
                .between(from, to, &mut proven)
                .flat_map(|it| reach.follow(SitePair { from, to }, &it));
            for verdict in verdicts {
                let mut premised = BTreeMap::new();
                if verdict.holds() {
                    for it in
                        reach.premised(SitePair { from, to }, &verdict.senders, &verdict.receivers)
                    {
                        for (sender, receiver) in pairs(&it.senders, &it.receivers) {
                            let kind = Premised::from(it.premise);
                            let before = premised.insert(owners(sender, receiver), kind);
                            prop_assert!(before.is_none(), "twice: {:?}", (sender, receiver));
                        }
                    }
                }
                for sender in &*verdict.senders {
                    for receiver in &*verdict.receivers {
                        let key = owners(sender, receiver);
                        let endings: BTreeSet<&str> = match &verdict.fate {
                            ClassFate::Proven => BTreeSet::from(["delivered"]),
                            ClassFate::Followed(traces) => {
                                traces.iter().map(Trace::verdict_name).collect()
                            }
                            ClassFate::Lost | ClassFate::Kept | ClassFate::Rejected => {
                                BTreeSet::new()
                            }
                        };
                        let before = said.insert(key, (endings, premised.get(&key).copied()));
                        prop_assert!(before.is_none(), "twice: {:?}", key);
                    }
                }
            }
            let mut held = BTreeMap::new();
            for verdict in brief.between(from, to, &mut with_lost) {
                if verdict.holds() || verdict.holds_in_part() {
                    let pairs = pairs(&verdict.senders, &verdict.receivers);
                    held.extend(pairs.map(|(one, other)| (owners(one, other), verdict.holds())));
                }
            }
            let some_arrive = said.iter().filter(|it| it.1.0.contains("delivered"));
            let expected: BTreeMap<Owners, bool> =
                some_arrive.map(|(key, (endings, _))| (*key, endings.len() == 1)).collect();
            prop_assert_eq!(held, expected);
            let mut every = Endings::new();
            for sender in address_blocks(&fabric.sites[from]) {
                let class = sender.owner.class();
                if !matches!(class, Some(AddressClass::Pod | AddressClass::Node)) {
                    continue;
                }
                for receiver in address_blocks(&fabric.sites[to]) {
                    if sender.span.family == receiver.span.family {
                        let key = owners(&sender, &receiver);
                        let (endings, premise) = followed(&fabric, (from, sender), (to, receiver));
                        let arrive = endings == BTreeSet::from(["delivered"]);
                        every.insert(key, (endings, premise.filter(|_| arrive)));
                    }
                }
            }
            let differing = |it: &&Owners| said.get(*it) != every.get(*it);
            let owners = said.keys().chain(every.keys()).find(differing);
            prop_assert_eq!(
                owners.map(|it| (from, to, it, said.get(it))),
                owners.map(|it| (from, to, it, every.get(it)))
            );
        }
    }
    Ok(())
}

/// A node without peculiarities.
const PLAIN: Spec = Spec {
    location: "x",
    host: 0,
    lan: Lan::None,
    pods: Pods::V4,
    shown: Shown::V4,
    found: Found::Forced,
    calls: false,
    stale: false,
    flaw: Flaw::None,
    key: 0,
};

/// A cluster in which each node has tunnels.
fn cluster(nodes: Vec<Spec>) -> Cluster {
    Cluster {
        granularity: "Full",
        reported: None,
        is_flat: false,
        secret: None,
        is_beside_plugin: false,
        underlay: None,
        services: None,
        nodes,
    }
}

#[test]
fn of_two_nodes_one_has_the_key_of_somebody_else() {
    let spec = |found, key| Spec { found, key, ..PLAIN };
    // The second cluster has no Peer for either node of the first one, but one for the third's.
    let world = World {
        topology: "{ mode: FullMesh }",
        addresses: Addresses::Apart,
        clusters: vec![
            cluster(vec![spec(Found::Public, 0), spec(Found::Public, 9)]),
            cluster(vec![spec(Found::Forced, 1), spec(Found::Public, 2), spec(Found::Public, 0)]),
            cluster(vec![spec(Found::Forced, 9)]),
        ],
        externals: Vec::new(),
        faults: Vec::new(),
    };
    agree(&world).unwrap();
}

/// A cluster whose nodes do not count sends nothing. Another one that gets the same Peers does.
#[test]
fn of_two_clusters_with_the_same_peers_one_has_no_node_that_counts() {
    let of_one = |key, stale, shown| {
        cluster(vec![Spec {
            shown,
            found: if key == 1 { Found::Forced } else { Found::Public },
            stale,
            key,
            ..PLAIN
        }])
    };
    let world = World {
        topology: "{ mode: FullMesh }",
        addresses: Addresses::Shared,
        clusters: vec![
            of_one(0, true, Shown::V4),
            of_one(1, false, Shown::V4),
            of_one(2, false, Shown::V6),
        ],
        externals: Vec::new(),
        faults: Vec::new(),
    };
    // Clusters are looked at in their order on one thread.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    one.unwrap().install(|| agree(&world)).unwrap();
}

/// Of two clusters that get the same Peer, one has a node with the address at which it is dialled. That node dials itself.
#[test]
fn of_two_clusters_with_the_same_peers_one_is_where_it_dials() {
    let spec = |location, host, found, key| Spec { location, host, found, key, ..PLAIN };
    let world = World {
        topology: "{ mode: FullMesh }",
        addresses: Addresses::SharedByLocation,
        clusters: vec![
            cluster(vec![spec("x", 0, Found::Forced, 0)]),
            cluster(vec![spec("y", 6, Found::ForcedPrivate, 16)]),
            cluster(vec![spec("y", 2, Found::Forced, 32), spec("x", 0, Found::Forced, 33)]),
        ],
        externals: Vec::new(),
        faults: Vec::new(),
    };
    // Clusters are looked at in their order on one thread.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    one.unwrap().install(|| agree(&world)).unwrap();
}

/// A node that the mesh selects has declared paths in what is rendered, or `verify` names it.
fn every_node_is_proved_or_named(world: &World) -> Result<(), TestCaseError> {
    let world = World { externals: Vec::new(), faults: Vec::new(), ..world.clone() };
    let input = input(&world);
    let fabric = fabric(&input);
    let fleet = Fleet::new(&input.meshes, &input.snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let named: BTreeSet<(&ClusterName, &str)> = unproved_nodes(&fleet, Some(&plan))
        .iter()
        .flat_map(|it| {
            let nodes = it.nodes.iter();
            nodes.map(|node| (&it.member.entry.name, node.node.name.as_str()))
        })
        .collect();
    let asked = Asked { meshes: &input.meshes, lists_undeclared: false, allowed: None };
    for at in verify(&Reach::new(&fabric, u64::MAX), asked).apart {
        let site = fabric.site(at.site);
        let name = (site.cluster, fabric.node(at).kilo.name.as_str());
        // Other findings are about such clusters.
        let is_unroutable = plan.withheld.iter().any(|it| {
            it.source == *site.cluster && matches!(*it.reason, TargetReason::Family { .. })
        });
        let is_other = site.reading.is_rendered_otherwise()
            || plan.silent.contains(site.cluster)
            || is_unroutable;
        let is_named = is_other || named.contains(&name);
        prop_assert!(is_named, "{:?} is neither proved nor named", name);
    }
    Ok(())
}

/// The number of random worlds to try: `PROPTEST_CASES` if it is set.
fn cases(default: u32) -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.map_or(default, |text| text.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn classes_say_what_every_packet_does(world in world()) {
        agree(&world)?;
    }

    #[test]
    fn a_node_without_declared_paths_is_named(world in world()) {
        every_node_is_proved_or_named(&world)?;
    }

    #[test]
    fn every_reason_of_an_unproved_node_is_a_finding(world in world()) {
        let world = World { externals: Vec::new(), ..world };
        let input = input(&world);
        let fleet = Fleet::new(&input.meshes, &input.snapshots).unwrap();
        reasons_are_findings(&fleet, &plan(&fleet).unwrap())?;
    }

    #[test]
    fn a_private_endpoint_behind_nat_never_makes_a_loop(world in behind_nat()) {
        let input = input(&world);
        let fabric = fabric(&input);
        let reach = Reach::new(&fabric, u64::MAX);
        for from in fabric.sites.ids() {
            for to in fabric.sites.ids().filter(|to| *to != from) {
                for verdict in reach.between(from, to, &mut Proven::default()) {
                    let traces = verdict.traces().iter().map(Trace::verdict_name);
                    let endings: BTreeSet<&str> = traces.collect();
                    prop_assert!(!endings.contains("loops"), "{:?}", verdict);
                }
            }
        }
    }
}

#[test]
fn a_network_that_a_lan_divides_has_all_its_endings() {
    let spec = |lan, flaw, key| Spec { lan, flaw, key, ..PLAIN };
    let world = World {
        topology: "{ mode: FullMesh }",
        addresses: Addresses::SharedAndDeclared,
        clusters: vec![
            cluster(vec![spec(Lan::None, Flaw::None, 0)]),
            cluster(vec![
                spec(Lan::Shared(25), Flaw::None, 16),
                spec(Lan::None, Flaw::NoWireguardIp, 17),
            ]),
        ],
        externals: Vec::new(),
        faults: vec![(index(0, 2), index(0, 2), Fault::Remove)],
    };
    agree(&world).unwrap();
    let mut sound = world.clone();
    sound.faults.clear();
    agree(&sound).unwrap();
    sound.clusters[1].nodes[1].flaw = Flaw::None;
    agree(&sound).unwrap();
}

/// An index that is `wanted` among as many as `of`.
fn index(wanted: usize, of: usize) -> Index {
    let mut runner = TestRunner::deterministic();
    let mut draw = || any::<Index>().new_tree(&mut runner).unwrap().current();
    let mut draws = std::iter::from_fn(|| Some(draw()));
    draws.find(|it| it.index(of) == wanted).unwrap()
}

/// A node receives what is on its LAN, and sends the rest of a declared range on to a Peer with a wider one.
#[test]
fn a_contested_range_leads_into_a_lan_in_part() {
    let of_one = |lan, host, key| cluster(vec![Spec { host, lan, key, ..PLAIN }]);
    let range = Fault::Range(index(0, 9), "192.168.0.0/24".to_owned());
    let world = World {
        topology: "{ mode: Hub, hubs: [c1] }",
        addresses: Addresses::Apart,
        clusters: vec![
            of_one(Lan::None, 0, 0),
            of_one(Lan::Shared(29), 6, 16),
            of_one(Lan::Shared(27), 0, 32),
        ],
        externals: Vec::new(),
        faults: vec![(index(1, 3), index(0, 9), range), (index(2, 3), index(0, 9), Fault::Copy)],
    };
    agree(&world).unwrap();
}
