//! Input files: read, and put through their gates.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use clustermesh::config::ceilings::{Ceilings, Counted};
use clustermesh::diagnostic::{Finding, Severity, escaped};
use clustermesh::document::Source;
use clustermesh::mesh::{self, Mesh, MeshReading};

use crate::disk::{self, Roots};
use crate::failure::{CommandFailure, CommandResult};

/// The largest file of meshes that is read, in bytes.
pub(crate) const MESH_LIMIT: u64 = 8 << 20;

/// A file, and the folders that it may be in.
#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    /// The file, as it was named.
    pub(crate) path: PathBuf,
    /// The folders in which it may be.
    pub(crate) roots: Roots,
}

/// Returns a path without `./`, which a config may write before it.
pub(crate) fn plain(path: &Path) -> PathBuf {
    path.components().filter(|it| *it != Component::CurDir).collect()
}

/// Meshes of which every cluster is known, though they may not go together.
pub(crate) struct Clusters {
    pub(crate) meshes: Vec<Mesh>,
    /// The files, for the excerpts.
    pub(crate) sources: Vec<Source>,
    /// The reasons why they do not fit together.
    pub(crate) problems: Vec<Finding>,
}

/// Reads meshes without mistakes.
pub(crate) fn meshes(files: &[InputFile], ceilings: Ceilings) -> CommandResult<Vec<Mesh>> {
    let (sources, reading) = read(sources(files)?, ceilings)?;
    if reading.is_usable() {
        Ok(reading.meshes)
    } else {
        Err(CommandFailure::wrong(sources, reading.diagnostics))
    }
}

/// Reads meshes for who looks at each cluster by itself.
pub(crate) fn clusters(files: &[InputFile], ceilings: Ceilings) -> CommandResult<Clusters> {
    clusters_of(sources(files)?, ceilings)
}

/// Reads meshes as [`clusters`], from texts that may not be in files yet.
pub(crate) fn clusters_of(sources: Vec<Source>, ceilings: Ceilings) -> CommandResult<Clusters> {
    let (sources, mut reading) = read(sources, ceilings)?;
    if !reading.knows_clusters() {
        return Err(CommandFailure::wrong(sources, reading.diagnostics));
    }
    reading.meshes.extend(reading.salvaged);
    let mut problems = reading.diagnostics;
    problems.retain(|problem| problem.severity == Severity::Error);
    for problem in &mut problems {
        problem.severity = Severity::Warning;
    }
    Ok(Clusters { meshes: reading.meshes, sources, problems })
}

fn sources(files: &[InputFile]) -> CommandResult<Vec<Source>> {
    files.iter().map(|path| source(path, MESH_LIMIT)).collect()
}

/// Reads meshes, unless they are larger than a run accepts.
fn read(sources: Vec<Source>, ceilings: Ceilings) -> CommandResult<(Vec<Source>, MeshReading)> {
    let reading = mesh::read_at_most(&sources, ceilings.most(Counted::Clusters));
    let exceeded = ceilings.exceeded_by(&reading.meshes);
    if exceeded.is_empty() {
        Ok((sources, reading))
    } else {
        Err(CommandFailure::beyond(&exceeded, sources))
    }
}

/// Reads a YAML file of at most `limit` bytes.
pub(crate) fn source(file: &InputFile, limit: u64) -> CommandResult<Source> {
    let text = disk::read_text(&file.roots, &file.path, limit)?;
    Source::parse(name(&file.path), text).map_err(CommandFailure::Syntax)
}

/// Returns what a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    let lossy = || path.to_string_lossy();
    escaped(&path.to_str().map_or_else(lossy, Cow::Borrowed), 400)
}
