//! Options: settings on the command line, before the name of the command or behind it, and in variables, in the groups
//! that commands share.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, ColorChoice, Command, ValueHint};
use clustermesh::config::ceilings::Ceiling;

use super::surroundings::{NAME, WorkingRepository};
use super::{Setting, SettingOrigin};
use crate::disk::{self, Revision, Roots};

pub(super) use written::WrittenFiles;

/// The files that a command works with.
#[derive(Clone, Default)]
pub(crate) struct FileOptions {
    pub(super) surroundings: WorkingRepository,
    /// The commit whose files are read instead of those on disk.
    revision: Option<Arc<Revision>>,
    directory: Option<PathBuf>,
    /// Whether the command reads the config.
    reads_config: bool,
    root: Option<PathBuf>,
    pub(super) config: Option<Setting<PathBuf>>,
    pub(super) meshes: Option<Setting<Vec<PathBuf>>>,
    pub(super) snapshots: Option<Setting<PathBuf>>,
    pub(super) rendered: Option<Setting<PathBuf>>,
    pub(super) ceilings: Vec<Ceiling>,
}

/// Options for what is printed.
#[derive(Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct PrintOptions {
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// Print only problems, manifests and output for programs
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The headings of options that commands share.
pub(crate) const FILES: &str = "Files";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const CLUSTER_ACCESS: &str = "Cluster access";

/// The options as clap reads them. Their values are read by name, because only that distinguishes a
/// flag from a variable.
mod written {
    #![allow(dead_code, reason = "values are read by name")]

    use super::{CONFIG, Ceiling, FILES, MESHES, PathBuf, RENDERED, SNAPSHOTS, ValueHint, path};

    #[derive(clap::Args)]
    #[command(next_help_heading = FILES)]
    pub(in crate::settings) struct WrittenFiles {
        /// Run in this folder
        #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,

        /// Folder outside the repository from which files may be read
        ///
        /// Links, and paths in the config, may lead into this folder. All other files must be inside
        /// the repository.
        #[arg(
            long,
            value_name = "DIR",
            env = "CLUSTERMESH_ROOT",
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
            env = CONFIG.2,
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
            env = MESHES.2,
            value_delimiter = ',',
            value_parser = path(),
            value_hint = ValueHint::AnyPath
        )]
        meshes: Vec<PathBuf>,

        /// Folder with the snapshots [default: snapshots]
        #[arg(
            long,
            value_name = "DIR",
            env = SNAPSHOTS.2,
            value_parser = path(),
            value_hint = ValueHint::DirPath
        )]
        snapshots: Option<PathBuf>,

        /// Folder with the rendered manifests [default: rendered]
        #[arg(
            long,
            value_name = "DIR",
            env = RENDERED.2,
            value_parser = path(),
            value_hint = ValueHint::DirPath
        )]
        rendered: Option<PathBuf>,

        /// Change a limit on the size of the input or the proof; repeatable
        ///
        /// NAME is `clusters`, `nodes`, `ranges`, `anchors`, `expectations`, `peers` or `steps` (of the
        /// proof). Larger input is refused, to protect CI jobs from running out of memory.
        #[arg(
            long = "ceiling",
            value_name = "NAME=N",
            env = "CLUSTERMESH_CEILINGS",
            value_delimiter = ','
        )]
        ceilings: Vec<Ceiling>,
    }
}

/// The names of an option: by clap, on the command line, and in the environment.
struct Names(&'static str, &'static str, &'static str);

const CONFIG: Names = Names("config", "--config", "CLUSTERMESH_CONFIG");
const MESHES: Names = Names("meshes", "--mesh", "CLUSTERMESH_MESHES");
const SNAPSHOTS: Names = Names("snapshots", "--snapshots", "CLUSTERMESH_SNAPSHOTS");
const RENDERED: Names = Names("rendered", "--rendered", "CLUSTERMESH_RENDERED");

impl FileOptions {
    /// Reads the options that a command has.
    fn of(given: &GivenOptions) -> Self {
        let path = |id: &str| given.value(id).filter(|it: &PathBuf| is_given(it));
        let setting = |names: &Names| {
            let value = path(names.0)?;
            let origin = names.origin(given);
            Some(Setting { value, origin })
        };
        let mut meshes: Vec<PathBuf> = given.values(MESHES.0);
        meshes.retain(|it| is_given(it));
        Self {
            surroundings: WorkingRepository::default(),
            revision: None,
            directory: path("directory"),
            reads_config: given.has(CONFIG.0),
            root: path("root"),
            config: setting(&CONFIG),
            meshes: (!meshes.is_empty())
                .then(|| Setting { value: meshes, origin: MESHES.origin(given) }),
            snapshots: setting(&SNAPSHOTS),
            rendered: setting(&RENDERED),
            ceilings: given.values("ceilings"),
        }
    }

    #[cfg(test)]
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn named_meshes(&self) -> Vec<PathBuf> {
        let meshes = self.meshes.as_ref();
        meshes.map(|it| it.value.clone()).unwrap_or_default()
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
        Ok(Self { surroundings, ..self.clone() })
    }

    /// Returns the same options for the files of a commit.
    pub(crate) fn at(&self, revision: &Arc<Revision>) -> Self {
        Self { revision: Some(Arc::clone(revision)), ..self.clone() }
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
            None if self.reads_config => self.surroundings.nearest(&self.roots()).ok()?.ignored,
            _ => None,
        }
    }
}

