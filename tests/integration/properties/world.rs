//! Worlds: meshes and the values of their nodes, generated to attack each other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clustermesh::snapshot::Node;
use proptest::prelude::*;
use proptest::sample::select;

pub(super) use anchored::anchored;
pub(super) use external::{EXTERNALS, External};
pub(super) use families::{OddNode, mixed, odd_node};

mod anchored;
mod external;
mod families;

/// How many keys there are to claim: few, so that they meet.
const KEYS: usize = 12;

/// A mesh and the values of its nodes.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) topology: &'static str,
    pub(super) clusters: Vec<Cluster>,
    /// Their numbers among clusters begin with [`EXTERNALS`].
    pub(super) externals: Vec<External>,
}

impl World {
    /// Returns the numbers of its clusters and external peers.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.clusters.len()).chain(EXTERNALS..EXTERNALS + self.externals.len())
    }

    /// Returns the ranges that a cluster or an external peer declares.
    pub(super) fn declared(&self, i: usize) -> Vec<String> {
        match i.checked_sub(EXTERNALS) {
            Some(i) => self.externals[i].ranges.clone(),
            None => declared(i).to_vec(),
        }
    }

    /// Returns the ranges that must be allowed in what a cluster or an external peer gets.
    pub(super) fn accepted(&self, i: usize) -> Vec<Vec<String>> {
        let cluster = self.clusters.get(i);
        let lists = cluster.into_iter().flat_map(|it| &it.accepted);
        lists.flatten().cloned().collect()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cluster {
    flat: bool,
    granularity: Option<&'static str>,
    /// Whether its entry gives no endpoint to nodes of which only Kilo has one.
    pub(super) behind_nat: bool,
    /// Whether a `nodeSelector` selects its nodes.
    selects: bool,
    /// The ranges that it accepts, according to the mesh and to its policy.
    pub(super) accepted: [Option<Vec<String>>; 2],
    anchors: Vec<Anchor>,
    /// What it advertises, if that is not the default.
    pub(super) advertise: Option<&'static str>,
    /// What people call its own.
    pub(super) local: Vec<String>,
    pub(super) nodes: Vec<Claims>,
}

#[derive(Clone, Debug)]
struct Anchor {
    ranges: Option<String>,
    nodes: Vec<String>,
    count: u16,
}

/// The values of a node, as texts.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    pub(super) name: String,
    pub(super) pods: Vec<String>,
    pub(super) wireguard: Option<String>,
    pub(super) key: Option<usize>,
    pub(super) endpoint: Option<String>,
    pub(super) kilo_endpoint: Option<String>,
    pub(super) internal: Option<String>,
    /// Whether an administrator has set it.
    pub(super) is_forced: bool,
    pub(super) addresses: Vec<String>,
    pub(super) location: Option<&'static str>,
    pub(super) granularity: Option<&'static str>,
    pub(super) leads: bool,
    pub(super) stale: bool,
    /// The value of the label that a `nodeSelector` selects if it is `yes`.
    pub(super) label: Option<&'static str>,
}

pub(super) fn name(cluster: usize) -> String {
    if EXTERNALS <= cluster {
        return format!("external.e{cluster}");
    }
    // The order of names is not the order of rank.
    format!("{}{cluster}", ["m", "c", "z", "a"][cluster % 4])
}

/// Ranges of one cluster; no two clusters' share an address.
pub(super) fn pods(cluster: usize) -> String {
    format!("10.{cluster}.0.0/16")
}

pub(super) fn mesh(world: &World) -> String {
    let all: Vec<usize> = (0..world.clusters.len()).collect();
    mesh_of("world", world.topology, world, &all) + &external::written(world)
}

