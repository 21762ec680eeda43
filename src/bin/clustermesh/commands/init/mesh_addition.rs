//! Additions to a mesh: entries that are written, or that a person has to add.

use anyhow::{anyhow, bail};
use clustermesh::document::Source;
use clustermesh::name::ClusterName;
use clustermesh::text;

use crate::Outcome;
use crate::disk;
use crate::input_file::{self, InputFile};
use crate::output::Printer;

/// A mesh file that gets entries.
pub(super) struct MeshAddition {
    /// The file.
    pub(super) file: InputFile,
    /// The text before.
    pub(super) old: Source,
    /// The other files with meshes.
    pub(super) others: Vec<Source>,
    /// The new clusters.
    pub(super) clusters: Vec<ClusterName>,
}

/// Entries that a person has to add.
pub(super) struct UnplacedEntries {
    pub(super) entries: String,
    /// The reason, and the place where they belong.
    pub(super) message: String,
}

impl MeshAddition {
    /// Writes the file, unless another program has changed it.
    pub(super) fn write(&self, yaml: &str, printer: &mut Printer) -> anyhow::Result<()> {
        let InputFile { path, roots } = &self.file;
        if !disk::has(roots, path, self.old.text.as_bytes())? {
            bail!("{} was changed while the clusters were read; run this again", disk::shown(path));
        }
        disk::write_file(roots, path, yaml.as_bytes())?;
        let name = input_file::name(path);
        printer.line(&format!("added {} to {name}", text::listed(&self.clusters)));
        Ok(())
    }

    /// Returns what the file is called in messages.
    pub(super) fn name(&self) -> String {
        input_file::name(&self.file.path)
    }
}

impl UnplacedEntries {
    /// Prints the entries, and where they belong.
    pub(super) fn print(&self, printer: &mut Printer) -> anyhow::Result<Outcome> {
        printer.result(&self.entries)?;
        printer.error(&anyhow!("{}", self.message));
        Ok(Outcome::Findings)
    }
}
