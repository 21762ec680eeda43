//! Options: what can be said of the settings on the command line and in variables.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, ColorChoice, Command, FromArgMatches, ValueHint};
use clustermesh::config::ceilings::Ceiling;

use super::config_file::NAME;
use super::setting::{Origin, Setting};
use super::surroundings::Surroundings;
use crate::disk::{self, Roots};

/// Options of every command.
#[derive(Clone)]
pub(crate) struct Options {
    pub(super) surroundings: Surroundings,
    directory: Option<PathBuf>,
    root: Option<PathBuf>,
    color: ColorChoice,
    is_quiet: bool,
    pub(super) config: Option<Setting<PathBuf>>,
    pub(super) meshes: Option<Setting<Vec<PathBuf>>>,
    pub(super) snapshots: Option<Setting<PathBuf>>,
    pub(super) rendered: Option<Setting<PathBuf>>,
    pub(super) ceilings: Vec<Ceiling>,
}

/// The same, as clap reads them.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of every command")]
struct Arguments {
    /// Run as if started in this folder
    #[arg(short = 'C', long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// Folder outside of the repository that links and paths of the config may lead to
    #[arg(
        long,
        value_name = "DIR",
        env = "CLUSTERMESH_ROOT",
        hide_env_values = true,
        global = true,
        value_parser = path(),
        value_hint = ValueHint::DirPath
    )]
    root: Option<PathBuf>,

    /// Config file [default: clustermesh.yaml here or above, within the repository]
    #[arg(
        long,
        value_name = "FILE",
        env = CONFIG.variable,
        hide_env_values = true,
        global = true,
        value_parser = path(),
        value_hint = ValueHint::FilePath
    )]
    config: Option<PathBuf>,

    /// File or folder with `ClusterMesh` documents; repeatable [default: mesh.yaml, meshes/]
    #[arg(
        long = "mesh",
        value_name = "PATH",
        env = MESHES.variable,
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = path(),
        value_hint = ValueHint::AnyPath,
        global = true
    )]
    meshes: Vec<PathBuf>,

    /// Folder of the snapshots [default: snapshots]
    #[arg(
        long,
        value_name = "DIR",
        env = SNAPSHOTS.variable,
        hide_env_values = true,
        global = true,
        value_parser = path(),
        value_hint = ValueHint::DirPath
    )]
    snapshots: Option<PathBuf>,

    /// Folder of the rendered manifests [default: rendered]
    #[arg(
        long,
        value_name = "DIR",
        env = RENDERED.variable,
        hide_env_values = true,
        global = true,
        value_parser = path(),
        value_hint = ValueHint::DirPath
    )]
    rendered: Option<PathBuf>,

    /// Accept more or less input than the built-in ceilings do; repeatable. NAME is one of clusters,
    /// nodes, ranges, anchors, expectations and peers
    #[arg(
        long = "ceiling",
        value_name = "NAME=N",
        env = "CLUSTERMESH_CEILINGS",
        hide_env_values = true,
        value_delimiter = ',',
        global = true
    )]
    ceilings: Vec<Ceiling>,

    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    color: ColorChoice,

    /// Print nothing on success, except manifests and other output for programs
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// What an option is called.
struct Names {
    /// By clap.
    id: &'static str,
    /// On the command line.
    flag: &'static str,
    /// In the environment.
    variable: &'static str,
}

const CONFIG: Names = Names {
    id: "config",
    flag: "--config",
    variable: "CLUSTERMESH_CONFIG",
};

const MESHES: Names = Names {
    id: "meshes",
    flag: "--mesh",
    variable: "CLUSTERMESH_MESHES",
};

const SNAPSHOTS: Names = Names {
    id: "snapshots",
    flag: "--snapshots",
    variable: "CLUSTERMESH_SNAPSHOTS",
};

const RENDERED: Names = Names {
    id: "rendered",
    flag: "--rendered",
    variable: "CLUSTERMESH_RENDERED",
};

impl Options {
    /// Returns when to use colour.
    pub(crate) fn color(&self) -> ColorChoice {
        self.color
    }

    /// Returns whether a run that succeeds prints nothing for people.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Goes to the folder that was asked for.
    pub(crate) fn enter(&self) -> anyhow::Result<()> {
        if let Some(directory) = &self.directory {
            env::set_current_dir(directory)
                .with_context(|| format!("cannot go to `{}`", directory.display()))?;
        }
        Ok(())
    }

    /// Goes to the folder, here or above, from which a repository with this root is rendered, and returns
    /// the options of a run that stays within that root.
    pub(crate) fn enter_repository(&self, root: PathBuf) -> anyhow::Result<Self> {
        let surroundings = Surroundings::within(root);
        let home = surroundings.home().with_context(|| {
            format!(
                "no {NAME}, mesh.yaml or meshes/ in the folder of the Application or above it, up to \
                 the root of the repository"
            )
        })?;
        env::set_current_dir(&home)
            .with_context(|| format!("cannot enter {}", disk::shown(&home)))?;
        Ok(Self {
            surroundings,
            ..self.clone()
        })
    }

    /// Returns the folders that files may lie in which no person named for this run: the repository,
    /// or else the working folder, and the one that is allowed besides.
    pub(super) fn roots(&self) -> Roots {
        let home = self.surroundings.repository();
        let roots = Roots::within(home.as_deref().unwrap_or(Path::new(".")));
        match &self.root {
            Some(root) => roots.and(root),
            None => roots,
        }
    }

    /// Returns a config above the working folder that is ignored because another user owns it.
    pub(crate) fn ignored_config(&self) -> Option<PathBuf> {
        match self.config {
            Some(_) => None,
            None => self.surroundings.nearest().ignored,
        }
    }
}

/// By hand, because a derived one does not know who gave a value.
impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let one = |names: &Names, path: Option<PathBuf>| {
            let value = path.filter(|path| says_something(path))?;
            let origin = names.origin(matches);
            Some(Setting { value, origin })
        };
        let meshes = arguments.meshes.into_iter();
        let meshes: Vec<PathBuf> = meshes.filter(|path| says_something(path)).collect();
        Ok(Self {
            surroundings: Surroundings::default(),
            directory: arguments.directory,
            root: arguments.root.filter(|path| says_something(path)),
            color: arguments.color,
            is_quiet: arguments.quiet,
            config: one(&CONFIG, arguments.config),
            meshes: (!meshes.is_empty()).then(|| Setting {
                value: meshes,
                origin: MESHES.origin(matches),
            }),
            snapshots: one(&SNAPSHOTS, arguments.snapshots),
            rendered: one(&RENDERED, arguments.rendered),
            ceilings: arguments.ceilings,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Options {
    fn augment_args(command: Command) -> Command {
        Arguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args_for_update(command)
    }
}

impl Names {
    fn origin(&self, matches: &ArgMatches) -> Origin {
        match matches.value_source(self.id) {
            Some(ValueSource::EnvVariable) => Origin::Variable(self.variable),
            _ => Origin::Flag(self.flag),
        }
    }
}

/// Takes an empty path, too: a variable that is set to nothing says nothing.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn says_something(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}
