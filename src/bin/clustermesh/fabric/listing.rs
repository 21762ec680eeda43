//! The manifests in the folder of a cluster in the rendered tree, and how they are read.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clustermesh::agent::applied::{AppliedFile, Content};
use clustermesh::manifest::KUSTOMIZATION;

use super::known_contents::KnownContents;
use crate::disk::{EntryType, Roots, tree_file};
use crate::{disk, input_file};

/// A file that was read, or could not be read.
pub(super) struct Read {
    pub(super) cluster: usize,
    pub(super) path: PathBuf,
    pub(super) source: Arc<str>,
    pub(super) file: Result<AppliedFile, String>,
}

/// The content of the folder of a cluster.
pub(super) struct FolderListing {
    /// The folder.
    pub(super) path: PathBuf,
    /// The names of its manifests, links aside; none without the folder.
    pub(super) found: Option<Vec<OsString>>,
    /// The files that are not read, each with the reason.
    pub(super) skipped: Vec<(PathBuf, String)>,
}

impl FolderListing {
    /// Looks into the folder of a cluster. No link is followed.
    pub(super) fn read(roots: &Roots, folder: PathBuf) -> anyhow::Result<Self> {
        let mut listing = Self {
            path: folder.clone(),
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
        for (name, file_type) in disk::entries(roots, &folder)? {
            if !is_manifest(&name.to_string_lossy()) {
                continue;
            }
            if file_type.is_file() {
                found.push(name);
            } else {
                let skipped = (folder.join(name), no_file(file_type));
                listing.skipped.push(skipped);
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

/// Reads the files of one name in the folders of some clusters.
pub(super) fn read_alike(
    roots: &Roots,
    listings: &[FolderListing],
    name: &OsStr,
    clusters: Vec<usize>,
    known: &mut KnownContents,
) -> Vec<Read> {
    let read = clusters.into_iter().filter_map(|cluster| {
        let folder = &listings.get(cluster)?.path;
        let length = folder.as_os_str().len() + 1 + name.len();
        let mut path = PathBuf::with_capacity(length);
        path.push(folder);
        path.push(name);
        let source: Arc<str> = Arc::from(input_file::name(&path));
        let content = content(roots, &path, &source, known);
        let file = content.map(|content| AppliedFile {
            source: Arc::clone(&source),
            content,
        });
        Some(Read {
            cluster,
            path,
            source,
            file,
        })
    });
    read.collect()
}

fn content(
    roots: &Roots,
    path: &Path,
    source: &Arc<str>,
    known: &mut KnownContents,
) -> Result<Arc<Content>, String> {
    let object = disk::object(roots, path);
    if let Some(content) = object.as_ref().and_then(|it| known.of_object(it)) {
        return Ok(content);
    }
    let text = tree_file::read(roots, path)?;
    let content = known.read(source, &text);
    if let Some(object) = object {
        known.add_object(object, Arc::clone(&content));
    }
    Ok(content)
}
