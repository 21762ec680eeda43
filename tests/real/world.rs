//! A small random mesh: clusters, their nodes and addresses, and the manifests that the library
//! renders of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::fleet::external_snapshots;
use clustermesh::manifest;
use clustermesh::snapshot;

use crate::external::External;
use crate::random::Random;
use crate::rendered::{Snapshots, meshes, plan, snapshots, tree};

/// The port of every node's WireGuard.
pub(crate) const PORT: u16 = 51820;

/// A mesh.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) externals: Vec<External>,
    /// The only cluster that the others are linked to; none where all are linked to all.
    hub: Option<usize>,
}

/// A cluster of it.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    /// Whether only one node of each location has a tunnel; every node otherwise.
    pub(crate) by_location: bool,
    /// Whether the mesh declares the network of its nodes.
    pub(crate) declares_hosts: bool,
    /// Whether the mesh declares the range of its services.
    pub(crate) declares_services: bool,
    /// What it advertises.
    advertise: &'static str,
    /// In the order of names.
    pub(crate) nodes: Vec<Node>,
    number: u8,
}

/// A node of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Which location it is in; only a cluster cut by location cares.
    pub(crate) location: &'static str,
    /// Whether it has the leader annotation.
    pub(crate) volunteers: bool,
    /// Seconds between keepalive packets; zero for none.
    pub(crate) keepalive: u16,
    /// Whether no other cluster knows its address in the underlay, which is that of its NAT.
    pub(crate) behind_nat: bool,
    pub(crate) private_key: String,
    pub(crate) public_key: String,
    cluster: u8,
    number: u8,
}

/// The manifests of every cluster: its files by name.
pub(crate) type Manifests = BTreeMap<String, BTreeMap<String, String>>;

impl Cluster {
    /// The ranges that the mesh declares, and the address that represents all of its services.
    pub(crate) fn pods(&self) -> String {
        format!("10.{}.0.0/16", 40 + self.number)
    }

    pub(crate) fn services(&self) -> String {
        format!("10.{}.0.0/16", 100 + self.number)
    }

    pub(crate) fn service(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 100 + self.number, 0, 10)
    }

    pub(crate) fn wireguard(&self) -> String {
        format!("10.{}.0.0/16", 200 + self.number)
    }

    pub(crate) fn hosts(&self) -> String {
        format!("192.168.{}.0/24", 40 + self.number)
    }

    /// Returns an address of the Kilo subnet by its place in the order of segments.
    pub(crate) fn wireguard_address(&self, segment: usize) -> Ipv4Addr {
        let last = u8::try_from(segment + 1).unwrap();
        Ipv4Addr::new(10, 200 + self.number, 0, last)
    }
}

impl Node {
    /// The range of its pods.
    pub(crate) fn pods(&self) -> String {
        format!("10.{}.{}.0/24", 40 + self.cluster, self.number)
    }

    /// Where its pods' packets go first.
    pub(crate) fn bridge(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 40 + self.cluster, self.number, 1)
    }

    /// Its pod.
    pub(crate) fn pod(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 40 + self.cluster, self.number, 7)
    }

    /// Its address in the network of its cluster's nodes.
    pub(crate) fn internal(&self) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 40 + self.cluster, 10 + self.number)
    }

    /// Its address in the underlay.
    pub(crate) fn endpoint(&self) -> Ipv4Addr {
        let network = if self.behind_nat { 19 } else { 18 };
        Ipv4Addr::new(198, network, self.cluster, 10 + self.number)
    }

    /// Where its own cluster dials it.
    pub(crate) fn kilo_endpoint(&self) -> Ipv4Addr {
        if self.behind_nat { self.internal() } else { self.endpoint() }
    }
}

impl World {
    /// Makes a mesh up.
    pub(crate) fn random(random: &mut Random) -> io::Result<Self> {
        let count = 2 + usize::from(random.chance(35));
        let clusters = (0..count)
            .map(|number| cluster(random, u8::try_from(number).unwrap()))
            .collect::<io::Result<_>>()?;
        let hub = (count == 3 && random.chance(40)).then(|| random.below(count));
        Ok(Self { clusters, externals: Vec::new(), hub })
    }

