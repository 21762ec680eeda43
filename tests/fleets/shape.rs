//! Made-up fleets: meshes and snapshots as Kilo would have left them, the same on every machine.
#![allow(dead_code, reason = "the benchmarks write to disk and print")]

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::random::Random;

/// The name of every mesh made here.
const MESH: &str = "fleet";
/// Kilo's port, and the operator's default.
const PORT: u16 = 51820;

/// A fleet: its clusters, their links, and how the nodes of a cluster are placed.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) layout: Layout,
    pub(crate) lan: Lan,
    /// Whether every node has an IPv6 pod CIDR too.
    pub(crate) is_dual_stack: bool,
    /// The number of locations of a cluster with granularity `location`; zero for `full`.
    pub(crate) locations: u32,
    /// Whether every second cluster has the pod CIDRs of the one before it.
    pub(crate) has_overlap: bool,
}

/// The clusters of a fleet and their links.
#[derive(Clone, Copy)]
pub(crate) enum Layout {
    /// Every cluster is linked with every other one.
    Full { clusters: u32, nodes: u32 },
    /// One hub that all spokes are linked with; spokes are not linked with each other.
    Hub { nodes: u32, spokes: u32, each: u32 },
}

/// The private network that the nodes of a cluster are in.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Lan {
    /// One of the cluster's own, which the mesh declares.
    Declared,
    /// One of the cluster's own, which no mesh declares.
    Own,
    /// The same network, with the same addresses, in this many clusters; no mesh declares it.
    SharedBy(u32),
    /// A network for each location, the same ones in every cluster; no mesh declares them.
    ByLocation,
}

/// A cluster: its networks follow from its place in the list.
struct Cluster {
    name: String,
    index: u32,
    nodes: u32,
    form: Form,
    shape: Shape,
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

/// IPv6 pods: a /48 a cluster, a /64 a node.
const PODS_V6: u128 = 0xfd00_u128 << 112;
/// Room for 500 clusters of 245 nodes each, disjoint from each other and from [`ENDPOINTS`].
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
    /// Granularity `full`, IPv4, every cluster with a LAN of its own that the mesh declares.
    pub(crate) const fn new(layout: Layout) -> Self {
        Self { layout, lan: Lan::Declared, is_dual_stack: false, locations: 0, has_overlap: false }
    }

    /// The number of Peers that the rendered tree has.
    pub(crate) fn peers(self) -> u32 {
        let given = |nodes: u32| match self.locations {
            0 => nodes,
            locations => nodes.min(locations),
        };
        match self.layout {
            Layout::Full { clusters, nodes } => clusters * (clusters - 1) * given(nodes),
            Layout::Hub { nodes, spokes, each } => spokes * (given(each) + given(nodes)),
        }
    }

    /// The number of clusters.
    pub(crate) fn clusters(self) -> u32 {
        match self.layout {
            Layout::Full { clusters, .. } => clusters,
            Layout::Hub { spokes, .. } => 1 + spokes,
        }
    }

    /// Writes `mesh.yaml` and `snapshots/`, and `mesh.json` for readers without YAML.
    pub(crate) fn write(self, folder: &Path) -> anyhow::Result<()> {
        let mesh = self.mesh();
        let snapshots = folder.join("snapshots");
        fs::create_dir_all(&snapshots).context("no folder for snapshots")?;
        fs::write(folder.join("mesh.json"), pretty(&mesh)?)?;
        fs::write(folder.join("mesh.yaml"), serde_yaml::to_string(&mesh)?)?;
        for (name, snapshot) in self.snapshots() {
            let file = snapshots.join(format!("{name}.json"));
            fs::write(file, pretty(&snapshot)?)?;
        }
        Ok(())
    }

    /// The snapshots by cluster.
    pub(crate) fn snapshots(self) -> Vec<(String, Value)> {
        let mut random = Random(0x6b69_6c6f);
        let mut met = 0;
        let mut snapshots = Vec::new();
        for cluster in self.members() {
            let snapshot = cluster.snapshot(&mut random, met);
            met += cluster.nodes;
            snapshots.push((cluster.name, snapshot));
        }
        snapshots
    }

    /// The mesh.
    pub(crate) fn mesh(self) -> Value {
        let entries: Vec<Value> = self.members().iter().map(Cluster::entry).collect();
        let topology = match self.layout {
            Layout::Full { .. } => json!({ "mode": "FullMesh" }),
            Layout::Hub { .. } => json!({ "mode": "Hub", "hubs": ["hub"] }),
        };
        json!({
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "ClusterMesh",
            "metadata": { "name": MESH },
            "spec": { "clusters": entries, "topology": topology },
        })
    }

