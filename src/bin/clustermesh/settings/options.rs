//! Options: settings on the command line and in variables, in the groups that commands share.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, ColorChoice, Command, FromArgMatches, ValueHint};
use clustermesh::config::ceilings::Ceiling;

use super::setting::{Setting, SettingOrigin};
use super::surroundings::NAME;
use super::surroundings::WorkingRepository;
use crate::disk::{self, Revision, Roots};

/// Options of a command that reads meshes, snapshots and the rendered tree.
#[derive(Clone, Default)]
pub(crate) struct FileOptions {
    pub(super) surroundings: WorkingRepository,
    /// The commit whose files are read instead of those on disk.
    revision: Option<Arc<Revision>>,
    directory: Option<PathBuf>,
    root: Option<PathBuf>,
    pub(super) config: Option<Setting<PathBuf>>,
    pub(super) meshes: Option<Setting<Vec<PathBuf>>>,
    pub(super) snapshots: Option<Setting<PathBuf>>,
    pub(super) rendered: Option<Setting<PathBuf>>,
    pub(super) ceilings: Vec<Ceiling>,
}

/// Options of a command that reads nothing but meshes.
pub(crate) struct MeshOptions(pub(crate) FileOptions);

/// Options of a command that reads meshes and snapshots.
pub(crate) struct SnapshotOptions(pub(crate) FileOptions);

/// Options of a command that writes where it is started.
pub(crate) struct FolderOptions(pub(crate) FileOptions);

/// The options that most commands share: the files that they work with, and how they print.
#[derive(clap::Args)]
pub(crate) struct CommonOptions<F: clap::Args = FileOptions> {
    #[command(flatten)]
    pub(crate) files: F,

    #[command(flatten)]
    pub(crate) printing: PrintOptions,
}

/// The option for colours.
#[derive(Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct Colour {
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// Options for what is printed.
#[derive(Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct PrintOptions {
    #[command(flatten)]
    pub(crate) colour: Colour,

    /// Print only problems, manifests and output for programs
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The headings of options that commands share.
pub(crate) const FILES: &str = "Files";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const CLUSTER_ACCESS: &str = "Cluster access";

/// The groups as clap reads them. Their values are read by name, because only that distinguishes a
/// flag from a variable.
mod groups {
    #![allow(dead_code, reason = "values are read by name")]

    use super::{CONFIG, Ceiling, FILES, MESHES, PathBuf, RENDERED, SNAPSHOTS, ValueHint, path};

    #[derive(clap::Args)]
    #[command(next_help_heading = FILES)]
    pub(super) struct Folder {
        /// Run in this folder
        #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    }

    #[derive(clap::Args)]
    #[command(next_help_heading = FILES)]
    pub(super) struct MeshesGroup {
        /// Folder outside the repository from which files may be read
        ///
        /// Links, and paths in the config, may lead into this folder. All other files must be inside
        /// the repository.
        #[arg(
            long,
            value_name = "DIR",
            env = "CLUSTERMESH_ROOT",
            hide_env_values = true,
            value_parser = path(),
            value_hint = ValueHint::DirPath
        )]
        root: Option<PathBuf>,

        /// Config file [default: clustermesh.yaml here or in a parent folder]
        ///
        /// Parent folders are searched up to the root of the repository.
        #[arg(
            long,
            value_name = "FILE",
            env = CONFIG.variable,
            hide_env_values = true,
            value_parser = path(),
            value_hint = ValueHint::FilePath
        )]
        config: Option<PathBuf>,

        /// File or folder with meshes; repeatable [default: mesh.yaml, meshes/]
        ///
        /// The files contain `ClusterMesh` documents. In a folder, all `*.yaml` and `*.yml` files are
        /// read.
        #[arg(
            long = "mesh",
            value_name = "PATH",
            env = MESHES.variable,
            hide_env_values = true,
            value_delimiter = ',',
            value_parser = path(),
            value_hint = ValueHint::AnyPath
        )]
        meshes: Vec<PathBuf>,
    }

    #[derive(clap::Args)]
    #[command(next_help_heading = FILES)]
    pub(super) struct SnapshotsGroup {
        /// Folder with the snapshots [default: snapshots]
        #[arg(
            long,
            value_name = "DIR",
            env = SNAPSHOTS.variable,
            hide_env_values = true,
            value_parser = path(),
            value_hint = ValueHint::DirPath
        )]
        snapshots: Option<PathBuf>,
    }

    #[derive(clap::Args)]
    #[command(next_help_heading = FILES)]
    pub(super) struct RenderedOptions {
        /// Folder with the rendered manifests [default: rendered]
        #[arg(
            long,
            value_name = "DIR",
            env = RENDERED.variable,
            hide_env_values = true,
            value_parser = path(),
            value_hint = ValueHint::DirPath
        )]
        rendered: Option<PathBuf>,

        /// Change a limit on the size of the input; repeatable
        ///
        /// NAME is `clusters`, `nodes`, `ranges`, `anchors`, `expectations` or `peers`. Larger input is
        /// refused, to protect CI jobs from running out of memory.
        #[arg(
            long = "ceiling",
            value_name = "NAME=N",
            env = "CLUSTERMESH_CEILINGS",
            hide_env_values = true,
            value_delimiter = ','
        )]
        ceilings: Vec<Ceiling>,
    }
}