impl PrintOptions {
    /// Reads the options that a command has.
    fn of(given: &GivenOptions) -> Self {
        Self {
            color: given.value("color").unwrap_or_default(),
            quiet: given.value("quiet").unwrap_or_default(),
        }
    }
}

impl Names {
    fn origin(&self, given: &GivenOptions) -> SettingOrigin {
        match given.side(self.0).and_then(|it| it.value_source(self.0)) {
            Some(ValueSource::EnvVariable) => SettingOrigin::Variable(self.2),
            _ => SettingOrigin::Flag(self.1),
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

/// Returns the common options of a command, by its name: the first ones of each list.
pub(crate) fn options_of(name: &str) -> Vec<Arg> {
    let (files, printing) = match name {
        "schema" | "completions" | "man" | "argocd" => (0, 0),
        "explain" => (7, 1),
        "init" => (1, 2),
        "parameters" => (4, 0),
        "generate" => (7, 0),
        "rbac" => (4, 2),
        "snapshot" => (5, 2),
        _ => (7, 2),
    };
    let all = |command: Command| command.get_arguments().cloned().collect::<Vec<_>>();
    let file_options = all(WrittenFiles::augment_args(clap::Command::new("")));
    let print_options = all(PrintOptions::augment_args(clap::Command::new("")));
    let files = file_options.into_iter().take(files);
    let files = files.map(|it| it.hide_env_values(true));
    files.chain(print_options.into_iter().take(printing)).collect()
}

/// Adds its common options to every command of a program, and all of them to the program.
pub(crate) fn with_common_options(program: Command) -> Command {
    fn with_options(command: Command) -> Command {
        let options = options_of(command.get_name());
        command.args(options).next_help_heading(None::<&str>).mut_subcommands(with_options)
    }
    // A command that does not have an option ignores its variable, too.
    let front = options_of(program.get_name()).into_iter();
    let front = front.map(|it| it.env(None::<&str>));
    program.mut_subcommands(with_options).args(front)
}

/// Returns the options behind the name of the command, and this name.
pub(crate) fn innermost(matches: &ArgMatches) -> (&ArgMatches, String) {
    let (mut behind, mut name) = (matches, String::new());
    while let Some((inner, next)) = behind.subcommand() {
        (behind, name) = (next, format!("{name} {inner}"));
    }
    (behind, name)
}

/// Reads the common options of a command line.
///
/// # Errors
/// An option is given twice, or the command does not have it.
pub(crate) fn read(
    program: &mut Command,
    matches: &ArgMatches,
) -> Result<(FileOptions, PrintOptions), clap::Error> {
    let (behind, name) = innermost(matches);
    let given = GivenOptions { before: matches, behind };
    for option in options_of("clustermesh") {
        let id = option.get_id().as_str();
        if !is_written(matches, id) {
            continue;
        }
        let flag = option.get_long().unwrap_or(id);
        if !given.has(id) {
            let problem = format!(
                "unexpected argument '--{flag}' found: `clustermesh{name}` does not have it"
            );
            return Err(program.error(ErrorKind::UnknownArgument, problem));
        }
        if is_written(behind, id) && !matches!(option.get_action(), ArgAction::Append) {
            let problem = format!("'--{flag}' is given before the command and behind it");
            return Err(program.error(ErrorKind::ArgumentConflict, problem));
        }
    }
    Ok((FileOptions::of(&given), PrintOptions::of(&given)))
}

/// The options that were given before the name of the command, and those behind it.
struct GivenOptions<'m> {
    before: &'m ArgMatches,
    behind: &'m ArgMatches,
}

/// Returns whether an option is on this side of a command line.
fn is_written(side: &ArgMatches, id: &str) -> bool {
    side.value_source(id) == Some(ValueSource::CommandLine)
}

impl GivenOptions<'_> {
    /// Returns whether the command has an option.
    pub(super) fn has(&self, id: &str) -> bool {
        self.behind.try_contains_id(id).is_ok()
    }

    /// Returns the side on which an option is given.
    fn side(&self, id: &str) -> Option<&ArgMatches> {
        if is_written(self.before, id) {
            return Some(self.before);
        }
        self.has(id).then_some(self.behind)
    }

    /// Returns the value of an option that the command has.
    pub(super) fn value<T: Clone + Send + Sync + 'static>(&self, id: &str) -> Option<T> {
        self.side(id)?.get_one(id).cloned()
    }

    /// Returns the values on both sides.
    fn values<T: Clone + Send + Sync + 'static>(&self, id: &str) -> Vec<T> {
        let front = Some(self.before).filter(|it| is_written(it, id));
        let behind = self.has(id).then_some(self.behind);
        let behind = behind.filter(|it| front.is_none() || is_written(it, id));
        let sides = [front, behind].into_iter().flatten();
        let values = sides.filter_map(|it| it.get_many(id));
        values.flatten().cloned().collect()
    }
}