/// The mesh of some of the clusters.
pub(super) fn mesh_of(mesh: &str, topology: &str, world: &World, members: &[usize]) -> String {
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
        if cluster.selects {
            yaml.push_str("    nodeSelector: { matchLabels: { mesh: 'yes' } }\n");
        }
        if let Some(granularity) = cluster.granularity {
            let _ = writeln!(yaml, "    granularity: {granularity}");
        }
        if cluster.behind_nat {
            yaml.push_str("    persistentKeepalive: 25\n");
        }
        if let [Some(accepted), _] = &cluster.accepted {
            let _ = writeln!(yaml, "    acceptedNetworks: {accepted:?}");
        }
        if !cluster.local.is_empty() {
            let _ = writeln!(yaml, "    localNetworks: {:?}", cluster.local);
        }
        if let Some(advertise) = cluster.advertised() {
            let _ = writeln!(yaml, "    advertise: {advertise}");
        }
        if !cluster.anchors.is_empty() {
            yaml.push_str("    anchors:\n");
        }
        for Anchor { ranges, nodes, count } in &cluster.anchors {
            let _ = writeln!(yaml, "    - count: {count}");
            let _ = match ranges {
                Some(range) => writeln!(yaml, "      ranges: ['{range}']"),
                None => Ok(()),
            };
            if !nodes.is_empty() {
                let _ = writeln!(yaml, "      nodes: {nodes:?}");
            }
        }
        let kilo = if cluster.behind_nat { "" } else { ", Kilo" };
        let _ = writeln!(
            yaml,
            "    endpointFrom: [Annotation, ExternalIP{kilo}]\n    endpointDomains: [wg.example]"
        );
    }
    yaml
}

