//! Arguments: the command line, and its help.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Args as _, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands;
use crate::settings::{Colour, Options, Voice};

/// Join Kubernetes clusters with Kilo and WireGuard, the GitOps way
#[derive(Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const LONG_ABOUT: &str = "\
Join Kubernetes clusters with Kilo and WireGuard, the GitOps way

`snapshot` saves the nodes of each cluster as JSON in git. `render` computes the Kilo Peers of each
cluster from the snapshots and a ClusterMesh. Flux or Argo CD applies them. clustermesh
does not run in a cluster and does not write to one.";

const EXIT_CODES: &str = "\
Options of a command can also be given before its name: `clustermesh -C mesh render`.

Exit codes:
  0  success, nothing to do
  1  problems found, files differ (--check), or Peers or nodes would be lost
  2  failed: wrong usage, unreadable input, or a cluster that cannot be reached";

#[derive(Subcommand)]
pub(crate) enum Command {
    Snapshot(commands::snapshot::SnapshotArgs),
    Render(commands::render::RenderArgs),
    Template(commands::template::TemplateArgs),
    Convert(commands::convert::ConvertArgs),
    Init(commands::init::InitArgs),
    Validate(commands::validate::ValidateArgs),
    Verify(commands::verify::VerifyArgs),
    Diff(commands::diff::DiffArgs),
    Trace(commands::trace::TraceArgs),
    Capacity(commands::capacity::CapacityArgs),
    #[cfg(feature = "snapshot")]
    Status(commands::status::StatusArgs),
    Rbac(commands::rbac::RbacArgs),
    Explain(commands::explain::ExplainArgs),
    Schema(commands::schema::SchemaArgs),
    Config(commands::config::ConfigArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
    Argocd(commands::argocd::ArgocdArgs),
}

/// The commands about clusters as they are.
const CLUSTERS: &[&str] = if cfg!(feature = "snapshot") {
    &["status", "rbac"]
} else {
    &["rbac"]
};

/// The commands by purpose, as the help lists them.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Build",
        &["snapshot", "render", "template", "convert", "init"],
    ),
    (
        "Check",
        &["validate", "verify", "diff", "trace", "capacity"],
    ),
    ("Clusters", CLUSTERS),
    ("Learn", &["explain", "schema", "config"]),
    ("Shell", &["completions", "man", "argocd"]),
];

/// Returns the names of the commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

impl Command {
    /// Returns the files that the command works with.
    pub(crate) fn options(&self) -> Option<&Options> {
        match self {
            Self::Snapshot(args) => Some(&args.options.0),
            Self::Render(args) => Some(&args.options),
            Self::Template(args) => Some(&args.options),
            Self::Convert(args) => Some(&args.options),
            Self::Init(args) => Some(&args.options.0),
            Self::Validate(args) => Some(&args.options),
            Self::Verify(args) => Some(&args.options),
            Self::Trace(args) => Some(&args.options),
            Self::Capacity(args) => Some(&args.options),
            Self::Diff(args) => Some(&args.options),
            #[cfg(feature = "snapshot")]
            Self::Status(args) => Some(&args.options),
            Self::Config(args) => Some(&args.options),
            Self::Argocd(args) => Some(args.options()),
            Self::Rbac(_)
            | Self::Explain(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    /// Returns whether the command reads the config, and warns of one that is ignored.
    pub(crate) fn has_settings(&self) -> bool {
        self.options().is_some() && !matches!(self, Self::Init(_) | Self::Argocd(_))
    }

    /// Returns how the command prints.
    pub(crate) fn voice(&self) -> Voice {
        let loud = |colour| Voice {
            colour,
            quiet: false,
        };
        match self {
            Self::Snapshot(args) => args.voice,
            Self::Render(args) => args.voice,
            Self::Template(args) => args.voice,
            Self::Convert(args) => args.voice,
            Self::Init(args) => args.voice,
            Self::Validate(args) => args.voice,
            Self::Verify(args) => args.voice,
            Self::Trace(args) => args.voice,
            Self::Capacity(args) => args.voice,
            Self::Diff(args) => args.voice,
            #[cfg(feature = "snapshot")]
            Self::Status(args) => args.voice,
            Self::Config(args) => args.voice,
            Self::Explain(args) => loud(args.colour),
            Self::Rbac(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Argocd(_) => loud(Colour {
                color: ColorChoice::Auto,
            }),
        }
    }
}

/// Reads a command line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let command = command();
    let words = reordered(&command, words.into_iter().collect());
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Returns the command line that is understood.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
}

/// Returns the help with the commands in their groups, for which clap has no headings.
fn template(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let width = names().map(str::len).max().unwrap_or_default();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "\n{header}{group}:{header:#}");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let space = " ".repeat(width - name.len());
            let _ = writeln!(text, "  {literal}{name}{literal:#}{space}  {about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

/// Moves options that stand before a command behind its name, where the command reads or refuses them:
/// `clustermesh -C mesh render` is `clustermesh render -C mesh`.
pub(crate) fn reordered(command: &clap::Command, words: Vec<OsString>) -> Vec<OsString> {
    const WORDS: &str = "words";
    let flag = |name| {
        clap::Arg::new(name)
            .long(name)
            .action(clap::ArgAction::SetTrue)
    };
    let front = Voice::augment_args(Options::augment_args(clap::Command::new("clustermesh")))
        .disable_help_flag(true)
        .mut_args(|arg| {
            if arg.get_action().takes_values() {
                arg.value_parser(clap::value_parser!(OsString))
            } else {
                arg
            }
        })
        .arg(flag("help").short('h'))
        .arg(flag("version").short('V'))
        .arg(
            clap::Arg::new(WORDS)
                .num_args(..)
                .trailing_var_arg(true)
                .value_parser(clap::value_parser!(OsString)),
        );
    let Ok(mut matches) = front.try_get_matches_from(&words) else {
        return words;
    };
    let behind: Vec<OsString> = matches
        .remove_many::<OsString>(WORDS)
        .into_iter()
        .flatten()
        .collect();
    // The names of the command, and of the command in it.
    let (mut depth, mut inner) = (0, command);
    while let Some(next) = behind.get(depth).and_then(|it| inner.find_subcommand(it)) {
        (depth, inner) = (depth + 1, next);
    }
    let front = words.len() - behind.len();
    let (program, options) = words.split_at(front.min(1));
    let options = options.get(..front.saturating_sub(1)).unwrap_or_default();
    // Those of the program itself need no command: `clustermesh -C mesh --version`.
    let is_own = |it: &&OsString| {
        ["-h", "--help", "-V", "--version"]
            .iter()
            .any(|own| *it == own)
    };
    let own: Vec<OsString> = options.iter().filter(is_own).cloned().collect();
    if !own.is_empty() {
        return [program, &own].concat();
    }
    // An unknown command is refused for its name.
    let options = if depth == 0 { &[] } else { options };
    let (names, rest) = behind.split_at(depth);
    [program, names, options, rest].concat()
}

#[cfg(test)]
mod tests;
