//! Nodes and whole meshes as text, for tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use crate::document::Source;
use crate::fleet::{Fleet, SnapshotFile};
use crate::granularity::Granularity;
use crate::kilo::id::Nodes;
use crate::kilo::node::KiloNode;
use crate::kilo::segment::segments;
use crate::kilo::topology::KiloTopology;
use crate::mesh::{self, Mesh};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::plan::plan;
use crate::results::repository::Repository;
use crate::results::shown_source::ShownSource;
use crate::results::source_texts::SourceTexts;
use crate::rules;
use crate::snapshot::plugin::{NetworkPlugin, ShownPlugin};
use crate::snapshot::{Address, AddressKind, Node, Snapshot};

pub(crate) mod lab;

/// No files.
pub(crate) struct NoTexts;

impl SourceTexts for NoTexts {
    fn get(&self, _: &str) -> Option<&ShownSource> {
        None
    }

    fn read(&self) -> Vec<&Source> {
        Vec::new()
    }

    fn repository(&self) -> Repository {
        Repository::new("/".into(), "/".into())
    }
}

/// Draws a range among few addresses, so that many hold each other, of both families.
pub(crate) fn range() -> impl Strategy<Value = Cidr> {
    (0u32..512, 20u8..=32, any::<bool>()).prop_map(|(bits, length, is_v6)| {
        let text = if is_v6 {
            format!("::{bits:x}/{}", length + 96)
        } else {
            format!("{}/{length}", Ipv4Addr::from(bits))
        };
        text.parse().unwrap()
    })
}

/// Reads meshes that must be right.
pub(crate) fn meshes(text: &str) -> Vec<Mesh> {
    let reading = mesh::read(&[Source::parse("mesh.yaml", text).unwrap()]);
    assert!(reading.is_usable(), "{:#?}\n{text}", reading.diagnostics);
    reading.meshes
}

/// Returns the snapshots of clusters, each given with its nodes, a line each.
pub(crate) fn snapshots<'a>(
    clusters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<ClusterName, SnapshotFile> {
    clusters
        .into_iter()
        .map(|(name, nodes)| {
            let cluster: ClusterName = name.parse().unwrap();
            let snapshot = Arc::new(snapshot(&cluster, nodes));
            let source = Arc::from(format!("{name}.json"));
            (cluster, SnapshotFile { snapshot, source })
        })
        .collect()
}

/// Returns the snapshot of a cluster whose nodes are given, a line each.
pub(crate) fn snapshot(cluster: &ClusterName, nodes: &str) -> Snapshot {
    let lines = nodes.lines().filter(|line| !line.trim().is_empty());
    let mut nodes: Vec<Node> = lines.map(node).collect();
    for (position, node) in nodes.iter_mut().enumerate() {
        node.position = position;
    }
    Snapshot::new(cluster.clone(), nodes).unwrap()
}

/// Returns the findings about meshes and their clusters, each given with its nodes, a line each.
pub(crate) fn findings(meshes: &str, clusters: &[(&str, &str)]) -> String {
    let meshes = self::meshes(meshes);
    let clusters: Vec<(&str, String)> = clusters
        .iter()
        .map(|(name, nodes)| {
            let nodes = nodes.lines().filter(|it| !it.trim().is_empty());
            let nodes: Vec<String> = nodes.map(with_granularity).collect();
            (*name, nodes.join("\n"))
        })
        .collect();
    let snapshots = snapshots(clusters.iter().map(|(name, nodes)| (*name, nodes.as_str())));
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let mut text = String::new();
    for finding in rules::findings(&fleet, Some(&plan)) {
        let (rule, severity) = (finding.rule.name(), finding.severity);
        let subject = finding.subject().unwrap_or_default();
        let _ = writeln!(text, "{severity}[{rule}] {subject}: {}", finding.message);
        for label in &finding.labels {
            let (source, pointer) = (&label.place.source, &label.place.pointer);
            let _ = writeln!(text, "  {source}#{pointer} {}", label.text);
        }
    }
    text
}

/// Forms a cluster of nodes; their locations are those of the label `region`.
pub(crate) fn own(nodes: &[Node], granularity: Granularity) -> Arc<KiloTopology> {
    let kilos = nodes.iter().map(|it| Arc::new(KiloNode::read(it, "region")));
    let kilos = Nodes::new(kilos.collect());
    let readings = kilos.map(|it| &**it);
    let segments = segments(&readings, granularity);
    Arc::new(KiloTopology::form(&kilos, &segments))
}