pub(super) fn key(number: usize) -> String {
    use base64::Engine as _;
    let mut bytes = [7; 32];
    bytes[0] = u8::try_from(number).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub(super) fn node(claims: &Claims) -> Node {
    let text = |value: Option<&str>| value.map(str::to_owned);
    let internal = if claims.is_forced { "force-internal-ip" } else { "internal-ip" };
    let annotations = [
        ("wireguard-ip", claims.wireguard.clone()),
        ("key", claims.key.map(key)),
        ("force-endpoint", claims.endpoint.clone()),
        ("endpoint", claims.kilo_endpoint.clone()),
        (internal, claims.internal.clone()),
        ("location", text(claims.location)),
        ("granularity", text(claims.granularity)),
        ("leader", claims.leads.then(String::new)),
    ];
    let annotations = annotations.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let (pods, addresses) = (claims.pods.clone(), claims.addresses.clone());
    let label = text(claims.label).map(|it| ("mesh".to_owned(), it));
    Node {
        stale: claims.stale,
        labels: label.into_iter().collect(),
        ..crate::support::node::node(&claims.name, pods, addresses, annotations)
    }
}

/// Ranges of one cluster, by use.
pub(super) fn declared(i: usize) -> [String; 5] {
    [
        pods(i),
        format!("fd00:{i}::/48"),
        format!("100.64.{i}.0/24"),
        format!("172.20.{i}.0/24"),
        format!("192.168.{i}.0/24"),
    ]
}

/// The number of a cluster out of `n`, or of an external peer.
fn member(n: usize) -> impl Strategy<Value = usize> + Clone {
    prop_oneof![5 => 0..n, 1 => EXTERNALS..EXTERNALS + external::MOST]
}

/// Claims of a node of cluster `i` out of `n`: mostly its own, sometimes others', sometimes an
/// invalid value.
pub(super) fn claims(i: usize, n: usize, position: usize) -> impl Strategy<Value = Claims> {
    let own = move |number: u8| format!("10.{i}.{number}.0/24");
    let pod = prop_oneof![
        8 => (0..6u8).prop_map(own),
        1 => Just(pods(i)),
        1 => (member(n), 0..4u8).prop_map(|(j, number)| format!("10.{j}.{number}.128/25")),
        1 => select(vec!["0.0.0.0/0".to_owned(), "nonsense".to_owned(), format!("172.20.{i}.0/24")]),
    ];
    let pods = prop_oneof![
        20 => proptest::collection::vec(pod.clone(), 0..=1),
        1 => proptest::collection::vec(pod, 40..60),
    ];
    let six =
        proptest::option::of((member(n), 0..3u8).prop_map(|(j, k)| format!("fd00:{j}:0:{k}::/64")));
    let wireguard = prop_oneof![
        8 => (1..6u8).prop_map(move |k| format!("100.64.{i}.{k}/16")),
        1 => (member(n), 1..6u8).prop_map(|(j, k)| format!("10.{j}.{k}.5/16")),
        1 => (member(n), 1..6u8).prop_map(|(j, k)| format!("100.64.{j}.{k}/16")),
        1 => Just("100.64.0.1".to_owned()),
    ];
    let endpoint = prop_oneof![
        8 => (member(n), 1..9u8).prop_map(|(j, k)| format!("198.51.{j}.{k}:51820")),
        1 => (member(n), 0..6u8, 0..3u8).prop_map(|(j, k, l)| format!("10.{j}.{k}.{l}:51820")),
        1 => (member(n), 0..6u8).prop_map(|(j, k)| format!("192.168.{j}.{k}:51820")),
        1 => (member(n), 0..6u8).prop_map(|(j, k)| format!("172.20.{j}.{k}:51820")),
        1 => (member(n), 0..6u8).prop_map(|(j, k)| format!("100.64.{j}.{k}:51820")),
        1 => (member(n), 0..3u8).prop_map(|(j, k)| format!("[fd00:{j}:0:{k}::1]:51820")),
        1 => select(vec!["node.wg.example:51820", "evil.example:1", "127.0.0.1:1", "no-port", "[::1]:5"])
            .prop_map(str::to_owned),
    ];
    let host = prop_oneof![
        6 => (1..5u8).prop_map(move |k| format!("192.168.{i}.{k}")),
        1 => (member(n), 1..5u8).prop_map(|(j, k)| format!("192.168.{j}.{k}")),
        1 => (member(n), 0..5u8).prop_map(|(j, k)| format!("10.{j}.{k}.9")),
        1 => (member(n), 0..3u8).prop_map(|(j, k)| format!("172.20.{j}.{k}")),
        1 => (member(n), 0..6u8).prop_map(|(j, k)| format!("100.64.{j}.{k}")),
    ];
    let lan = (host.clone(), select(vec![8u8, 16, 20, 24, 25, 30, 32]))
        .prop_map(|(host, length)| format!("{host}/{length}"));
    let addresses = prop_oneof![
        20 => proptest::collection::vec(host.clone(), 0..=1),
        1 => proptest::collection::vec(host, 40..60),
    ];
    let granularity = select(vec!["full", "full", "location", "cross", "other"]);
    let long = format!("{}--node", "n".repeat(60));
    (
        (pods, six),
        proptest::option::weighted(0.9, wireguard),
        proptest::option::weighted(0.95, 0..KEYS),
        proptest::option::weighted(0.8, endpoint.clone()),
        proptest::option::weighted(0.9, endpoint),
        proptest::option::weighted(0.8, lan),
        addresses,
        proptest::option::of(select(vec!["x", "y"])),
        proptest::option::of(granularity),
        (any::<bool>(), proptest::bool::weighted(0.1), proptest::bool::weighted(0.2)),
        select(vec![
            "node".to_owned(),
            "node".to_owned(),
            "Bad_Name".to_owned(),
            "\u{1b}[31m".to_owned(),
            long,
        ]),
    )
        .prop_map(
            move |(
                (mut pods, six),
                wireguard,
                key,
                endpoint,
                kilo_endpoint,
                internal,
                addresses,
                location,
                granularity,
                (leads, stale, is_forced),
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
                    is_forced,
                    addresses,
                    location,
                    granularity,
                    leads,
                    stale,
                    label: Some("yes"),
                }
            },
        )
}

