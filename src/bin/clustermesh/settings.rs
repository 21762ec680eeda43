//! Settings: which files a run is about, from flags, variables, the config and what is there.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ColorChoice};
use clustermesh::config::{self, Config};

use crate::input;
use crate::input::Unreadable;

/// The config's name, looked for from the working folder upwards.
const CONFIG: &str = "clustermesh.yaml";

/// The largest config that is read, in bytes.
const CONFIG_LIMIT: u64 = 1 << 20;

/// Options of every command.
#[derive(Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// Run as if started in this folder
    #[arg(short = 'C', long, value_name = "DIR", global = true)]
    directory: Option<PathBuf>,

    /// Config file [default: clustermesh.yaml here or above, within the repository]
    #[arg(long, value_name = "FILE", env = "CLUSTERMESH_CONFIG", global = true, value_parser = path())]
    config: Option<PathBuf>,

    /// File or folder with `ClusterMesh` documents; repeatable [default: mesh.yaml, meshes/]
    #[arg(
        long = "mesh",
        value_name = "PATH",
        env = "CLUSTERMESH_MESHES",
        value_delimiter = ',',
        value_parser = path(),
        global = true
    )]
    meshes: Vec<PathBuf>,

    /// Folder of the snapshots [default: snapshots]
    #[arg(long, value_name = "DIR", env = "CLUSTERMESH_SNAPSHOTS", global = true, value_parser = path())]
    snapshots: Option<PathBuf>,

    /// Folder of the rendered manifests [default: rendered]
    #[arg(long, value_name = "DIR", env = "CLUSTERMESH_RENDERED", global = true, value_parser = path())]
    rendered: Option<PathBuf>,

    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    color: ColorChoice,
}

/// Takes an empty path, too: a variable that is set to nothing says nothing.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Returns a path that says something.
fn given(path: Option<&PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty()).cloned()
}

/// What a run is about.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Files with meshes, in order.
    pub(crate) meshes: Vec<PathBuf>,
    /// The folder of the snapshots.
    pub(crate) snapshots: PathBuf,
    /// The folder of the rendered manifests.
    pub(crate) rendered: PathBuf,
}

impl Options {
    /// Returns when to use colour.
    pub(crate) fn color(&self) -> ColorChoice {
        self.color
    }

    /// Goes to the folder that was asked for.
    pub(crate) fn enter(&self) -> anyhow::Result<()> {
        if let Some(directory) = &self.directory {
            env::set_current_dir(directory)
                .with_context(|| format!("cannot go to `{}`", directory.display()))?;
        }
        Ok(())
    }

    /// Settles every path, flags over variables over the config over defaults.
    pub(crate) fn settle(&self) -> Result<Settings, Unreadable> {
        let (base, config) = self.config()?;
        let from_config =
            |path: Option<&String>, default: &str| base.join(path.map_or(default, String::as_str));
        let named = self.meshes.iter().filter_map(|path| given(Some(path)));
        let named: Vec<PathBuf> = named.collect();
        let meshes = if !named.is_empty() {
            named
        } else if config.meshes.is_empty() {
            default_meshes(&base)
        } else {
            config.meshes.iter().map(|path| base.join(path)).collect()
        };
        Ok(Settings {
            meshes: mesh_files(&meshes)?,
            snapshots: given(self.snapshots.as_ref())
                .unwrap_or_else(|| from_config(config.snapshots.as_ref(), "snapshots")),
            rendered: given(self.rendered.as_ref())
                .unwrap_or_else(|| from_config(config.rendered.as_ref(), "rendered")),
        })
    }

    /// Settles the folder of the snapshots alone: a mesh need not be there yet.
    pub(crate) fn settle_snapshots(&self) -> Result<PathBuf, Unreadable> {
        if let Some(folder) = given(self.snapshots.as_ref()) {
            return Ok(folder);
        }
        let (base, config) = self.config()?;
        Ok(base.join(config.snapshots.as_deref().unwrap_or("snapshots")))
    }

    /// Returns the config, and the folder to which its paths are relative.
    fn config(&self) -> Result<(PathBuf, Config), Unreadable> {
        let Some(path) = given(self.config.as_ref()).or_else(find_config) else {
            return Ok((PathBuf::new(), Config::default()));
        };
        let source = input::source(&path, CONFIG_LIMIT)?;
        let config = config::read(&source).map_err(|problems| Unreadable::Wrong {
            sources: vec![source],
            problems,
        })?;
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok((base, config))
    }
}

/// Looks for the config here and above, no further than the repository's root.
fn find_config() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let mut relative = PathBuf::new();
    for folder in here.ancestors() {
        let candidate = relative.join(CONFIG);
        if candidate.is_file() {
            return Some(candidate);
        }
        if folder.join(".git").exists() {
            return None;
        }
        relative.push("..");
    }
    None
}

fn default_meshes(base: &Path) -> Vec<PathBuf> {
    ["mesh.yaml", "meshes"]
        .into_iter()
        .map(|name| base.join(name))
        .filter(|path| path.exists())
        .collect()
}

/// A folder means the YAML files in it, by name.
fn mesh_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in
            fs::read_dir(path).with_context(|| format!("cannot list `{}`", path.display()))?
        {
            let file = entry?.path();
            let is_yaml = file
                .extension()
                .is_some_and(|it| it == "yaml" || it == "yml");
            if is_yaml && file.is_file() {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!("`{}` has no *.yaml or *.yml file", path.display());
        }
        found.sort();
        files.extend(found);
    }
    if files.is_empty() {
        bail!(
            "there is no `mesh.yaml` and no `meshes/` here; name the mesh with --mesh, the folder \
             with -C, or write a {CONFIG}"
        );
    }
    Ok(files)
}
