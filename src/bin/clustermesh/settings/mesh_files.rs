//! Mesh files: which files the paths of meshes mean.

use std::env;
use std::path::PathBuf;

use anyhow::bail;
use thiserror::Error;

use super::config_file::ConfigFile;
use super::surroundings::{self, WorkingRepository};
use crate::disk::{self, Roots};
use crate::input_file::InputFile;

/// There is no mesh, and no folder above has one.
#[derive(Debug, Error)]
#[error("no mesh found: this folder has no `mesh.yaml` and no `meshes/`")]
pub(crate) struct NoMesh {
    /// Whether Peers were rendered from one.
    pub(super) is_rendered: bool,
}

impl NoMesh {
    /// Returns the remedy, and the text that it names.
    pub(crate) fn help(&self) -> (&'static str, Option<&'static str>) {
        if self.is_rendered {
            let help = "there are rendered Peers: run `git restore mesh.yaml` if the mesh was deleted, or use --mesh or -C to \
                name a mesh elsewhere";
            return (help, None);
        }
        let help = "run `clustermesh init`, use --mesh or -C to name a mesh elsewhere, or write this to `mesh.yaml`:";
        (help, Some(Self::MESH))
    }

    /// The shortest mesh that can be rendered.
    const MESH: &str = "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: mesh
spec:
  clusters:
    - name: east
      podCIDRs: [10.42.0.0/16]
      wireguardCIDR: 10.4.0.0/16
    - name: west
      podCIDRs: [10.44.0.0/16]
      wireguardCIDR: 10.6.0.0/16";
}

/// Returns what is there under the names that need no config.
pub(super) fn default(config: &ConfigFile) -> Vec<PathBuf> {
    ["mesh.yaml", "meshes"]
        .into_iter()
        .map(|name| config.join(name))
        .filter(|path| disk::is_there(&config.roots, path))
        .collect()
}

/// Returns the files that paths mean, at least one for each.
pub(super) fn all(
    paths: &[InputFile],
    roots: &Roots,
    surroundings: &WorkingRepository,
    is_rendered: impl Fn() -> bool,
) -> anyhow::Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for path in paths {
        let found = expanded(path)?;
        if found.is_empty() {
            bail!("`{}` contains no *.yaml or *.yml file", path.path.display());
        }
        files.extend(found);
    }
    if files.is_empty() {
        if let Some(folder) = above(surroundings).filter(|_| roots.revision().is_none()) {
            bail!(
                "no mesh found: this folder has no `mesh.yaml` and no `meshes/`, but `{0}` has; use -C {0}",
                folder.display()
            );
        }
        let is_rendered = is_rendered();
        return Err(NoMesh { is_rendered }.into());
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
fn above(surroundings: &WorkingRepository) -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    surroundings
        .upwards(&here)
        .map(|(relative, _)| relative)
        .find(|folder| surroundings::has_mesh(folder))
}

/// A folder means the YAML files in it, by name.
fn expanded(input: &InputFile) -> anyhow::Result<Vec<InputFile>> {
    let InputFile { path, roots } = input;
    if disk::is_file(roots, path) || !disk::is_folder(roots, path) {
        return Ok(vec![input.clone()]);
    }
    let found = disk::files_in(roots, path, &["yaml", "yml"])?
        .into_iter()
        .map(|path| InputFile { path, roots: roots.clone() });
    Ok(found.collect())
}
