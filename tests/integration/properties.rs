//! What holds for every mesh, whatever its nodes claim.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clustermesh::kilo::peer::admit;
use clustermesh::manifest::Tree;
use clustermesh::net::Cidr;
use clustermesh::snapshot::{Address, AddressKind, Node};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::Deserialize as _;

use crate::support::{self, meshes, snapshots};

/// How many keys there are to claim: few, so that they meet.
const KEYS: usize = 12;

/// A mesh and what its nodes say.
#[derive(Clone, Debug)]
struct World {
    topology: &'static str,
    clusters: Vec<Cluster>,
}

#[derive(Clone, Debug)]
struct Cluster {
    flat: bool,
    granularity: Option<&'static str>,
    behind_nat: bool,
    nodes: Vec<Claims>,
}

/// What a node says about itself, as texts.
#[derive(Clone, Debug)]
struct Claims {
    name: String,
    pods: Vec<String>,
    wireguard: Option<String>,
    key: Option<usize>,
    endpoint: Option<String>,
    kilo_endpoint: Option<String>,
    internal: Option<String>,
    address: Option<String>,
    location: Option<&'static str>,
    granularity: Option<&'static str>,
    leads: bool,
    stale: bool,
}

fn name(cluster: usize) -> String {
    // The order of names is not the order of rank.
    format!("{}{cluster}", ["m", "c", "z", "a"][cluster % 4])
}

/// Ranges of one cluster; no two clusters' share an address.
fn pods(cluster: usize) -> String {
    format!("10.{cluster}.0.0/16")
}

fn mesh(world: &World) -> String {
    let all: Vec<usize> = (0..world.clusters.len()).collect();
    mesh_of("world", world.topology, world, &all)
}

/// The mesh of some of the clusters.
fn mesh_of(mesh: &str, topology: &str, world: &World, members: &[usize]) -> String {
    let mut yaml = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: {mesh} }}\nspec:\n  topology: {topology}\n  clusters:\n"
    );
    for &i in members {
        let cluster = &world.clusters[i];
        let _ = writeln!(yaml, "  - name: {}", name(i));
        let (pods, wireguard) = (pods(i), format!("100.64.{i}.0/24"));
        let (services, hosts) = (format!("172.20.{i}.0/24"), format!("192.168.{i}.0/24"));
        let six = format!("fd00:{i}::/48");
        let _ = if cluster.flat {
            writeln!(
                yaml,
                "    allowedNetworks: ['{pods}', '{six}', '{wireguard}', '{services}', '{hosts}']"
            )
        } else {
            writeln!(
                yaml,
                "    podCIDRs: ['{pods}', '{six}']\n    wireguardCIDR: {wireguard}\n    serviceCIDR: {services}\n    additionalCIDRs: ['{hosts}']"
            )
        };
        if let Some(granularity) = cluster.granularity {
            let _ = writeln!(yaml, "    granularity: {granularity}");
        }
        if cluster.behind_nat {
            yaml.push_str("    persistentKeepalive: 25\n");
        }
        yaml.push_str(
            "    endpointFrom: [Annotation, ExternalIP, Kilo]\n    endpointDomains: [wg.example]\n",
        );
    }
    yaml
}