/// What a cluster out of `n` may take: whole clusters, parts of them, everything of a kind.
fn accepted(n: usize) -> impl Strategy<Value = Option<Vec<String>>> {
    let range = prop_oneof![
        4 => (member(n), 0..5usize).prop_map(|(j, use_)| declared(j)[use_].clone()),
        2 => (member(n), 0..6u8).prop_map(|(j, k)| format!("10.{j}.{k}.0/24")),
        1 => member(n).prop_map(|j| format!("172.20.{j}.0/25")),
        2 => select(vec!["10.0.0.0/8", "192.168.0.0/16", "100.64.0.0/16", "fd00::/16", "0.0.0.0/0"])
            .prop_map(str::to_owned),
    ];
    proptest::option::weighted(0.25, proptest::collection::vec(range, 1..6))
}

/// What people of a cluster out of `n` call its own: mostly nothing, and then any part of anything.
fn local(n: usize) -> impl Strategy<Value = Vec<String>> {
    let network = prop_oneof![
        (member(n), 0..5usize).prop_map(|(j, use_)| declared(j)[use_].clone()),
        (member(n), 0..6u8).prop_map(|(j, k)| format!("10.{j}.{k}.0/25")),
        (member(n), 0..6u8).prop_map(|(j, k)| format!("192.168.{j}.{k}/32")),
        (member(n), 1..3u8).prop_map(|(j, k)| format!("fd00:{j}:0:{k}::/64")),
    ];
    let networks = proptest::collection::btree_set(network, 1..3);
    proptest::option::weighted(0.15, networks).prop_map(|it| it.into_iter().flatten().collect())
}

fn anchors(i: usize) -> impl Strategy<Value = Vec<Anchor>> {
    let nodes = proptest::collection::btree_set(
        (0..5usize).prop_map(|position| format!("node-{position}")),
        0..3,
    );
    let anchor = |ranges: Option<String>| {
        let parts = (nodes.clone(), select(vec![1u16, 2, 4, 256]));
        parts.prop_map(move |(nodes, count)| Anchor {
            ranges: ranges.clone(),
            nodes: nodes.into_iter().collect(),
            count,
        })
    };
    let [_, _, _, services, hosts] = declared(i);
    prop_oneof![
        3 => Just(Vec::new()),
        1 => anchor(None).prop_map(|it| vec![it]),
        1 => (anchor(Some(services)), anchor(None)).prop_map(|(a, b)| vec![a, b]),
        1 => anchor(Some(hosts)).prop_map(|it| vec![it]),
    ]
}

fn cluster(i: usize, n: usize) -> impl Strategy<Value = Cluster> {
    let nodes = (0..5usize).prop_flat_map(move |count| {
        (0..count).map(|position| claims(i, n, position)).collect::<Vec<_>>()
    });
    let granularity = proptest::option::of(select(vec!["Location", "Full", "Cross"]));
    let form = (any::<bool>(), granularity);
    let written = (anchors(i), local(n), advertise());
    (form, [accepted(n), accepted(n)], written, nodes).prop_map(
        move |((flat, granularity), accepted, (anchors, local, advertise), nodes)| {
            let cluster = Cluster {
                flat,
                granularity,
                behind_nat: false,
                selects: false,
                accepted,
                anchors,
                advertise: None,
                local,
                nodes,
            };
            cluster.advertising(i, advertise)
        },
    )
}

/// What a cluster advertises; mostly the default.
fn advertise() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::weighted(
        0.5,
        select(vec![
            "{ podCIDRs: Merged }",
            "{ podCIDRs: Merged, nodeAddresses: false, wireguardAddresses: None }",
            "{ nodeAddresses: false }",
            "{ wireguardAddresses: None }",
            "{ wireguardAddresses: Carrier }",
            "{ podCIDRs: Declared }",
            "{ podCIDRs: Declared, nodeAddresses: false, wireguardAddresses: Carrier }",
        ]),
    )
}

