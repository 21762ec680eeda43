//! The guards of new clusters.

use std::collections::BTreeSet;

use clustermesh::name::ClusterName;
use clustermesh::rules::gitops::GuardFile;
use serde::Serialize;

use super::mesh_addition::MeshAddition;
use crate::guard_files;
use crate::inputs::Inputs;

/// The guard of a new cluster, with the writers that all other guards have.
#[derive(Serialize)]
pub(super) struct NewGuard {
    /// The command that prints it.
    print: String,
    /// The command that applies it.
    apply: String,
}

impl NewGuard {
    /// Returns how the clusters that were added get guards; nothing if those of the others differ in their writers.
    pub(super) fn of_added(inputs: &Inputs, addition: &MeshAddition) -> anyhow::Result<Vec<Self>> {
        let files = guard_files::read(inputs)?;
        let guards = files.iter().filter_map(GuardFile::guard);
        let writers: BTreeSet<String> = guards.map(|it| it.guard.access.writer_options()).collect();
        let writers = writers.first().filter(|it| writers.len() == 1 && !it.is_empty());
        let Some(writers) = writers else { return Ok(Vec::new()) };
        let is_new = |it: &&ClusterName| files.iter().all(|file| file.cluster != **it);
        let added = addition.clusters.iter().filter(is_new).map(|it| Self {
            print: format!("clustermesh guard {it}{writers} > guards/{it}.yaml"),
            apply: format!(
                "{} apply --server-side -f guards/{it}.yaml",
                inputs.settings.config.content.kubectl(it)
            ),
        });
        Ok(added.collect())
    }
}
