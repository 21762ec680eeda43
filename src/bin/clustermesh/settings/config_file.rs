//! The config file: its path, its content, the places of its fields, and which files the paths of meshes mean.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clustermesh::config::{self, Config};
use clustermesh::diagnostic::Mistakes;
use clustermesh::document::Source;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::rules::{self, Finding, Levels};
use clustermesh::text::shell_word;
use thiserror::Error;

#[cfg(feature = "snapshot")]
use super::surroundings::Owners;
use super::surroundings::{self, WorkingRepository};
use super::{Setting, SettingOrigin};
use crate::disk::{self, Roots};
use crate::failure::{CommandFailure, CommandResult};
use crate::input_file::{self, InputFile};

/// The files and folders of meshes without a setting.
pub(super) const DEFAULT_MESHES: [&str; 2] = ["mesh.yaml", "meshes"];

/// The largest config that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// The config of a run, which need not be there.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The folders that its paths, and links, may lead to.
    pub(crate) roots: Roots,
    /// The file, if there is one.
    pub(crate) path: Setting<Option<PathBuf>>,
    /// Its text and trees, for excerpts and positions.
    pub(crate) source: Option<Source>,
    /// Its content; empty without a file.
    pub(crate) content: Config,
    /// The levels and hidden findings.
    pub(crate) levels: Levels,
}

impl ConfigFile {
    /// Reads the named file, or else the nearest one, here or above.
    pub(super) fn read(
        named: Option<Setting<PathBuf>>,
        roots: Roots,
        surroundings: &WorkingRepository,
    ) -> CommandResult<Self> {
        let path = match named {
            Some(Setting { value, origin }) => Setting { value: Some(value), origin },
            None => Setting {
                value: surroundings.nearest(&roots)?.config,
                origin: SettingOrigin::Default,
            },
        };
        let roots = match folder_of(&roots, &path) {
            Some(folder) => roots.and(folder),
            None => roots,
        };
        let Some(file) = &path.value else {
            return Ok(Self {
                roots,
                path,
                source: None,
                content: Config::default(),
                levels: Levels::default(),
            });
        };
        let file = InputFile {
            path: file.clone(),
            roots: if path.is_named() { roots.of_named() } else { roots.clone() },
        };
        let source = input_file::source(&file, LIMIT)?;
        let read = config::read(&source).and_then(|content| {
            let levels = Levels::new(&content)?;
            Ok((content, levels))
        });
        match read {
            Ok((content, levels)) => {
                Ok(Self { roots, path, source: Some(source), content, levels })
            }
            Err(problems) => Err(CommandFailure::wrong(vec![source], problems)),
        }
    }

    /// Returns the config if it belongs to another user and no flag or variable names it.
    #[cfg(feature = "snapshot")]
    pub(crate) fn of_other(&self) -> Option<&Path> {
        let file = self.path.value.as_deref()?;
        let is_found = matches!(self.path.origin, SettingOrigin::Default);
        (is_found && !Owners::of_run().own(file)).then_some(file)
    }

    /// Returns the config if it names a file that belongs to none of the users who may write configs of this run:
    /// the file could be anyone's.
    #[cfg(feature = "snapshot")]
    pub(crate) fn names_foreign(&self, named: &Path) -> Option<&Path> {
        let file = self.path.value.as_deref()?;
        let owners = Owners::of_run().and_of(file);
        let is_absent = matches!(disk::is_there(&Roots::anywhere(), named), Ok(false));
        (!is_absent && !owners.own(named)).then_some(file)
    }

    /// Returns a path of the config as seen from the working folder.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        let file = self.path.value.as_deref();
        file.and_then(Path::parent).unwrap_or(Path::new("")).join(path)
    }

    /// Returns the source of the value under these keys: the config, or the default.
    pub(crate) fn origin(&self, keys: &[&str]) -> SettingOrigin {
        self.place(keys).map_or(SettingOrigin::Default, SettingOrigin::File)
    }

    /// Returns the place of what stands under these keys.
    pub(crate) fn place(&self, keys: &[&str]) -> Option<Place> {
        let source = self.source.as_ref()?;
        let (index, mut node) =
            source.documents.iter().enumerate().find(|(_, document)| !document.is_null())?;
        let mut place = Place::document(&source.name, index);
        for key in keys {
            node = node.get(key)?;
            place = place.key(key);
        }
        (!node.is_null()).then_some(place)
    }

    /// Finds clusters of the config that are in no mesh: their names are mistakes, or leftovers.
    pub(crate) fn unnamed(&self, meshes: &[Mesh]) -> Vec<Finding> {
        let clusters: BTreeSet<&ClusterName> = self.content.clusters.keys().collect();
        let named: BTreeSet<&ClusterName> =
            meshes.iter().flat_map(|mesh| &mesh.entries).map(|entry| &entry.name).collect();
        if named.is_empty() {
            return Vec::new();
        }
        let mut findings = Mistakes::default();
        for cluster in clusters.difference(&named) {
            let Some(place) = self.place(&["clusters", cluster.as_str()]) else {
                continue;
            };
            rules::snapshots::find_unnamed(cluster, &named, place.named(), &mut findings);
        }
        let all = meshes.iter().flat_map(Mesh::all_entries);
        let all: BTreeSet<&str> = all.map(|it| it.name.as_str()).collect();
        for group in &self.content.groups {
            group.find_unknown(&all, "no mesh has a cluster", &mut findings);
        }
        findings.into_findings()
    }
}