pub(super) fn world() -> impl Strategy<Value = World> {
    (2..5usize).prop_flat_map(|n| {
        let clusters = (0..n).map(|i| cluster(i, n)).collect::<Vec<_>>();
        let topology = select(vec![
            "{ mode: FullMesh }",
            "{ mode: Hub, hubs: [c1] }",
            "{ mode: Hub, hubs: [m0] }",
        ]);
        // Of two clusters behind NAT, one that loses its endpoints takes the other's Peers along; that
        // is what both of them declared.
        let nat = proptest::option::weighted(0.8, 0..n);
        let externals = external::externals(n);
        (topology, clusters, nat, externals).prop_map(|(topology, mut clusters, nat, externals)| {
            if let Some(cluster) = nat.and_then(|it| clusters.get_mut(it)) {
                cluster.behind_nat = true;
            }
            World { topology, clusters, externals }
        })
    })
}

/// A target and a source that see only each other, in either order, before and after one node of the
/// target claims what is the source's.
#[derive(Clone, Debug)]
pub(super) struct OneNode {
    pub(super) before: World,
    pub(super) after: World,
    pub(super) target: usize,
    /// The attacker's place among the target's nodes.
    pub(super) attacker: usize,
}

impl Cluster {
    /// Lets it advertise something, with all that this needs.
    fn advertising(mut self, i: usize, advertise: Option<&'static str>) -> Self {
        let gives = |what: &str| advertise.is_some_and(|it| it.contains(what));
        // A flat list does not contain what its ranges are for, so anchors name them.
        let [pods, _, subnet, ..] = declared(i);
        let named = |range: String| Some(range).filter(|_| self.flat);
        let (pods, subnet) = (named(pods), named(subnet));
        if gives("Declared") {
            self.granularity = Some("Location");
            let named = self.anchors.iter().flat_map(|it| it.nodes.clone());
            let nodes: BTreeSet<String> = named.chain(["node-1".to_owned()]).collect();
            self.anchors =
                vec![Anchor { ranges: pods, nodes: nodes.into_iter().collect(), count: 1 }];
        }
        if gives("Carrier") && self.flat {
            self.anchors.push(Anchor {
                ranges: subnet,
                nodes: vec!["node-1".to_owned()],
                count: 1,
            });
        }
        self.advertise = advertise;
        self
    }

    /// Returns whether named nodes carry its declared pod ranges, which no `nodeSelector` can undo.
    pub(super) fn declares_pods(&self) -> bool {
        let advertised = self.advertised();
        advertised.is_some_and(|it| it.contains("Declared"))
    }

