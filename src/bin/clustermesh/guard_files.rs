//! Guard files: the guards that the repository records, one for each cluster whose owner has applied one.

use std::collections::BTreeSet;
use std::sync::Arc;

use clustermesh::admission::Recorded;
use clustermesh::name::ClusterName;
use clustermesh::rules::gitops::GuardFile;

use crate::disk::tree_file::MANIFEST_LIMIT;
use crate::inputs::Inputs;
use crate::{disk, input_file};

/// The folder of the guards, beside the config or the mesh.
const FOLDER: &str = "guards";

/// Reads the guards of the clusters that a mesh names.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn read(inputs: &Inputs) -> anyhow::Result<Vec<GuardFile>> {
    let settings = &inputs.settings;
    let (folder, roots) = (settings.home.join(FOLDER), &settings.home_roots());
    if !disk::is_folder(roots, &folder) {
        return Ok(Vec::new());
    }
    let entries = inputs.meshes.iter().flat_map(|mesh| &mesh.entries);
    let clusters: BTreeSet<&ClusterName> = entries.map(|entry| &entry.name).collect();
    let mut guards = Vec::new();
    for cluster in clusters {
        let path = folder.join(format!("{cluster}.yaml"));
        if !disk::is_there(roots, &path) {
            continue;
        }
        let text = disk::read_text(roots, &path, MANIFEST_LIMIT)?;
        let objects = Recorded::objects(&text);
        guards.push(GuardFile {
            cluster: cluster.clone(),
            source: Arc::from(input_file::name(&path)),
            recorded: objects.and_then(|it| Recorded::read(&it)),
        });
    }
    Ok(guards)
}