    fn members(self) -> Vec<Cluster> {
        let member = |name, index, nodes, form| Cluster { name, index, nodes, form, shape: self };
        match self.layout {
            Layout::Full { clusters, nodes } => (0..clusters)
                .map(|index| member(format!("cluster-{index:02}"), index, nodes, Form::Typed))
                .collect(),
            Layout::Hub { nodes, spokes, each } => {
                let hub = member("hub".to_owned(), 0, nodes, Form::Typed);
                let spokes = (1..=spokes)
                    .map(|index| member(format!("spoke-{index:03}"), index, each, Form::Flat));
                std::iter::once(hub).chain(spokes).collect()
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { clusters, nodes } => {
                write!(f, "full mesh: {clusters} clusters of {nodes} nodes")
            }
            Self::Hub { nodes, spokes, each } => {
                write!(f, "hub of {nodes} nodes, {spokes} spokes of {each}")
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layout.fmt(f)?;
        match self.lan {
            Lan::Declared => {}
            Lan::Own => f.write_str(", undeclared LANs of their own")?,
            Lan::SharedBy(clusters) if clusters < self.clusters() => {
                write!(f, ", one LAN for every {clusters} clusters")?;
            }
            Lan::SharedBy(_) => f.write_str(", the same LAN everywhere")?,
            Lan::ByLocation => f.write_str(", the same LANs for locations")?,
        }
        if self.is_dual_stack {
            f.write_str(", dual stack")?;
        }
        if self.has_overlap {
            f.write_str(", overlapping pod CIDRs")?;
        }
        match self.locations {
            0 => Ok(()),
            locations => write!(f, ", {locations} locations"),
        }
    }
}

impl Cluster {
    fn entry(&self) -> Value {
        let wireguard = WIREGUARD.part(self.index);
        let services = SERVICES.part(self.index);
        let mut pods = vec![PODS.part(self.pods())];
        if self.shape.is_dual_stack {
            pods.push(format!("{}/48", self.pods_v6(0)));
        }
        let lans = match self.shape.lan {
            Lan::Declared => vec![LANS.part(self.index)],
            Lan::Own | Lan::SharedBy(_) | Lan::ByLocation => Vec::new(),
        };
        match self.form {
            Form::Typed => json!({
                "name": self.name,
                "podCIDRs": pods,
                "wireguardCIDR": wireguard,
                "serviceCIDR": services,
                "additionalCIDRs": lans,
            }),
            Form::Flat => {
                let rest = [wireguard, services];
                let all: Vec<String> = pods.into_iter().chain(rest).chain(lans).collect();
                json!({
                    "name": self.name,
                    "allowedNetworks": all,
                    "persistentKeepalive": 25,
                })
            }
        }
    }

    /// The cluster whose pod CIDRs it has.
    fn pods(&self) -> u32 {
        if self.shape.has_overlap { self.index / 2 * 2 } else { self.index }
    }

    fn lan(&self, place: u32) -> u32 {
        match self.shape.lan {
            Lan::Declared | Lan::Own => self.index,
            Lan::SharedBy(clusters) => self.index / clusters,
            Lan::ByLocation => place % self.shape.locations.max(1),
        }
    }

    fn pods_v6(&self, place: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(PODS_V6 | u128::from(self.pods()) << 80 | u128::from(place) << 64)
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
        let internal = LANS.address(self.lan(place), 10 + place);
        let external = Ipv4Addr::from_bits(u32::from(ENDPOINTS) + 1 + met);
        let endpoint = format!("{external}:{PORT}");
        let mut annotations = json!({
            "kilo.squat.ai/endpoint": endpoint,
            "kilo.squat.ai/force-endpoint": endpoint,
            "kilo.squat.ai/granularity": "full",
            "kilo.squat.ai/internal-ip": format!("{internal}/{}", LANS.prefix),
            "kilo.squat.ai/key": random.key(),
            "kilo.squat.ai/wireguard-ip": "",
        });
        let locations = self.shape.locations;
        // The first node of each location leads it; only leaders have a WireGuard address.
        if locations == 0 || place < locations {
            let address = WIREGUARD.address(self.index, 1 + place);
            annotations["kilo.squat.ai/wireguard-ip"] =
                format!("{address}/{}", WIREGUARD.prefix).into();
        }
        if 0 < locations {
            annotations["kilo.squat.ai/granularity"] = "location".into();
            annotations["kilo.squat.ai/location"] =
                format!("location-{}", place % locations).into();
            if place < locations {
                annotations["kilo.squat.ai/leader"] = "".into();
            }
        }
        let mut pods = vec![format!("{}/24", PODS.address(self.pods(), place << 8))];
        if self.shape.is_dual_stack {
            pods.push(format!("{}/64", self.pods_v6(place)));
        }
        json!({
            "addresses": [
                { "address": internal, "type": "InternalIP" },
                { "address": external, "type": "ExternalIP" },
            ],
            "annotations": annotations,
            "labels": self.labels(name, place),
            "name": name,
            "podCIDRs": pods,
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
        Self { base: Ipv4Addr::new(a, b, c, d), prefix }
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
