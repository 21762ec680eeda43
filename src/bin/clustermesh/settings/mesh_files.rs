//! Mesh files: which files the paths of meshes mean.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, bail};

use super::config_file::{self, ConfigFile};
use super::surroundings;

/// Returns what is there under the names that need no config.
pub(super) fn default(config: &ConfigFile) -> Vec<PathBuf> {
    ["mesh.yaml", "meshes"]
        .into_iter()
        .map(|name| config.join(name))
        .filter(|path| path.exists())
        .collect()
}

/// Returns the files that paths mean, at least one for each.
pub(super) fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let found = expanded(path)?;
        if found.is_empty() {
            bail!("`{}` has no *.yaml or *.yml file", path.display());
        }
        files.extend(found);
    }
    if files.is_empty() {
        if let Some(folder) = above() {
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
pub(super) fn any(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(expanded(path)?);
    }
    Ok(files)
}

/// Returns the nearest folder above that has meshes, no further than the repository's root.
fn above() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    surroundings::upwards(&here)
        .map(|(relative, _)| relative)
        .find(|folder| folder.join("mesh.yaml").is_file() || folder.join("meshes").is_dir())
}

/// A folder means the YAML files in it, by name.
fn expanded(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot list `{}`", path.display()))? {
        let file = entry?.path();
        let is_yaml = file
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml");
        if is_yaml && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}
