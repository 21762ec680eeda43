//! The files with the Services of clusters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;

/// Returns the clusters that have a Service that others get, or get one.
pub(crate) fn concerned(meshes: &[Mesh]) -> BTreeSet<ClusterName> {
    let services = meshes.iter().flat_map(|it| &it.services);
    let clusters = services.flat_map(|it| it.targets.iter().chain([&it.source]));
    clusters.cloned().collect()
}

/// Returns the file of a cluster.
pub(crate) fn file(snapshots: &Path, cluster: &ClusterName) -> PathBuf {
    snapshots.join(format!("{cluster}.services.json"))
}
