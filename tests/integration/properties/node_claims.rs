//! One node's claims never fail the mesh: no value of a node changes the exit code of a command about a healthy fleet.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::clustermesh;

/// A fleet without problems.
#[derive(Clone, Copy, Debug)]
struct HealthyFleet {
    is_flat: bool,
    granularity: &'static str,
    clusters: usize,
    nodes: usize,
}

/// Values of one node.
#[derive(Clone, Debug)]
struct NodeClaims {
    cluster: usize,
    node: usize,
    values: Vec<NodeClaim>,
}

#[derive(Clone, Debug)]
enum NodeClaim {
    Annotation(&'static str, String),
    PodCidrs(Vec<String>),
    Address(&'static str, String),
    NoExternalAddress,
    /// A mark in the snapshot.
    Mark(&'static str),
    /// Into a location of its own, as a node that Kilo has not elected yet.
    Moves,
}

/// What each healthy fleet meets.
const EXPECTATIONS: &str = "
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - { name: pods, from: { clusters: [c1, c2] }, to: { other: true }, expect: Reach }
  - { name: nodes, from: { clusters: [c1, c2], class: Node }, to: { other: true }, class: Node, expect: Reach }
";

fn cluster_name(cluster: usize) -> String {
    format!("c{cluster}")
}

fn key(cluster: usize, node: usize) -> String {
    STANDARD.encode([u8::try_from(16 * cluster + node).unwrap(); 32])
}

impl HealthyFleet {
    fn mesh(self) -> String {
        let entries = (1..=self.clusters).map(|i| {
            let ranges = if self.is_flat {
                format!("allowedNetworks: [10.{i}.0.0/16, 100.64.{i}.0/24, 192.168.{i}.0/24]")
            } else {
                format!(
                    "podCIDRs: [10.{i}.0.0/16], wireguardCIDR: 100.64.{i}.0/24, \
                     serviceCIDR: 172.20.{i}.0/24, additionalCIDRs: [192.168.{i}.0/24]"
                )
            };
            format!("    - {{ name: c{i}, {ranges}, granularity: {} }}\n", self.granularity)
        });
        let entries: String = entries.collect();
        format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec:\n  clusters:\n{entries}"
        )
    }

    fn node(self, cluster: usize, node: usize) -> Value {
        let external = format!("198.18.{cluster}.{node}");
        let leads = self.granularity != "Location" || node == 1;
        let tunnel = if leads { format!("100.64.{cluster}.{node}/24") } else { String::new() };
        json!({
            "addresses": [
                { "address": format!("192.168.{cluster}.{node}"), "type": "InternalIP" },
                { "address": external, "type": "ExternalIP" },
            ],
            "annotations": {
                "kilo.squat.ai/endpoint": format!("{external}:51820"),
                "kilo.squat.ai/granularity": self.granularity.to_lowercase(),
                "kilo.squat.ai/internal-ip": format!("192.168.{cluster}.{node}/24"),
                "kilo.squat.ai/key": key(cluster, node),
                "kilo.squat.ai/last-seen": "1700000000",
                "kilo.squat.ai/location": "x",
                "kilo.squat.ai/persistent-keepalive": "25",
                "kilo.squat.ai/wireguard-ip": tunnel,
            },
            "labels": {},
            "name": format!("n{node}"),
            "podCIDRs": [format!("10.{cluster}.{node}.0/24")],
            "uid": format!("{cluster}-{node}"),
        })
    }

    /// Writes the snapshots, with the claims of one node.
    fn write(self, folder: &Path, claims: Option<&NodeClaims>) {
        fs::create_dir_all(folder.join("snapshots")).unwrap();
        fs::write(folder.join("mesh.yaml"), self.mesh()).unwrap();
        fs::write(folder.join("expectations.yaml"), EXPECTATIONS).unwrap();
        for cluster in 1..=self.clusters {
            let mut nodes: Vec<Value> = (1..=self.nodes).map(|it| self.node(cluster, it)).collect();
            if let Some(claims) = claims.filter(|it| it.cluster == cluster) {
                let node = &mut nodes[claims.node - 1];
                claims.values.iter().for_each(|it| it.apply(node));
            }
            let snapshot = json!({
                "apiVersion": "kilo-clustermesh.io/v1",
                "cluster": cluster_name(cluster),
                "kind": "NodeSnapshot",
                "nodes": nodes,
            });
            let file = folder.join(format!("snapshots/c{cluster}.json"));
            fs::write(file, snapshot.to_string()).unwrap();
        }
    }
}

impl NodeClaim {
    fn apply(&self, node: &mut Value) {
        match self {
            Self::Annotation(key, value) => {
                let key = if key.contains('/') {
                    (*key).to_owned()
                } else {
                    format!("kilo.squat.ai/{key}")
                };
                node["annotations"][key] = json!(value);
            }
            Self::PodCidrs(ranges) => node["podCIDRs"] = json!(ranges),
            Self::Address(kind, address) => {
                let address = json!({ "address": address, "type": kind });
                node["addresses"].as_array_mut().unwrap().push(address);
            }
            Self::NoExternalAddress => node["addresses"].as_array_mut().unwrap().truncate(1),
            Self::Mark(mark) => node[*mark] = json!(true),
            Self::Moves => {
                for (key, value) in [("location", "z"), ("wireguard-ip", "")] {
                    Self::Annotation(key, value.to_owned()).apply(node);
                }
            }
        }
    }
}

/// Returns what a node of a cluster can claim, beside another one.
fn claimable(cluster: usize, node: usize, other: usize) -> Vec<NodeClaim> {
    let endpoints = [
        "127.0.0.1:51820".to_owned(),
        "192.0.2.1:9".to_owned(),
        "0.0.0.0:51820".to_owned(),
        "somebody.example:51820".to_owned(),
        "x".to_owned(),
        format!("198.18.{cluster}.2:51820"),
        format!("198.18.{other}.1:51820"),
        format!("198.18.{other}.1:5"),
        format!("192.168.{other}.1:51820"),
        format!("10.{cluster}.2.5:51820"),
        format!("10.{other}.1.5:51820"),
        format!("100.64.{other}.1:51820"),
        format!("172.20.{other}.9:51820"),
        // The private ones of its own, one of no cluster, and another port.
        format!("192.168.{cluster}.{node}:51820"),
        "10.77.0.1:51820".to_owned(),
        format!("198.18.{cluster}.{node}:5"),
    ];
    let addresses = [
        format!("192.168.{cluster}.2/24"),
        format!("192.168.{other}.1/24"),
        format!("10.{cluster}.2.5/24"),
        format!("10.{other}.1.5/16"),
        format!("100.64.{cluster}.1/24"),
        format!("100.64.{cluster}.2/24"),
        format!("172.20.{other}.9/24"),
        format!("198.18.{other}.1/32"),
        "0.0.0.0/0".to_owned(),
        format!("192.168.{other}.1/16"),
        format!("198.18.{other}.1/24"),
        "fd00::1/64".to_owned(),
        "-".to_owned(),
        String::new(),
    ];
    let ranges = [
        "0.0.0.0/0".to_owned(),
        "fd00::/64".to_owned(),
        "8.8.8.8/24".to_owned(),
        format!("10.{cluster}.2.0/24"),
        format!("10.{cluster}.2.128/26"),
        format!("10.{cluster}.0.0/16"),
        format!("10.{other}.1.0/24"),
        format!("100.64.{cluster}.0/24"),
        format!("192.168.{cluster}.0/24"),
        format!("198.18.{other}.0/24"),
        format!("172.20.{cluster}.0/24"),
        format!("192.168.{other}.0/24"),
        format!("198.18.{other}.1/32"),
    ];
    let annotation = NodeClaim::Annotation;
    let mut claims: Vec<NodeClaim> = [(cluster, 1), (cluster, 2), (other, 1), (other, 2)]
        .into_iter()
        .map(|(cluster, node)| annotation("key", key(cluster, node)))
        .collect();
    for it in &endpoints {
        for name in ["endpoint", "force-endpoint", "clustermesh-endpoint"] {
            claims.push(annotation(name, it.clone()));
        }
    }
    for it in &addresses {
        for name in ["internal-ip", "force-internal-ip", "wireguard-ip"] {
            claims.push(annotation(name, it.clone()));
        }
    }
    for it in &ranges {
        claims.push(annotation("allowed-location-ips", it.clone()));
        claims.push(NodeClaim::PodCidrs(vec![it.clone()]));
        claims.push(NodeClaim::PodCidrs(vec![it.clone(), "fd00:9::/64".to_owned()]));
    }
    let values = [
        ("key", "x"),
        ("location", "y"),
        ("location", ""),
        ("leader", "true"),
        ("granularity", "full"),
        ("granularity", "location"),
        ("persistent-keepalive", "0"),
        ("last-seen", "0"),
        ("discovered-endpoints", "x"),
        ("cni-compatibility-ip", "10.9.9.9/24"),
        ("network.cilium.io/ipv4-pod-cidr", "10.9.0.0/24"),
        ("projectcalico.org/IPv4IPIPTunnelAddr", "10.9.0.1"),
        ("flannel.alpha.coreos.com/backend-type", "wireguard"),
    ];
    claims.extend(values.map(|(name, value)| annotation(name, value.to_owned())));
    for kind in ["InternalIP", "ExternalIP"] {
        claims.push(NodeClaim::Address(kind, format!("198.18.{other}.1")));
        claims.push(NodeClaim::Address(kind, format!("192.168.{other}.1")));
    }
    claims.extend(["stale", "lostLead", "carriedOver"].map(NodeClaim::Mark));
    claims.extend([
        NodeClaim::PodCidrs(Vec::new()),
        NodeClaim::NoExternalAddress,
        NodeClaim::Moves,
    ]);
    claims
}

fn fleet_with_claims() -> impl Strategy<Value = (HealthyFleet, NodeClaims)> {
    let granularities = select(&["Full", "Location", "Cross"][..]);
    // Two clusters have nothing else to prove.
    let fleet = (any::<bool>(), granularities, 2..4usize, 2..4usize).prop_map(
        |(is_flat, granularity, clusters, nodes)| HealthyFleet {
            is_flat,
            granularity,
            clusters,
            nodes,
        },
    );
    fleet.prop_flat_map(|fleet| {
        (1..=fleet.clusters, 1..=fleet.nodes).prop_flat_map(move |(cluster, node)| {
            let other = cluster % fleet.clusters + 1;
            let values = prop::collection::vec(select(claimable(cluster, node, other)), 1..3);
            values.prop_map(move |values| (fleet, NodeClaims { cluster, node, values }))
        })
    })
}

/// Renders a fleet without the claims, and returns what the first command that fails with them prints.
fn failed(fleet: HealthyFleet, claims: &NodeClaims) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fleet.write(folder, None);
    for command in ["render", "verify"] {
        let run = clustermesh(folder, &[command]);
        assert_eq!(run.code, 0, "{}", run.stdout);
    }
    fleet.write(folder, Some(claims));
    let mut runs = ["validate", "render", "verify"]
        .into_iter()
        .map(|command| (command, clustermesh(folder, &[command])));
    let (command, run) = runs.find(|it| it.1.code != 0)?;
    Some(format!("{command}: {}{}", run.stdout, run.stderr))
}

/// The number of cases: more with `PROPTEST_CASES`.
fn cases() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.map_or(64, |it| it.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20, failure_persistence: None, ..ProptestConfig::default() })]

    /// The errors of a person are errors, but a node that lies has warnings.
    #[test]
    fn no_claim_of_one_node_changes_an_exit_code((fleet, claims) in fleet_with_claims()) {
        prop_assert_eq!(failed(fleet, &claims), None);
    }
}