    /// Returns what it advertises, as far as its other fields let it.
    fn advertised(&self) -> Option<&'static str> {
        let gives = |what: &str| self.advertise.is_some_and(|it| it.contains(what));
        let is_named = |it: &Anchor| it.ranges.is_some() == self.flat && !it.nodes.is_empty();
        let is_carried = self.anchors.iter().any(|it| is_named(it) && it.count == 1);
        let is_declared = self.granularity == Some("Location") && !self.selects && is_carried;
        let is_wrong =
            gives("Declared") && !is_declared || gives("Carrier") && self.flat && !is_carried;
        if is_wrong {
            return Some("{ podCIDRs: Merged }");
        }
        self.advertise
    }

    /// A cluster without nodes.
    fn plain(granularity: &'static str) -> Self {
        Self {
            flat: false,
            granularity: Some(granularity),
            behind_nat: false,
            selects: false,
            accepted: [None, None],
            anchors: Vec::new(),
            advertise: None,
            local: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

/// An honest node of cluster `i`, on a network of its own cluster that is not declared.
fn honest(i: usize, position: usize) -> Claims {
    Claims {
        name: format!("node-{position}"),
        pods: vec![format!("10.{i}.{position}.0/24")],
        wireguard: Some(format!("100.64.{i}.{}/16", position + 1)),
        key: Some(100 * i + position),
        endpoint: Some(format!("198.51.{i}.{position}:51820")),
        kilo_endpoint: Some(format!("198.51.{i}.{position}:51820")),
        internal: Some(format!("10.200.{i}.{position}/24")),
        is_forced: false,
        addresses: Vec::new(),
        location: Some("x"),
        granularity: None,
        leads: false,
        stale: false,
        label: Some("yes"),
    }
}

/// A cluster of honest nodes.
pub(super) fn honest_cluster(i: usize, count: usize, granularity: &'static str) -> Cluster {
    Cluster {
        nodes: (0..count).map(|position| honest(i, position)).collect(),
        ..Cluster::plain(granularity)
    }
}

/// Draws an address of cluster `i`, with the network that a node may report.
fn interface_of(i: usize) -> impl Strategy<Value = String> {
    let host = prop_oneof![
        (0..255u8).prop_map(move |k| format!("192.168.{i}.{k}")),
        (0..255u8).prop_map(move |k| format!("172.20.{i}.{k}")),
        (0..3u8, 0..255u8).prop_map(move |(j, k)| format!("10.{i}.{j}.{k}")),
        (0..5u8).prop_map(move |k| format!("100.64.{i}.{k}")),
    ];
    (host, select(vec![16u8, 20, 24, 25, 30, 32]))
        .prop_map(|(host, length)| format!("{host}/{length}"))
}

pub(super) fn one_node() -> impl Strategy<Value = OneNode> {
    (0..2usize, 3..8usize).prop_flat_map(|(target, count)| {
        let source = 1 - target;
        // Together with the attacker they are not a majority.
        let minority = proptest::collection::vec(interface_of(source), 0..=(count / 2 - 1));
        let six = format!("fd00:{source}::9/64");
        let internal = prop_oneof![4 => interface_of(source), 1 => Just(six)];
        let attack = (
            proptest::option::of(internal),
            proptest::option::of(interface_of(source)),
            proptest::option::of(interface_of(source)),
            select(vec!["x", "y"]),
            any::<bool>(),
        );
        // Whether the pods have IPv6 CIDRs too, that of the attacker first, and whether it is silent.
        let pods = (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.2));
        let forms = (any::<bool>(), select(vec!["Location", "Full"]));
        (forms, minority, attack, pods).prop_map(move |(forms, minority, attack, pods)| {
            let (flat, granularity) = forms;
            let (is_dual, is_swapped, stale) = pods;
            let node = |i: usize, position: usize| {
                let mut node = honest(i, position);
                let six = format!("fd00:{i}:0:{position}::/64");
                node.pods.extend(is_dual.then_some(six));
                node
            };
            let cluster = |i: usize, count: usize, granularity| Cluster {
                flat,
                nodes: (0..count).map(|position| node(i, position)).collect(),
                ..Cluster::plain(granularity)
            };
            let mut clusters = vec![cluster(0, 3, "Full"), cluster(1, 3, "Full")];
            clusters[target] = cluster(target, count, granularity);
            for (node, interface) in clusters[target].nodes.iter_mut().zip(minority) {
                node.internal = Some(interface);
            }
            let before = World { topology: "{ mode: FullMesh }", clusters, externals: Vec::new() };
            let mut after = before.clone();
            let (internal, endpoint, dialled, location, is_forced) = attack;
            let port = |it: String| format!("{}:51820", it.split('/').next().unwrap_or_default());
            let attacker = count - 1;
            let node = &mut after.clusters[target].nodes[attacker];
            node.internal = internal.or(node.internal.take());
            node.kilo_endpoint = endpoint.map(port).or(node.kilo_endpoint.take());
            node.endpoint = dialled.map(port).or(node.endpoint.take());
            node.location = Some(location);
            node.is_forced = is_forced;
            node.stale = stale;
            if is_swapped {
                node.pods.reverse();
            }
            OneNode { before, after, target, attacker }
        })
    })
}
