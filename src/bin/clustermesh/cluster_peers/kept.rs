//! Manifests in the rendered tree that clustermesh did not generate. A render keeps them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use clustermesh::diagnostic::Quoted;

use super::{ClusterPeers, clusters, within_ceiling};
use crate::disk::tree;
use crate::failure::CommandResult;
use crate::input_file;
use crate::inputs::Inputs;

impl ClusterPeers {
    /// Adds those of all clusters to the Peers of a plan.
    ///
    /// # Errors
    /// The tree or one of them cannot be read, or there are more Peers than a run accepts.
    pub(crate) fn add_kept(&mut self, inputs: &Inputs) -> CommandResult<()> {
        let planned = self.files.values().flatten();
        let planned: BTreeSet<&str> = planned.map(|it| &*it.source).collect();
        let roots = inputs.settings.roots_of(&inputs.settings.rendered);
        let is_kept = |folder: &Path, name: &OsStr| {
            let path = folder.join(name);
            !planned.contains(&*input_file::name(&path)) && !tree::is_generated(&roots, &path)
        };
        let mut kept = Self::default();
        kept.read_folders(&inputs.settings, &clusters(inputs), None, is_kept)?;
        let unread = kept.findings.first().map(|it| it.message.to_string());
        let mut files = kept.files.values().flatten();
        let broken = files.find(|it| it.content.is_broken());
        // The text may be anything, so its problem is not shown.
        let broken = broken.map(|it| format!("{} cannot be read", Quoted(&it.source)));
        if let Some(problem) = unread.or(broken) {
            let error = anyhow!(
                "{problem}; `clustermesh render` keeps this file, so the new Peers are unknown; move it away"
            );
            return Err(error.into());
        }
        for (cluster, files) in kept.files {
            if !files.is_empty() {
                self.files.entry(cluster).or_default().extend(files);
            }
        }
        within_ceiling(inputs, self.files.values().flatten())
    }
}