/// Makes types of options from groups.
macro_rules! options {
    ($($name:ident { $($group:ident)* } $wrap:expr;)*) => {$(
        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                $(let command = groups::$group::augment_args(command);)*
                command.next_help_heading(None::<&str>)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok($wrap(FileOptions::from_matches(matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    )*};
}

options! {
    FolderOptions { Folder } Self;
    MeshOptions { Folder MeshesGroup } Self;
    SnapshotOptions { Folder MeshesGroup SnapshotsGroup } Self;
    FileOptions { Folder MeshesGroup SnapshotsGroup RenderedOptions } |options| options;
}

/// The name of an option.
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

impl FileOptions {
    /// Reads the options that a command has.
    fn from_matches(matches: &ArgMatches) -> Self {
        let path = |id: &str| {
            let path: Option<&PathBuf> = matches.try_get_one(id).ok().flatten();
            path.filter(|path| is_given(path)).cloned()
        };
        let setting = |names: &Names| {
            let value = path(names.id)?;
            let origin = names.origin(matches);
            Some(Setting { value, origin })
        };
        let meshes: Vec<PathBuf> = matches
            .try_get_many::<PathBuf>(MESHES.id)
            .ok()
            .flatten()
            .into_iter()
            .flatten()
            .filter(|it| is_given(it))
            .cloned()
            .collect();
        let ceilings = matches.try_get_many::<Ceiling>("ceilings").ok().flatten();
        Self {
            surroundings: WorkingRepository::default(),
            revision: None,
            directory: path("directory"),
            root: path("root"),
            config: setting(&CONFIG),
            meshes: (!meshes.is_empty()).then(|| Setting {
                value: meshes,
                origin: MESHES.origin(matches),
            }),
            snapshots: setting(&SNAPSHOTS),
            rendered: setting(&RENDERED),
            ceilings: ceilings.into_iter().flatten().copied().collect(),
        }
    }

    /// Goes to the folder that was asked for.
    pub(crate) fn enter(&self) -> anyhow::Result<()> {
        if let Some(directory) = &self.directory {
            env::set_current_dir(directory)
                .with_context(|| format!("cannot change to folder `{}`", directory.display()))?;
        }
        Ok(())
    }

    /// Goes to the folder, here or above, from which a repository with this root is rendered, and returns
    /// the options of a run that stays within that root.
    pub(crate) fn enter_repository(&self, root: PathBuf) -> anyhow::Result<Self> {
        let surroundings = WorkingRepository::within(root);
        let home = surroundings.home().with_context(|| {
            format!(
                "no {NAME}, mesh.yaml or meshes/ found in the folder of the Application or above \
                 it, up to the root of the repository"
            )
        })?;
        env::set_current_dir(&home)
            .with_context(|| format!("cannot enter {}", disk::shown(&home)))?;
        Ok(Self {
            surroundings,
            ..self.clone()
        })
    }

    /// Returns the same options for the files of a commit.
    pub(crate) fn at(&self, revision: &Arc<Revision>) -> Self {
        Self {
            revision: Some(Arc::clone(revision)),
            ..self.clone()
        }
    }

    /// Returns the folders that files may be in which no person named for this run: the repository,
    /// or else the working folder, and the one that is allowed besides.
    pub(super) fn roots(&self) -> Roots {
        if let Some(revision) = &self.revision {
            return Roots::of_revision(Arc::clone(revision));
        }
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
            None => self.surroundings.nearest(&self.roots()).ignored,
        }
    }
}

impl Names {
    fn origin(&self, matches: &ArgMatches) -> SettingOrigin {
        match matches.value_source(self.id) {
            Some(ValueSource::EnvVariable) => SettingOrigin::Variable(self.variable),
            _ => SettingOrigin::Flag(self.flag),
        }
    }
}

/// Accepts an empty path, too: an empty variable counts as not set.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn is_given(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}
