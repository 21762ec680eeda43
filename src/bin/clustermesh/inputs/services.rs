//! The files with the Services of clusters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clustermesh::document::Source;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::rules::mesh::invalid_service_snapshot;
use clustermesh::snapshot::SIZE_LIMIT;
use clustermesh::snapshot::services::ServiceSnapshot;

use super::Inputs;
use crate::{disk, input_file};

/// The end of the names of these files, without the extension.
const ENDING: &str = ".services";

/// Returns the clusters that have a Service that others get, or get one.
pub(crate) fn concerned(meshes: &[Mesh]) -> BTreeSet<ClusterName> {
    let services = meshes.iter().flat_map(|it| &it.services);
    let clusters = services.flat_map(|it| it.targets.iter().chain([&it.source]));
    clusters.cloned().collect()
}

/// Returns the file of a cluster.
pub(crate) fn file(snapshots: &Path, cluster: &ClusterName) -> PathBuf {
    snapshots.join(format!("{cluster}{ENDING}.json"))
}

/// Returns the cluster whose file has this name without the extension, if it is one of these files.
pub(super) fn cluster_of(stem: &str) -> Option<&str> {
    stem.strip_suffix(ENDING)
}

impl Inputs {
    /// Reads the Services that clusters have under the names in meshes. A missing file is left to the plan.
    pub(super) fn read_services(&mut self) -> anyhow::Result<()> {
        let folder = &self.settings.snapshots.value;
        let roots = self.settings.roots_of(&self.settings.snapshots);
        for cluster in concerned(&self.meshes) {
            let path = file(folder, &cluster);
            if !disk::is_there(&roots, &path)? {
                continue;
            }
            let text = disk::read_text(&roots, &path, SIZE_LIMIT)?;
            match ServiceSnapshot::read(&cluster, &text) {
                Ok(snapshot) => {
                    self.services.insert(cluster, snapshot);
                }
                Err(error) => {
                    self.is_whole = false;
                    let source = Source::unread(input_file::name(&path), text);
                    let place = Place::document(&source.name, 0);
                    let finding = invalid_service_snapshot(&cluster, place, &error);
                    self.findings.push(finding);
                    self.files.add(source);
                }
            }
        }
        Ok(())
    }
}
