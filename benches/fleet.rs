//! Made-up fleets: meshes and snapshots as Kilo would have left them, the same on every machine.

use std::fmt;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::random::Random;

/// The name of every mesh made here.
const MESH: &str = "fleet";
/// Kilo's port, and the operator's default.
const PORT: u16 = 51820;

/// Who is in a mesh, and who sees whom.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Everyone sees everyone.
    Full { clusters: u32, nodes: u32 },
    /// One hub, and spokes that see nobody else.
    Hub { nodes: u32, spokes: u32, each: u32 },
}

/// A cluster: its networks follow from its place in the list.
struct Cluster {
    name: String,
    index: u32,
    nodes: u32,
    form: Form,
}

/// How an entry declares its networks.
enum Form {
    /// `podCIDRs`, `wireguardCIDR`, `serviceCIDR`, `additionalCIDRs`.
    Typed,
    /// `allowedNetworks`.
    Flat,
}

/// A slice of private space: its parts are given out in order, and never overlap.
struct Pool {
    base: Ipv4Addr,
    prefix: u8,
}

/// Room for 256 clusters of 245 nodes each, disjoint from each other and from [`ENDPOINTS`].
const PODS: Pool = Pool::new([10, 0, 0, 0], 16);
/// Kilo's subnet, one a cluster.
const WIREGUARD: Pool = Pool::new([100, 64, 0, 0], 20);
/// Services, one range a cluster.
const SERVICES: Pool = Pool::new([172, 16, 0, 0], 20);
/// The LAN that the nodes of a cluster share.
const LANS: Pool = Pool::new([192, 168, 0, 0], 24);
/// Where the nodes are met from outside; no declared range covers it.
const ENDPOINTS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

impl Shape {
    /// What stands on disk afterwards: one document each.
    pub(crate) fn peers(self) -> u32 {
        match self {
            Self::Full { clusters, nodes } => clusters * (clusters - 1) * nodes,
            Self::Hub {
                nodes,
                spokes,
                each,
            } => spokes * (each + nodes),
        }
    }

    /// A word for folders.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::Full { .. } => "full",
            Self::Hub { .. } => "hub",
        }
    }

    /// Writes `mesh.yaml` and `snapshots/`, and `mesh.json` for readers without YAML.
    pub(crate) fn write(self, folder: &Path) -> anyhow::Result<()> {
        let clusters = self.clusters();
        let mesh = self.mesh(&clusters);
        let snapshots = folder.join("snapshots");
        fs::create_dir_all(&snapshots).context("no folder for snapshots")?;
        fs::write(folder.join("mesh.json"), pretty(&mesh)?)?;
        fs::write(folder.join("mesh.yaml"), serde_yaml::to_string(&mesh)?)?;
        let mut random = Random(0x6b69_6c6f);
        let mut met = 0;
        for cluster in &clusters {
            let file = snapshots.join(format!("{}.json", cluster.name));
            fs::write(file, pretty(&cluster.snapshot(&mut random, met))?)?;
            met += cluster.nodes;
        }
        Ok(())
    }

    fn clusters(self) -> Vec<Cluster> {
        match self {
            Self::Full { clusters, nodes } => (0..clusters)
                .map(|index| Cluster {
                    name: format!("cluster-{index:02}"),
                    index,
                    nodes,
                    form: Form::Typed,
                })
                .collect(),
            Self::Hub {
                nodes,
                spokes,
                each,
            } => {
                let hub = Cluster {
                    name: "hub".to_owned(),
                    index: 0,
                    nodes,
                    form: Form::Typed,
                };
                let spokes = (1..=spokes).map(|index| Cluster {
                    name: format!("spoke-{index:03}"),
                    index,
                    nodes: each,
                    form: Form::Flat,
                });
                std::iter::once(hub).chain(spokes).collect()
            }
        }
    }

    fn mesh(self, clusters: &[Cluster]) -> Value {
        let entries: Vec<Value> = clusters.iter().map(Cluster::entry).collect();
        let topology = match self {
            Self::Full { .. } => json!({ "mode": "FullMesh" }),
            Self::Hub { .. } => json!({ "mode": "Hub", "hubs": ["hub"] }),
        };
        json!({
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "ClusterMesh",
            "metadata": { "name": MESH },
            "spec": { "clusters": entries, "topology": topology },
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { clusters, nodes } => {
                write!(f, "full mesh: {clusters} clusters of {nodes} nodes")
            }
            Self::Hub {
                nodes,
                spokes,
                each,
            } => {
                write!(f, "hub of {nodes} nodes, {spokes} spokes of {each}")
            }
        }
    }
}