/// Returns the folder of a config that a person named, or that is above: its paths may lead there.
fn folder_of<'a>(roots: &Roots, path: &'a Setting<Option<PathBuf>>) -> Option<&'a Path> {
    let file = path.value.as_deref()?;
    let folder = file.parent()?;
    let is_here = folder == Path::new("");
    (!is_here && disk::is_file(roots, file).unwrap_or(false)).then_some(folder)
}

/// There is no mesh, and no folder above has one.
#[derive(Debug, Error)]
#[error("no mesh found: this folder has no `mesh.yaml` and no `meshes/`")]
pub(crate) enum NoMesh {
    /// A file has the name with another ending.
    OtherEnding,
    /// Peers were rendered from one, which the last commit may still have.
    Rendered { committed: Option<PathBuf> },
    /// Nothing shows that a mesh was there before.
    New,
}

impl NoMesh {
    /// Returns the remedy, and the text that it names.
    pub(crate) fn help(&self) -> (String, Option<&'static str>) {
        match self {
            Self::OtherEnding => ("rename `mesh.yml` to `mesh.yaml`".to_owned(), None),
            Self::Rendered { committed } => {
                let restored = committed.as_ref().map(|it| {
                    let file = input_file::name(it);
                    format!("run `git checkout HEAD -- {}` if the mesh was deleted, or ", shell_word(&file))
                });
                let elsewhere = "use --mesh or -C to name a mesh elsewhere";
                let restored = restored.unwrap_or_default();
                (format!("there are rendered Peers: {restored}{elsewhere}"), None)
            }
            Self::New => (
                "run `clustermesh init`, use --mesh or -C to name a mesh elsewhere, or write this to `mesh.yaml`:".to_owned(),
                Some(Self::MESH),
            ),
        }
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
pub(super) fn default_meshes(config: &ConfigFile) -> anyhow::Result<Vec<PathBuf>> {
    let mut meshes = Vec::new();
    for path in DEFAULT_MESHES.map(|name| config.join(name)) {
        if disk::is_there(&config.roots, &path)? {
            meshes.push(path);
        }
    }
    Ok(meshes)
}

/// Returns the files that paths mean, at least one for each.
pub(super) fn mesh_files(
    paths: &[InputFile],
    roots: &Roots,
    (surroundings, config): (&WorkingRepository, Option<&Path>),
    no_mesh: impl Fn() -> anyhow::Result<NoMesh>,
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
            // The mesh is here, and a config above names the folder in which it is looked for.
            if let Some(file) = config.filter(|_| folder == Path::new("")) {
                bail!(
                    "no mesh found beside {0}, which applies in this folder too; move that file into this folder, or write the \
                     paths of the mesh into it: `meshes`, `snapshots` and `rendered`",
                    disk::shown(file)
                );
            }
            bail!(
                "no mesh found: this folder has no `mesh.yaml` and no `meshes/`, but `{0}` has; use -C {0}",
                folder.display()
            );
        }
        return Err(no_mesh()?.into());
    }
    Ok(files)
}

/// Returns the files that paths mean, if any.
pub(super) fn any_mesh_files(paths: &[InputFile]) -> anyhow::Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(expanded(path)?);
    }
    Ok(files)
}

/// Returns the nearest folder above that has meshes, no further than the repository's root.
pub(super) fn above(surroundings: &WorkingRepository) -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    surroundings
        .upwards(&here)
        .map(|(relative, _)| relative)
        .find(|folder| surroundings::has_mesh(folder))
}

/// A folder means the YAML files in it, by name.
fn expanded(input: &InputFile) -> anyhow::Result<Vec<InputFile>> {
    let InputFile { path, roots } = input;
    if disk::is_file(roots, path)? || !disk::is_folder(roots, path)? {
        return Ok(vec![input.clone()]);
    }
    Ok(disk::files_in(roots, path, &["yaml", "yml"])?
        .into_iter()
        .map(|path| InputFile { path, roots: roots.clone() })
        .collect())
}
