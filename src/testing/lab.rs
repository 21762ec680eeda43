//! A lab for tests: clusters with their rendered manifests, and changes to these.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, Site};
use crate::fleet::{Fleet, SnapshotFile};
use crate::manifest;
use crate::mesh::{AddressClass, Mesh};
use crate::name::ClusterName;
use crate::packet::messages;
use crate::packet::trace::EndFinder;
use crate::plan::plan;
use crate::testing::{mesh_of, meshes, snapshot, snapshots};

/// Clusters with their rendered manifests, which tests can change.
pub(crate) struct Lab {
    pub(crate) meshes: Vec<Mesh>,
    pub(crate) snapshots: BTreeMap<ClusterName, SnapshotFile>,
    pub(crate) files: BTreeMap<String, String>,
}

impl Lab {
    /// Renders clusters, each given with the fields of its entry and its nodes a line each.
    pub(crate) fn new(clusters: &[(&str, &str, &str)]) -> Self {
        Self::linked("{ mode: FullMesh }", clusters)
    }

    /// The same, with a topology.
    pub(crate) fn linked(topology: &str, clusters: &[(&str, &str, &str)]) -> Self {
        let fields: Vec<String> =
            clusters.iter().map(|(name, fields, _)| format!("name: {name}, {fields}")).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let mesh = format!("{}  topology: {topology}\n", mesh_of("m", &fields));
        let meshes = meshes(&mesh);
        let snapshots = snapshots(clusters.iter().map(|(name, _, nodes)| (*name, *nodes)));
        let fleet = Fleet::new(&meshes, &snapshots).unwrap();
        let tree = manifest::tree(&plan(&fleet).unwrap()).unwrap();
        let files = tree.into_iter().filter(|(path, _)| !path.ends_with("kustomization.yaml"));
        Self {
            files: files.map(|(path, text)| (path, text.to_string())).collect(),
            meshes,
            snapshots,
        }
    }

    /// Writes something else into a file.
    pub(crate) fn edit(mut self, path: &str, from: &str, to: &str) -> Self {
        let text = self.files.get_mut(path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        *text = text.replace(from, to);
        self
    }

    /// Writes a foreign Peer into the folder of a cluster.
    pub(crate) fn add(mut self, target: &str, name: &str, spec: &str) -> Self {
        let text = format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: {name} }}\nspec: {{ {spec} }}\n"
        );
        self.files.insert(format!("{target}/{name}.yaml"), text);
        self
    }

    /// Takes another snapshot than the one that was rendered from.
    pub(crate) fn later(mut self, cluster: &str, nodes: &str) -> Self {
        let name: ClusterName = cluster.parse().unwrap();
        let file = self.snapshots.get_mut(&name).unwrap();
        file.snapshot = snapshot(&name, nodes).into();
        self
    }

    /// Shows how every cluster's Kilo handles it.
    pub(crate) fn show<T>(&self, look: impl FnOnce(&Fabric, &[Mesh]) -> T) -> T {
        let mut read: BTreeMap<&str, Vec<AppliedFile>> = BTreeMap::new();
        for (path, text) in &self.files {
            let (cluster, _) = path.split_once('/').unwrap();
            let file = AppliedFile::read(&path.as_str().into(), &text.as_str().into());
            assert_eq!(file.content.others, [], "{text}");
            read.entry(cluster).or_default().push(file);
        }
        let sites = self.meshes.iter().flat_map(|it| &it.entries).map(|entry| {
            let files = read.get(entry.name.as_str()).map_or(&[][..], Vec::as_slice);
            Site::new(entry, &self.snapshots[&entry.name].snapshot, files)
        });
        look(&Fabric::new(sites.collect()), &self.meshes)
    }

    /// Prints the path from one end to another, and back.
    pub(crate) fn trace(&self, from: &str, to: &str) -> String {
        self.trace_of(from, to, None)
    }

    pub(crate) fn trace_of(&self, from: &str, to: &str, class: Option<AddressClass>) -> String {
        self.show(|fabric, _| traced(fabric, (from, to), class))
    }
}

pub(crate) fn traced(
    fabric: &Fabric,
    (from, to): (&str, &str),
    class: Option<AddressClass>,
) -> String {
    let mut finder = EndFinder::new(fabric);
    let (from, to) = (finder.find(from, class).unwrap().end, finder.find(to, class).unwrap().end);
    let trace = fabric.trace(from, to).unwrap();
    let mut text = String::new();
    let back = trace.back.as_ref().map(|(packet, way)| (packet, way));
    for (packet, way) in [(&trace.packet, &trace.there)].into_iter().chain(back) {
        writeln!(text, "{} -> {}", packet.source, packet.destination).unwrap();
        for step in &way.steps {
            let finding = messages::step(fabric, packet, step);
            writeln!(text, "  {finding}").unwrap();
            for premise in messages::premises(fabric, packet, step) {
                writeln!(text, "    if {premise}").unwrap();
            }
        }
    }
    let Some(finding) = messages::verdict(fabric, &trace) else {
        writeln!(text, "delivered: {}", messages::DELIVERED).unwrap();
        return text;
    };
    writeln!(text, "{}: {}", finding.rule.name(), finding.message).unwrap();
    for label in &finding.labels {
        let place = &label.place;
        writeln!(text, "  {}#{} {}", place.source, place.pointer, label.text).unwrap();
    }
    text
}

pub(crate) const EAST: &str = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, \
                    serviceCIDR: 10.11.0.0/16, additionalCIDRs: [192.168.1.0/24]";

pub(crate) const WEST: &str =
    "podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24, granularity: Location";

pub(crate) const EAST_NODES: &str = "
n1 pod=10.1.1.0/24 external=198.18.0.11 endpoint=198.18.0.11:51820 internal-ip=192.168.1.1/24 key=A wg=10.101.0.1/24 granularity=full
n2 pod=10.1.2.0/24 external=198.18.0.12 endpoint=198.18.0.12:51820 internal-ip=192.168.1.2/24 key=B wg=10.101.0.2/24 granularity=full
";

pub(crate) const WEST_NODES: &str = "
m1 pod=10.2.1.0/24 external=198.18.0.21 endpoint=198.18.0.21:51820 internal-ip=192.168.2.1/24 key=C wg=10.102.0.1/24 location=here granularity=location
m2 pod=10.2.2.0/24 internal-ip=192.168.2.2/24 endpoint=192.168.2.2:51820 key=JCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQ= location=here granularity=location
";

/// `east`, in which every node has its own tunnels, and `west`, whose `m1` has those of `m2`.
pub(crate) fn lab() -> Lab {
    Lab::new(&[("east", EAST, EAST_NODES), ("west", WEST, WEST_NODES)])
}

pub(crate) const WEST_OF_EAST: &str = "west/m--east.yaml";
pub(crate) const EAST_OF_WEST: &str = "east/m--west.yaml";