impl Cluster {
    fn entry(&self) -> Value {
        let pods = PODS.part(self.index);
        let wireguard = WIREGUARD.part(self.index);
        let services = SERVICES.part(self.index);
        let lan = LANS.part(self.index);
        match self.form {
            Form::Typed => json!({
                "name": self.name,
                "podCIDRs": [pods],
                "wireguardCIDR": wireguard,
                "serviceCIDR": services,
                "additionalCIDRs": [lan],
            }),
            Form::Flat => json!({
                "name": self.name,
                "allowedNetworks": [pods, wireguard, services, lan],
                "persistentKeepalive": 25,
            }),
        }
    }

    /// What `clustermesh snapshot` would have written. `met`: how many nodes came before.
    fn snapshot(&self, random: &mut Random, met: u32) -> Value {
        let mut names: Vec<String> = (0..self.nodes)
            .map(|_| format!("{}-pool-{:08x}", self.name, random.word() >> 32))
            .collect();
        // Kilo numbers its nodes by name too.
        names.sort();
        let nodes: Vec<Value> = (0..)
            .zip(&names)
            .map(|(place, name)| self.node(random, name, place, met + place))
            .collect();
        json!({
            "apiVersion": "kilo-clustermesh.io/v1",
            "cluster": self.name,
            "kind": "NodeSnapshot",
            "nodes": nodes,
        })
    }

    fn node(&self, random: &mut Random, name: &str, place: u32, met: u32) -> Value {
        let internal = LANS.address(self.index, 10 + place);
        let external = Ipv4Addr::from_bits(u32::from(ENDPOINTS) + 1 + met);
        let endpoint = format!("{external}:{PORT}");
        json!({
            "addresses": [
                { "address": internal, "type": "InternalIP" },
                { "address": external, "type": "ExternalIP" },
            ],
            "annotations": {
                "kilo.squat.ai/endpoint": endpoint,
                "kilo.squat.ai/force-endpoint": endpoint,
                "kilo.squat.ai/granularity": "full",
                "kilo.squat.ai/internal-ip": format!("{internal}/{}", LANS.prefix),
                "kilo.squat.ai/key": random.key(),
                "kilo.squat.ai/wireguard-ip":
                    format!("{}/{}", WIREGUARD.address(self.index, 1 + place), WIREGUARD.prefix),
            },
            "labels": self.labels(name, place),
            "name": name,
            "podCIDRs": [format!("{}/24", PODS.address(self.index, place << 8))],
            "uid": random.uid(),
        })
    }

    fn labels(&self, name: &str, place: u32) -> Value {
        let region = format!("region-{}", 1 + self.index % 7);
        let zone = format!("{region}{}", ["a", "b", "c"][(place % 3) as usize]);
        json!({
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/instance-type": "c5.2xlarge",
            "beta.kubernetes.io/os": "linux",
            "failure-domain.beta.kubernetes.io/region": region,
            "failure-domain.beta.kubernetes.io/zone": zone,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": "",
            "node.kubernetes.io/instance-type": "c5.2xlarge",
            "topology.kubernetes.io/region": region,
            "topology.kubernetes.io/zone": zone,
        })
    }
}

impl Pool {
    const fn new([a, b, c, d]: [u8; 4], prefix: u8) -> Self {
        Self {
            base: Ipv4Addr::new(a, b, c, d),
            prefix,
        }
    }

    fn part(&self, index: u32) -> String {
        format!("{}/{}", self.address(index, 0), self.prefix)
    }

    fn address(&self, index: u32, host: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::from(self.base) + (index << (32 - self.prefix)) + host)
    }
}

/// Sorted keys, two spaces, a newline at the end: as a snapshot is written.
fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