    /// Makes a mesh up with a laptop and a router. Its clusters have different granularities, and nodes of one are behind NAT.
    pub(crate) fn with_externals(random: &mut Random) -> io::Result<Self> {
        loop {
            let mut world = Self::random(random)?;
            let clusters = &world.clusters;
            let has_nat = clusters.iter().flat_map(|it| &it.nodes).any(|it| it.behind_nat);
            let is_mixed = clusters.iter().any(|it| it.by_location && 1 < it.nodes.len());
            // Each pair takes a third of a second, in both orders.
            let nodes: usize = clusters.iter().map(|it| it.nodes.len()).sum();
            if has_nat && is_mixed && clusters.len() == 2 && nodes <= 4 {
                let names: Vec<String> = clusters.iter().map(|it| it.name.clone()).collect();
                let some = vec![random.pick(&names).clone()];
                world.externals = External::both(random, [names, some])?;
                return Ok(world);
            }
        }
    }

    /// Returns whether of all that it links, one side can dial the other: the laptop and a node behind NAT cannot.
    pub(crate) fn can_open_all(&self) -> bool {
        let hidden = self.externals.iter().filter(|it| it.is_hidden());
        let reached: Vec<&String> = hidden.flat_map(|it| &it.clusters).collect();
        let mut clusters = self.clusters.iter().filter(|it| reached.contains(&&it.name));
        !clusters.any(|it| it.nodes.iter().any(|it| it.behind_nat))
    }

    /// Returns whether two clusters are linked.
    pub(crate) fn links(&self, one: &Cluster, other: &Cluster) -> bool {
        let is_hub = |it: &Cluster| self.hub == Some(usize::from(it.number));
        self.hub.is_none() || is_hub(one) || is_hub(other)
    }

    /// Returns the mesh as a person would write it.
    pub(crate) fn mesh(&self) -> String {
        let mut yaml = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\n\
             metadata: { name: real }\nspec:\n"
            .to_owned();
        if let Some(hub) = self.hub {
            let hub = &self.clusters[hub].name;
            let _ = writeln!(yaml, "  topology: {{ mode: Hub, hubs: [{hub}] }}");
        }
        yaml.push_str("  clusters:\n");
        for cluster in &self.clusters {
            let (name, pods) = (&cluster.name, cluster.pods());
            let wireguard = cluster.wireguard();
            let granularity = cluster.granularity();
            let _ = write!(
                yaml,
                "  - name: {name}\n    podCIDRs: [{pods}]\n    wireguardCIDR: {wireguard}\n    \
                 granularity: {granularity}\n    endpointFrom: [Annotation]\n"
            );
            let _ = writeln!(yaml, "    advertise: {{ {} }}", cluster.advertise);
            if cluster.advertise.contains("Declared") {
                yaml.push_str("    anchors: [{ nodes: [node-2, node-1] }]\n");
            }
            if cluster.nodes.iter().any(|it| it.behind_nat) {
                yaml.push_str("    persistentKeepalive: 25\n");
            }
            if cluster.declares_services {
                let _ = writeln!(yaml, "    serviceCIDR: {}", cluster.services());
            }
            if cluster.declares_hosts {
                let _ = writeln!(yaml, "    additionalCIDRs: [{}]", cluster.hosts());
            }
        }
        if !self.externals.is_empty() {
            yaml.push_str("  externalPeers:\n");
        }
        yaml.extend(self.externals.iter().map(External::written));
        yaml
    }

    /// Returns the values of its nodes.
    pub(crate) fn snapshots(&self) -> Snapshots {
        let clusters = self.clusters.iter();
        let clusters = clusters.map(|it| (it.name.as_str(), it.snapshot_nodes()));
        let mut snapshots = snapshots(clusters.collect());
        snapshots.extend(external_snapshots(&meshes(&self.mesh())));
        snapshots
    }

    /// Renders it as the program does, with the WireGuard of external peers as folders of their own.
    pub(crate) fn manifests(&self) -> Manifests {
        let mut manifests = Manifests::new();
        let (meshes, snapshots) = (meshes(&self.mesh()), self.snapshots());
        let (plan, _) = plan(&meshes, &snapshots);
        for external in &plan.externals {
            let sets = plan.sets_of(external);
            let files = sets.map(|it| (manifest::file(it), manifest::text(it).to_string()));
            manifests.insert(external.cluster.to_string(), files.collect());
        }
        for (path, text) in tree(&meshes, &snapshots) {
            let (folder, file) = path.split_once('/').unwrap();
            let files = manifests.entry(folder.to_owned()).or_default();
            if file != "kustomization.yaml" {
                files.insert(file.to_owned(), text.to_string());
            }
        }
        manifests
    }
}

