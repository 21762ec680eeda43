//! Mesh files: which files the paths of meshes mean.

use std::env;
use std::path::PathBuf;

use anyhow::bail;

use super::config_file::{self, ConfigFile};
use super::surroundings::Surroundings;
use crate::disk;
use crate::input::InputFile;

/// Returns what is there under the names that need no config.
pub(super) fn default(config: &ConfigFile) -> Vec<PathBuf> {
    ["mesh.yaml", "meshes"]
        .into_iter()
        .map(|name| config.join(name))
        .filter(|path| disk::is_there(path))
        .collect()
}

/// Returns the files that paths mean, at least one for each.
pub(super) fn all(
    paths: &[InputFile],
    surroundings: &Surroundings,
) -> anyhow::Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for path in paths {
        let found = expanded(path)?;
        if found.is_empty() {
            bail!("`{}` has no *.yaml or *.yml file", path.path.display());
        }
        files.extend(found);
    }
    if files.is_empty() {
        if let Some(folder) = above(surroundings) {
            bail!(
                "there is no `mesh.yaml` and no `meshes/` here, but there is in `{0}`: use -C {0}",
                folder.display()
            );
        }
        bail!(
            "there is no `mesh.yaml` and no `meshes/` here; name the mesh with --mesh, the folder \
             with -C, or write a {}",
            config_file::NAME
        );
    }
    Ok(files)
}

/// Returns the files that paths mean, if any.
pub(super) fn any(paths: &[InputFile]) -> anyhow::Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(expanded(path)?);
    }
    Ok(files)
}

/// Returns the nearest folder above that has meshes, no further than the repository's root.
fn above(surroundings: &Surroundings) -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    surroundings
        .upwards(&here)
        .map(|(relative, _)| relative)
        .find(|folder| config_file::has_mesh(folder))
}

/// A folder means the YAML files in it, by name.
fn expanded(input: &InputFile) -> anyhow::Result<Vec<InputFile>> {
    let InputFile { path, roots } = input;
    if !disk::is_folder(path) {
        return Ok(vec![input.clone()]);
    }
    let found = disk::files_in(roots, path, &["yaml", "yml"])?;
    let found = found.into_iter().map(|path| InputFile {
        path,
        roots: roots.clone(),
    });
    Ok(found.collect())
}
