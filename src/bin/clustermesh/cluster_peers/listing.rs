//! The manifests in the folder of a cluster in the rendered tree, and how they are read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clustermesh::manifest::{self, KUSTOMIZATION, Kustomization};

use crate::disk::{self, EntryType, Roots, tree};

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
        let mut listing = Self { path: folder.clone(), found: None, skipped: Vec::new() };
        let Some(file_type) = disk::type_of(roots, &folder)? else {
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
        // Engines do not apply what the kustomization no longer lists. Files of people may be applied without it, and a
        // kustomization of people may name a file in many ways.
        let kustomization = folder.join(KUSTOMIZATION);
        if let Ok(text) = tree::read(roots, &kustomization)
            && let Ok(Kustomization { resources, is_ours: true, .. }) = Kustomization::read(&text)
            && resources.iter().all(|it| !it.0.contains('/'))
        {
            let listed: BTreeSet<OsString> = resources.into_iter().map(|it| it.0.into()).collect();
            found.retain(|it| listed.contains(it) || !manifest::is_file(&it.to_string_lossy()));
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