/// Shapes that once failed, which few random cases have.
#[test]
fn no_claim_of_the_only_leader_changes_an_exit_code() {
    let annotation = |key, value: &str| NodeClaim::Annotation(key, value.to_owned());
    let key_of_other = || annotation("key", &key(2, 1));
    let shapes = [
        vec![key_of_other(), annotation("clustermesh-endpoint", "192.168.2.1:51820")],
        vec![key_of_other(), annotation("internal-ip", "")],
        vec![annotation("clustermesh-endpoint", "192.168.1.1:51820")],
        vec![annotation("clustermesh-endpoint", "10.77.0.1:51820")],
        vec![annotation("endpoint", "198.18.1.1:5")],
        vec![NodeClaim::Mark("stale"), annotation("internal-ip", "-")],
        vec![NodeClaim::Mark("stale")],
        vec![NodeClaim::Moves],
    ];
    for is_flat in [false, true] {
        for clusters in [2, 3] {
            for nodes in [2, 3] {
                let fleet = HealthyFleet { is_flat, granularity: "Location", clusters, nodes };
                for values in &shapes {
                    let claims = NodeClaims { cluster: 1, node: 1, values: values.clone() };
                    let failed = failed(fleet, &claims);
                    assert_eq!(failed, None, "{fleet:?} {claims:?}");
                }
            }
        }
    }
}
