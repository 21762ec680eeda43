//! Input: meshes and snapshots, read from files and put through their gates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use clustermesh::diagnostic::{Diagnostic, Severity, escaped};
use clustermesh::document::{Source, SyntaxError};
use clustermesh::fleet::SnapshotFile;
use clustermesh::mesh::{self, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::snapshot::{self, Snapshot, SnapshotError};

use crate::disk;
use crate::settings::Settings;

/// The largest file of meshes that is read, in bytes.
const MESH_LIMIT: u64 = 8 << 20;

/// Why there is nothing to work with.
pub(crate) enum Unreadable {
    /// Could not be read at all.
    Failed(anyhow::Error),
    /// No YAML.
    Syntax {
        /// What the file is called.
        name: String,
        /// What stands in it.
        text: String,
        /// What is wrong.
        errors: Vec<SyntaxError>,
    },
    /// Read, but wrong.
    Wrong {
        /// The files, for the excerpts.
        sources: Vec<Source>,
        /// What is wrong.
        problems: Vec<Diagnostic>,
    },
}

/// The meshes of a run, and the files they are from.
pub(crate) struct Meshes {
    /// The meshes.
    pub(crate) meshes: Vec<Mesh>,
    /// The files.
    pub(crate) sources: Vec<Source>,
    /// What to tell about them, no error among it.
    pub(crate) remarks: Vec<Diagnostic>,
}

impl From<anyhow::Error> for Unreadable {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads a YAML file of at most `limit` bytes.
pub(crate) fn source(path: &Path, limit: u64) -> Result<Source, Unreadable> {
    let text = disk::read_text(path, limit)?;
    let name = name(path);
    Source::parse(name.as_str(), text.as_str()).map_err(|errors| Unreadable::Syntax {
        name,
        text,
        errors,
    })
}

/// Reads the meshes.
pub(crate) fn meshes(settings: &Settings) -> Result<Meshes, Unreadable> {
    let mut sources = Vec::new();
    for path in &settings.meshes {
        sources.push(source(path, MESH_LIMIT)?);
    }
    let reading = mesh::read(&sources);
    let wrong = |problem: &Diagnostic| problem.severity == Severity::Error;
    if reading.diagnostics.iter().any(wrong) {
        return Err(Unreadable::Wrong {
            sources,
            problems: reading.diagnostics,
        });
    }
    Ok(Meshes {
        meshes: reading.meshes,
        sources,
        remarks: reading.diagnostics,
    })
}

/// What the snapshots of a run are, and what is wrong with the others.
pub(crate) struct Snapshots {
    /// Those that could be read.
    pub(crate) files: BTreeMap<ClusterName, SnapshotFile>,
    /// What is wrong, a message with its file each.
    pub(crate) wrong: Vec<String>,
    /// Whether one of them is no JSON at all.
    pub(crate) is_syntax: bool,
}

/// Reads the snapshots of every cluster that a mesh names; a missing one is left to the fleet.
pub(crate) fn snapshots(settings: &Settings, meshes: &[Mesh]) -> anyhow::Result<Snapshots> {
    let clusters: BTreeSet<&ClusterName> = meshes
        .iter()
        .flat_map(|mesh| mesh.entries.iter().map(|entry| &entry.name))
        .collect();
    let mut snapshots = Snapshots {
        files: BTreeMap::new(),
        wrong: Vec::new(),
        is_syntax: false,
    };
    for cluster in clusters {
        let path = settings.snapshots.join(format!("{cluster}.json"));
        if path.symlink_metadata().is_err() {
            continue;
        }
        let text = disk::read_text(&path, snapshot::SIZE_LIMIT)?;
        match Snapshot::read(cluster, &text) {
            Ok(snapshot) => {
                let source = Arc::from(name(&path));
                snapshots
                    .files
                    .insert(cluster.clone(), SnapshotFile { snapshot, source });
            }
            Err(error) => {
                snapshots.is_syntax |= error.is_syntax();
                snapshots.wrong.push(at(&path, &error));
            }
        }
    }
    Ok(snapshots)
}

/// Says where in which file an error is: `file:line:column: what`.
fn at(path: &Path, error: &SnapshotError) -> String {
    let position = match error {
        SnapshotError::Json(json) => format!(":{}:{}", json.line(), json.column()),
        _ => String::new(),
    };
    let message = escaped(&error.to_string(), 400);
    format!("{}{position}: {message}", name(path))
}

/// Returns what a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    escaped(&path.to_string_lossy(), 400)
}
