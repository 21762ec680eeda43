//! Meshes from text, snapshots from nodes, and what the program plans and renders of both.

use std::collections::BTreeMap;
use std::sync::Arc;

use clustermesh::diagnostic::Severity;
use clustermesh::document::Source;
use clustermesh::fleet::{Fleet, SnapshotFile};
use clustermesh::manifest::{self, Tree};
use clustermesh::mesh::{self, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::plan::{self, Plan};
use clustermesh::rules::{self, Finding};
use clustermesh::snapshot::{Node, Snapshot};

/// The snapshots of a run.
pub(crate) type Snapshots = BTreeMap<ClusterName, SnapshotFile>;

/// Reads meshes that must be right.
pub(crate) fn meshes(yaml: &str) -> Vec<Mesh> {
    let source = Source::parse("mesh.yaml", yaml).unwrap_or_else(|it| panic!("{it:?}\n{yaml}"));
    let reading = mesh::read(&[source]);
    let wrong: Vec<_> =
        reading.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{yaml}");
    reading.meshes
}

/// Names nodes as the snapshot of a cluster.
pub(crate) fn snapshots(clusters: Vec<(&str, Vec<Node>)>) -> Snapshots {
    clusters
        .into_iter()
        .map(|(name, nodes)| {
            let cluster: ClusterName = name.parse().unwrap();
            let snapshot = Arc::new(Snapshot::new(cluster.clone(), nodes).unwrap());
            let source = Arc::from(format!("snapshots/{name}.json"));
            (cluster, SnapshotFile { snapshot, source })
        })
        .collect()
}

/// Plans meshes with snapshots that are all there.
pub(crate) fn plan(meshes: &[Mesh], snapshots: &Snapshots) -> (Plan, Vec<Finding>) {
    let fleet = Fleet::new(meshes, snapshots).unwrap();
    let plan = plan::plan(&fleet).unwrap();
    let findings = rules::findings(&fleet, Some(&plan));
    (plan, findings)
}

/// Renders meshes with snapshots that are all there.
pub(crate) fn tree(meshes: &[Mesh], snapshots: &Snapshots) -> Tree {
    manifest::tree(&plan(meshes, snapshots).0).unwrap()
}
