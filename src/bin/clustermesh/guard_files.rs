//! Guard files: the guards that the repository records, one for each cluster whose owner has applied one.

use std::sync::Arc;

use clustermesh::admission::Recorded;
use clustermesh::rules::gitops::GuardFile;

use crate::disk::tree::MANIFEST_LIMIT;
use crate::inputs::Inputs;
use crate::{disk, input_file};

/// Reads the guards of the clusters that a mesh names.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn read(inputs: &Inputs) -> anyhow::Result<Vec<GuardFile>> {
    let roots = inputs.settings.home_roots();
    let guards = inputs.guards.iter().map(|(cluster, path)| {
        let text = disk::read_text(&roots, path, MANIFEST_LIMIT)?;
        let recorded = Recorded::of_text(&text);
        let is_its = recorded.as_ref().is_ok_and(|it| it.guard.cluster == *cluster);
        Ok(GuardFile {
            cluster: cluster.clone(),
            source: Arc::from(input_file::name(path)),
            is_restorable: !is_its && inputs.settings.is_restorable(path, &text),
            recorded,
        })
    });
    guards.collect()
}