impl Cluster {
    fn granularity(&self) -> &'static str {
        if self.by_location { "Location" } else { "Full" }
    }

    fn snapshot_nodes(&self) -> Vec<snapshot::Node> {
        let segments = crate::segment::segments(self);
        let nodes = self.nodes.iter().enumerate().map(|(number, node)| {
            let leads = segments.iter().position(|it| it.leader == number);
            let address = leads.map(|it| format!("{}/16", self.wireguard_address(it)));
            let mut annotations = vec![
                ("endpoint", format!("{}:{PORT}", node.kilo_endpoint())),
                ("granularity", self.granularity().to_lowercase()),
                ("internal-ip", format!("{}/24", node.internal())),
                ("key", node.public_key.clone()),
                ("location", node.location.to_owned()),
                ("wireguard-ip", address.unwrap_or_default()),
            ];
            if !node.behind_nat {
                annotations.push(("clustermesh-endpoint", format!("{}:{PORT}", node.endpoint())));
            }
            if node.volunteers {
                annotations.push(("leader", String::new()));
            }
            if node.keepalive != 0 {
                annotations.push(("persistent-keepalive", node.keepalive.to_string()));
            }
            let internal = [node.internal().to_string()];
            crate::node::node(&node.name, vec![node.pods()], internal, annotations)
        });
        nodes.collect()
    }
}

fn cluster(random: &mut Random, number: u8) -> io::Result<Cluster> {
    let by_location = random.chance(35);
    let count = 1 + random.below(3) + usize::from(by_location && random.chance(50));
    let mut nodes = (1..=count.min(3))
        .map(|it| node(random, number, u8::try_from(it).unwrap()))
        .collect::<io::Result<Vec<_>>>()?;
    // All of a cluster or none of it is the usual, but Kilo does not ask for that.
    if random.chance(50) {
        let keepalive = nodes.first().map_or(0, |it| it.keepalive);
        for node in &mut nodes {
            node.keepalive = keepalive;
        }
    }
    // Of one cluster some nodes: two that are behind NAT cannot dial each other. One node stays, as the
    // anchor of the declared ranges.
    if random.chance(60) && number == 0 && !by_location {
        for node in nodes.iter_mut().skip(1) {
            node.behind_nat = true;
            node.keepalive = 25;
        }
    }
    // Only in a location one node can carry the pods of others.
    let advertise = match random.below(10) {
        0..2 => "podCIDRs: PerNode",
        2..4 => "nodeAddresses: false",
        4 => "wireguardAddresses: None",
        5 => "wireguardAddresses: Carrier",
        6..9 if by_location => "podCIDRs: Declared",
        9 if by_location => "podCIDRs: Declared, nodeAddresses: false, wireguardAddresses: None",
        _ => "podCIDRs: Merged",
    };
    Ok(Cluster {
        // The order of names is not the order of the mesh.
        name: ["east", "west", "core"][usize::from(number)].to_owned(),
        by_location,
        declares_hosts: random.chance(70),
        declares_services: random.chance(60),
        advertise,
        nodes,
        number,
    })
}

fn node(random: &mut Random, cluster: u8, number: u8) -> io::Result<Node> {
    let private_key = STANDARD.encode(random.bytes());
    Ok(Node {
        name: format!("node-{number}"),
        location: ["x", "x", "y"][random.below(3)],
        volunteers: random.chance(30),
        keepalive: if random.chance(35) { 25 } else { 0 },
        public_key: public_key(&private_key)?,
        private_key,
        behind_nat: false,
        cluster,
        number,
    })
}

/// Returns the public key of a private one.
pub(crate) fn public_key(private_key: &str) -> io::Result<String> {
    let mut wg =
        Command::new("wg").arg("pubkey").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut input) = wg.stdin.take() {
        writeln!(input, "{private_key}")?;
    }
    let output = wg.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
