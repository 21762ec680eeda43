//! The manifests in the folder of a cluster in the rendered tree, and how they are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clustermesh::agent::applied::{AppliedFile, Content};
use clustermesh::diagnostic::escaped;
use clustermesh::manifest::KUSTOMIZATION;
use clustermesh::name::ClusterName;

use super::known_contents::KnownContents;
use crate::disk::{EntryType, Roots};
use crate::files::MANIFEST_LIMIT;
use crate::{disk, input_file};

/// The longest description of a problem, in characters.
const SHOWN: usize = 400;

/// A manifest in the tree that is not a link.
pub(super) struct FoundPeers {
    pub(super) cluster: usize,
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// A file that was read, or could not be read.
pub(super) struct Read {
    pub(super) cluster: usize,
    pub(super) path: PathBuf,
    pub(super) source: Arc<str>,
    pub(super) file: Result<AppliedFile, String>,
}

/// The content of the folder of a cluster.
pub(super) struct FolderListing {
    /// Its manifests; none without the folder.
    pub(super) found: Option<Vec<FoundPeers>>,
    /// The files that are not read, each with the reason.
    pub(super) skipped: Vec<(PathBuf, String)>,
}

impl FolderListing {
    /// Looks into the folder of a cluster. No link is followed.
    pub(super) fn read(
        roots: &Roots,
        root: &Path,
        number: usize,
        cluster: &ClusterName,
    ) -> anyhow::Result<Self> {
        let folder = root.join(cluster.as_str());
        let mut listing = Self {
            found: None,
            skipped: Vec::new(),
        };
        let Some(file_type) = disk::type_of(roots, &folder) else {
            return Ok(listing);
        };
        if !file_type.is_dir() {
            listing.skipped.push((folder, no_file(file_type)));
            return Ok(listing);
        }
        let mut found = Vec::new();
        for (path, file_type) in disk::entries(roots, &folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !is_manifest(&name) {
                continue;
            }
            if file_type.is_file() {
                found.push(FoundPeers {
                    cluster: number,
                    name: name.into_owned(),
                    path,
                });
            } else {
                listing.skipped.push((path, no_file(file_type)));
            }
        }
        listing.skipped.sort();
        listing.found = Some(found);
        Ok(listing)
    }
}

fn no_file(file_type: EntryType) -> String {
    format!("it is {}", disk::kind(file_type))
}

/// Returns whether a file is one that Flux and Argo CD apply. Hidden ones are not.
fn is_manifest(name: &str) -> bool {
    let kustomizations = [KUSTOMIZATION, "kustomization.yml", "Kustomization"];
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    !name.starts_with('.')
        && !kustomizations.contains(&name)
        && ["yaml", "yml", "json"].contains(&extension)
}

/// Reads files of one name.
pub(super) fn read_alike(
    roots: &Roots,
    group: Vec<FoundPeers>,
    known: &mut KnownContents,
) -> Vec<Read> {
    let read = group.into_iter().map(|FoundPeers { cluster, path, .. }| {
        let source: Arc<str> = Arc::from(input_file::name(&path));
        let content = content(roots, &path, &source, known);
        let file = content.map(|content| AppliedFile {
            source: Arc::clone(&source),
            content,
        });
        Read {
            cluster,
            path,
            source,
            file: file.map_err(|error| escaped(&error.root_cause().to_string(), SHOWN)),
        }
    });
    read.collect()
}

fn content(
    roots: &Roots,
    path: &Path,
    source: &Arc<str>,
    known: &mut KnownContents,
) -> anyhow::Result<Arc<Content>> {
    let object = disk::object(roots, path);
    if let Some(content) = object.as_ref().and_then(|it| known.of_object(it)) {
        return Ok(content);
    }
    let text = disk::read_listed(roots, path, MANIFEST_LIMIT)?;
    let content = known.read(source, &text);
    if let Some(object) = object {
        known.add_object(object, Arc::clone(&content));
    }
    Ok(content)
}