fn key(number: usize) -> String {
    use base64::Engine as _;
    let mut bytes = [7; 32];
    bytes[0] = u8::try_from(number).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn node(claims: &Claims) -> Node {
    let annotation = |key: &str, value: &Option<String>| {
        let value = value.clone()?;
        Some((format!("kilo.squat.ai/{key}"), value))
    };
    let text = |value: Option<&str>| value.map(str::to_owned);
    Node {
        name: claims.name.clone(),
        uid: claims.name.clone(),
        pod_cidrs: claims.pods.clone(),
        stale: claims.stale,
        addresses: claims
            .address
            .iter()
            .map(|address| Address {
                address: address.clone(),
                kind: AddressKind::InternalIP,
            })
            .collect(),
        annotations: [
            annotation("wireguard-ip", &claims.wireguard),
            annotation("key", &claims.key.map(key)),
            annotation("force-endpoint", &claims.endpoint),
            annotation("endpoint", &claims.kilo_endpoint),
            annotation("internal-ip", &claims.internal),
            annotation("location", &text(claims.location)),
            annotation("granularity", &text(claims.granularity)),
            annotation("leader", &claims.leads.then(String::new)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        ..Node::default()
    }
}

fn render(world: &World) -> Tree {
    render_meshes(world, &mesh(world))
}

/// Renders other meshes of the same clusters.
fn render_meshes(world: &World, yaml: &str) -> Tree {
    let names: Vec<String> = (0..world.clusters.len()).map(name).collect();
    let nodes = names
        .iter()
        .zip(&world.clusters)
        .map(|(name, cluster)| (name.as_str(), cluster.nodes.iter().map(node).collect()))
        .collect();
    support::tree(&meshes(yaml), &snapshots(nodes))
}

/// Claims of a node of cluster `i` out of `n`: mostly its own, sometimes others', sometimes nonsense.
fn claims(i: usize, n: usize, position: usize) -> impl Strategy<Value = Claims> {
    let own = move |number: u8| format!("10.{i}.{number}.0/24");
    let pod = prop_oneof![
        8 => (0..6u8).prop_map(own),
        1 => Just(pods(i)),
        1 => (0..n, 0..4u8).prop_map(|(j, number)| format!("10.{j}.{number}.128/25")),
        1 => select(vec!["0.0.0.0/0".to_owned(), "nonsense".to_owned(), format!("172.20.{i}.0/24")]),
    ];
    let six =
        proptest::option::of((0..n, 0..3u8).prop_map(|(j, k)| format!("fd00:{j}:0:{k}::/64")));
    let wireguard = prop_oneof![
        8 => (1..6u8).prop_map(move |k| format!("100.64.{i}.{k}/16")),
        1 => (0..n, 1..6u8).prop_map(|(j, k)| format!("10.{j}.{k}.5/16")),
        1 => Just("100.64.0.1".to_owned()),
    ];
    let endpoint = prop_oneof![
        6 => (0..n, 1..9u8).prop_map(|(j, k)| format!("198.51.{j}.{k}:51820")),
        1 => (0..n, 1..9u8).prop_map(|(j, k)| format!("10.{j}.{k}.1:51820")),
        1 => select(vec!["node.wg.example:51820", "evil.example:1", "127.0.0.1:1", "no-port", "[::1]:5"])
            .prop_map(str::to_owned),
    ];
    let host = prop_oneof![
        6 => (1..5u8).prop_map(move |k| format!("192.168.{i}.{k}")),
        1 => (0..n, 1..5u8).prop_map(|(j, k)| format!("192.168.{j}.{k}")),
        1 => (1..5u8).prop_map(move |k| format!("10.{i}.{k}.9")),
    ];
    let granularity = select(vec!["full", "full", "location", "cross", "other"]);
    (
        (proptest::collection::vec(pod, 0..=1), six),
        proptest::option::weighted(0.9, wireguard),
        proptest::option::weighted(0.95, 0..KEYS),
        proptest::option::weighted(0.8, endpoint.clone()),
        proptest::option::weighted(0.9, endpoint),
        proptest::option::weighted(0.8, host.clone().prop_map(|it| format!("{it}/24"))),
        proptest::option::weighted(0.5, host),
        proptest::option::of(select(vec!["x", "y"])),
        proptest::option::of(granularity),
        (any::<bool>(), proptest::bool::weighted(0.1)),
        select(vec!["node", "node", "node", "Bad_Name"]),
    )
        .prop_map(
            move |(
                (mut pods, six),
                wireguard,
                key,
                endpoint,
                kilo_endpoint,
                internal,
                address,
                location,
                granularity,
                (leads, stale),
                stem,
            )| {
                pods.extend(six);
                Claims {
                    name: format!("{stem}-{position}"),
                    pods,
                    wireguard,
                    key,
                    endpoint,
                    kilo_endpoint,
                    internal,
                    address,
                    location,
                    granularity,
                    leads,
                    stale,
                }
            },
        )
}

fn cluster(i: usize, n: usize) -> impl Strategy<Value = Cluster> {
    let nodes = (0..5usize).prop_flat_map(move |count| {
        (0..count)
            .map(|position| claims(i, n, position))
            .collect::<Vec<_>>()
    });
    let granularity = proptest::option::of(select(vec!["Location", "Full", "Cross"]));
    (any::<bool>(), granularity, nodes).prop_map(move |(flat, granularity, nodes)| Cluster {
        flat,
        granularity,
        // Of two clusters behind NAT, one that loses its endpoints takes the other's Peers along;
        // that is what both of them declared.
        behind_nat: i == 0,
        nodes,
    })
}

fn world() -> impl Strategy<Value = World> {
    (2..5usize).prop_flat_map(|n| {
        let clusters = (0..n).map(|i| cluster(i, n)).collect::<Vec<_>>();
        let topology = select(vec![
            "{ mode: FullMesh }",
            "{ mode: Hub, hubs: [c1] }",
            "{ mode: Hub, hubs: [m0] }",
        ]);
        (topology, clusters).prop_map(|(topology, clusters)| World { topology, clusters })
    })
}

/// A Peer as whoever applies it reads it.
fn peers(text: &str) -> Vec<serde_json::Value> {
    serde_yaml::Deserializer::from_str(text)
        .map(|document| serde_json::Value::deserialize(document).unwrap())
        .collect()
}

fn is_kustomization(path: &str) -> bool {
    path.ends_with("/kustomization.yaml")
}

/// Returns the rank of a cluster's index: a hub comes first.
fn rank(world: &World, i: usize) -> (bool, usize) {
    (!world.topology.contains(&format!("[{}]", name(i))), i)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn same_input_gives_same_bytes_in_any_order_of_nodes(world in world()) {
        let mut reversed = world.clone();
        for cluster in &mut reversed.clusters {
            cluster.nodes.reverse();
        }
        prop_assert_eq!(render(&world), render(&reversed));
    }

    #[test]
    fn the_order_of_documents_changes_only_who_keeps_a_contested_key(world in world()) {
        let mut world = world;
        // A key of its own for every node, so that nothing follows rank.
        for (i, cluster) in world.clusters.iter_mut().enumerate() {
            for (position, node) in cluster.nodes.iter_mut().enumerate() {
                node.key = node.key.map(|_| 50 + 10 * i + position);
            }
        }
        let full = "{ mode: FullMesh }";
        let documents: Vec<String> = (1..world.clusters.len())
            .map(|i| mesh_of(&format!("mesh{i}"), full, &world, &[0, i]))
            .collect();
        let mut reversed = documents.clone();
        reversed.reverse();
        prop_assert_eq!(
            render_meshes(&world, &documents.join("---\n")),
            render_meshes(&world, &reversed.join("---\n"))
        );
    }

    #[test]
    fn nothing_is_given_away_that_was_not_declared_and_nothing_twice(world in world()) {
        let tree = render(&world);
        for target in 0..world.clusters.len() {
            let (mut keys, mut cidrs) = (BTreeSet::new(), BTreeSet::new());
            for source in 0..world.clusters.len() {
                let path = format!("{}/world--{}.yaml", name(target), name(source));
                let declared = [
                    pods(source),
                    format!("fd00:{source}::/48"),
                    format!("100.64.{source}.0/24"),
                    format!("172.20.{source}.0/24"),
                    format!("192.168.{source}.0/24"),
                ]
                .map(|text| text.parse::<Cidr>().unwrap());
                for peer in tree.get(&path).map(|text| peers(text)).unwrap_or_default() {
                    prop_assert_eq!(admit(&peer["spec"]), Ok(()));
                    let allowed = peer["spec"]["allowedIPs"].as_array().unwrap();
                    prop_assert!(!allowed.is_empty());
                    for cidr in allowed {
                        let text = cidr.as_str().unwrap();
                        let cidr: Cidr = text.parse().unwrap();
                        prop_assert_eq!(cidr.to_string(), text);
                        prop_assert!(declared.iter().any(|it| it.contains(cidr)), "{} in {}", cidr, path);
                        prop_assert!(cidrs.insert(cidr), "{} twice in {}", cidr, name(target));
                    }
                    let key = peer["spec"]["publicKey"].as_str().unwrap().to_owned();
                    prop_assert!(keys.insert(key), "a key twice in {}", name(target));
                }
            }
        }
    }

    #[test]
    fn no_node_changes_what_a_cluster_that_ranks_first_gives(
        world in world(),
        attacker in any::<Index>(),
        victim in any::<Index>(),
        claims in (0..4usize, 2..5usize).prop_flat_map(|(i, n)| claims(i, n, 0)),
    ) {
        let attacker = attacker.index(world.clusters.len());
        let mut attacked = world.clone();
        let nodes = &mut attacked.clusters[attacker].nodes;
        match nodes.len() {
            0 => nodes.push(claims),
            count => {
                let position = victim.index(count);
                nodes[position] = Claims { name: nodes[position].name.clone(), ..claims };
            }
        }
        let (before, after) = (render(&world), render(&attacked));
        for source in 0..world.clusters.len() {
            if rank(&world, attacker) <= rank(&world, source) {
                continue;
            }
            let file = format!("/world--{}.yaml", name(source));
            let given = |tree: &Tree| -> Vec<(String, String)> {
                tree.iter()
                    .filter(|(path, _)| path.ends_with(&file))
                    .map(|(path, text)| (path.clone(), text.to_string()))
                    .collect()
            };
            prop_assert_eq!(given(&before), given(&after));
        }
    }

    #[test]
    fn a_kustomization_names_what_is_beside_it(world in world()) {
        let tree = render(&world);
        for (path, text) in tree.iter().filter(|(path, _)| is_kustomization(path)) {
            let folder = path.split_once('/').unwrap().0;
            let beside: Vec<String> = tree
                .keys()
                .filter(|it| !is_kustomization(it))
                .filter_map(|it| it.strip_prefix(&format!("{folder}/")).map(str::to_owned))
                .collect();
            let value: serde_json::Value = peers(text).remove(0);
            let named: Vec<&str> = value["resources"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            prop_assert_eq!(named, beside);
        }
    }
}