/// Forms the cluster of nodes, one a line, for [`node`]; their keys are their numbers.
pub(crate) fn numbered(lines: &str, granularity: Granularity) -> KiloTopology {
    let nodes: Vec<Node> = lines
        .lines()
        .zip(1..)
        .map(|(line, number)| {
            let mut node = node(line);
            let key = STANDARD.encode([number; 32]);
            node.annotations.insert("kilo.squat.ai/key", key);
            node
        })
        .collect();
    KiloTopology::clone(&own(&nodes, granularity))
}

/// Returns a mesh of clusters, each given as the fields of its entry.
pub(crate) fn mesh_of(name: &str, clusters: &[&str]) -> String {
    let mut text = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: {name} }}\nspec:\n  clusters:\n"
    );
    for fields in clusters {
        let _ = writeln!(text, "  - {{ {fields} }}");
    }
    text
}

/// The default values of a node in tests. Kilo counts it, because it has an endpoint.
fn with_granularity(line: &str) -> String {
    let mut line = line.to_owned();
    if !line.contains("granularity=") {
        line.push_str(" granularity=location");
    }
    let external = line.split_whitespace().find_map(|it| it.strip_prefix("external="));
    let endpoint = external.map(|it| {
        let host = if it.contains(':') { format!("[{it}]") } else { it.to_owned() };
        format!(" endpoint={host}:51820")
    });
    if !line.contains(" endpoint=") && !line.contains("force-endpoint=") {
        line.push_str(&endpoint.unwrap_or_default());
    }
    line
}

/// Reads what a node shows of a network plugin from `NAME,ADDRESSES…`; `wireguard` is its own tunnels.
fn plugin(text: &str) -> ShownPlugin {
    let mut words = text.split(',');
    let name = match words.next() {
        Some("Cilium") => NetworkPlugin::Cilium,
        Some("Calico") => NetworkPlugin::Calico,
        _ => NetworkPlugin::Flannel,
    };
    let (wireguard, addresses): (Vec<&str>, Vec<&str>) = words.partition(|it| *it == "wireguard");
    ShownPlugin {
        name,
        pod_addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
        wireguard: !wireguard.is_empty(),
    }
}

/// Five keys, by letter.
pub(crate) fn key(letter: &str) -> String {
    match letter {
        "A" => "Z2uLuEznJn3VIN7KSBHI8QpT5jY1LwaYf0L+QlrO3YA=".to_owned(),
        "B" => "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=".to_owned(),
        "C" => "GY5aT1N9dTR/nJnT1N2f4ClZWVj0jOAld0r8ysWLyjg=".to_owned(),
        "D" => "REREREREREREREREREREREREREREREREREREREREREQ=".to_owned(),
        "E" => "RUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUU=".to_owned(),
        other => other.to_owned(),
    }
}

/// Reads a node from `name what=value …`: `pod`, `label` (or `label:KEY`), `external`, `internal`
/// (addresses), `stale`, `uid`, `plugin`; everything else is an annotation of Kilo. `·` means a space.
pub(crate) fn node(line: &str) -> Node {
    let mut words = line.split_whitespace();
    let mut node = Node { name: words.next().unwrap().to_owned(), ..Node::default() };
    for word in words {
        let (what, value) = word.split_once('=').unwrap_or((word, ""));
        let value = value.replace('·', " ");
        let address = |kind| Address { address: value.clone(), kind };
        match what {
            "pod" => node.pod_cidrs.push(value),
            "external" => node.addresses.push(address(AddressKind::ExternalIP)),
            "internal" => node.addresses.push(address(AddressKind::InternalIP)),
            "label" => node.labels.insert("pick", value),
            "stale" => node.stale = true,
            "lost-lead" => node.lost_lead = true,
            "carried-over" => node.carried_over = true,
            "plugin" => node.plugin = Some(plugin(&value)),
            "uid" => node.uid = value,
            "key" => node.annotations.insert("kilo.squat.ai/key", key(&value)),
            "wg" => node.annotations.insert("kilo.squat.ai/wireguard-ip", value),
            other => match other.strip_prefix("label:") {
                Some(label) => node.labels.insert(label, value),
                None => node.annotations.insert(format!("kilo.squat.ai/{other}"), value),
            },
        }
    }
    node
}
