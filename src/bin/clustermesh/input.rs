//! Input: meshes and snapshots, read from files and put through their gates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clustermesh::diagnostic::{Diagnostic, escaped};
use clustermesh::document::{Source, SyntaxError};
use clustermesh::fleet::SnapshotFile;
use clustermesh::mesh::{self, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::snapshot::{SIZE_LIMIT, Snapshot, SnapshotError};
use rayon::prelude::*;

use crate::disk;
use crate::settings::{Options, Settings};

/// The largest file of meshes that is read, in bytes.
const MESH_LIMIT: u64 = 8 << 20;

/// Everything that a render is made from.
pub(crate) struct Input {
    /// Which files it is about.
    pub(crate) settings: Settings,
    /// The files of the meshes.
    pub(crate) sources: Vec<Source>,
    /// The meshes.
    pub(crate) meshes: Vec<Mesh>,
    /// What to tell about them, no error among it.
    pub(crate) remarks: Vec<Diagnostic>,
    /// The snapshots that are there.
    pub(crate) snapshots: BTreeMap<ClusterName, SnapshotFile>,
}

/// Why there is nothing to work with.
pub(crate) enum Unreadable {
    /// Could not be read at all.
    Failed(anyhow::Error),
    /// A file that is no YAML.
    Syntax {
        /// What the file is called.
        name: String,
        /// What stands in it.
        text: String,
        /// What is wrong.
        errors: Vec<SyntaxError>,
    },
    /// Files that were read, but are wrong.
    Wrong {
        /// The files, for the excerpts.
        sources: Vec<Source>,
        /// What is wrong.
        problems: Vec<Diagnostic>,
    },
    /// Snapshots that are none.
    Snapshots {
        /// What is wrong, a message with its file each.
        wrong: Vec<String>,
        /// Whether one of them is no JSON at all.
        is_syntax: bool,
    },
}

impl From<anyhow::Error> for Unreadable {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads the meshes and the snapshots of every cluster that they name.
pub(crate) fn read(options: &Options) -> Result<Input, Unreadable> {
    let settings = options.settle()?;
    let sources = settings
        .meshes
        .iter()
        .map(|path| source(path, MESH_LIMIT))
        .collect::<Result<Vec<_>, _>>()?;
    let reading = mesh::read(&sources);
    if !reading.is_usable() {
        return Err(Unreadable::Wrong {
            sources,
            problems: reading.diagnostics,
        });
    }
    let snapshots = snapshots(&settings, &reading.meshes)?;
    Ok(Input {
        settings,
        sources,
        meshes: reading.meshes,
        remarks: reading.diagnostics,
        snapshots,
    })
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

/// Reads the snapshots of every cluster that a mesh names; a missing one is left to the fleet.
fn snapshots(
    settings: &Settings,
    meshes: &[Mesh],
) -> Result<BTreeMap<ClusterName, SnapshotFile>, Unreadable> {
    let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
    let clusters: BTreeSet<&ClusterName> = entries.map(|entry| &entry.name).collect();
    let clusters: Vec<&ClusterName> = clusters.into_iter().collect();
    let read: Vec<_> = clusters
        .par_iter()
        .map(|cluster| snapshot(settings, cluster))
        .collect();
    let (mut files, mut wrong, mut is_syntax) = (BTreeMap::new(), Vec::new(), false);
    for (cluster, read) in clusters.into_iter().zip(read) {
        match read? {
            None => {}
            Some(Ok(file)) => drop(files.insert(cluster.clone(), file)),
            Some(Err((path, error))) => {
                is_syntax |= error.is_syntax();
                wrong.push(at(&path, &error));
            }
        }
    }
    if wrong.is_empty() {
        Ok(files)
    } else {
        Err(Unreadable::Snapshots { wrong, is_syntax })
    }
}

/// Reads the snapshot of one cluster, if there is a file.
fn snapshot(
    settings: &Settings,
    cluster: &ClusterName,
) -> anyhow::Result<Option<Result<SnapshotFile, (PathBuf, SnapshotError)>>> {
    let path = settings.snapshots.join(format!("{cluster}.json"));
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = disk::read_text(&path, SIZE_LIMIT)?;
    let read = Snapshot::read(cluster, &text).map(|snapshot| SnapshotFile {
        snapshot,
        source: Arc::from(name(&path)),
    });
    Ok(Some(read.map_err(|error| (path, error))))
}

/// Says where in which file an error is: `file:line:column: what`.
fn at(path: &Path, error: &SnapshotError) -> String {
    let message = error.to_string();
    let (position, message) = match error {
        SnapshotError::Json(json) => {
            let (line, column) = (json.line(), json.column());
            let told = format!(" at line {line} column {column}");
            let message = message.strip_suffix(&told).unwrap_or(&message);
            (format!(":{line}:{column}"), message.to_owned())
        }
        _ => (String::new(), message),
    };
    format!("{}{position}: {}", name(path), escaped(&message, 400))
}

/// Returns what a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    escaped(&path.to_string_lossy(), 400)
}
