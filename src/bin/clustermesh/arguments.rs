//! Arguments: the command line, and its help.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::command_groups::{GROUPS, names};
use crate::commands::{self, explain::ExplainArgs};
use crate::output::ReportFormat;
use crate::settings::{CLUSTER_ACCESS, Colour, FILES, FileOptions, OUTPUT, PrintOptions};

/// Join Kubernetes clusters with Kilo and WireGuard, the GitOps way
#[derive(Parser)]
#[command(version, about, long_about = LONG_ABOUT)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const LONG_ABOUT: &str = "\
Join Kubernetes clusters with Kilo and WireGuard, the GitOps way

`snapshot` saves the nodes of each cluster as JSON in git. `render` computes the Kilo Peers of each
cluster from the snapshots and a ClusterMesh. Flux or Argo CD applies them. clustermesh
does not run in a cluster and does not write to one.";

const COMMON_OPTIONS: &str = "Common options, which the help of a command only names:";

const EXIT_CODES: &str = "\
Exit codes:
  0  success, nothing to do
  1  problems found, files differ (--check), or Peers or nodes would be lost
  2  failed: wrong usage, unreadable input, or a cluster that cannot be reached

Options of a command can also be given before its name: `clustermesh -C mesh render`.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Init(commands::init::InitArgs),
    Snapshot(commands::snapshot::SnapshotArgs),
    Render(commands::render::RenderArgs),
    Template(commands::template::TemplateArgs),
    Argocd(commands::argocd::ArgocdArgs),
    Validate(commands::validate::ValidateArgs),
    Verify(commands::verify::VerifyArgs),
    Outage(commands::outage::OutageArgs),
    Diff(commands::diff::DiffArgs),
    Trace(commands::trace::TraceArgs),
    Graph(commands::graph::GraphArgs),
    Capacity(commands::capacity::CapacityArgs),
    Report(commands::report::ReportArgs),
    #[cfg(feature = "snapshot")]
    Status(commands::status::StatusArgs),
    Guard(commands::guard::GuardArgs),
    Rbac(commands::rbac::RbacArgs),
    Dns(commands::dns::DnsArgs),
    Wireguard(commands::wireguard::WireguardArgs),
    Firewall(commands::firewall::FirewallArgs),
    Annotate(commands::annotate::AnnotateArgs),
    Explain(commands::explain::ExplainArgs),
    Schema(commands::schema::SchemaArgs),
    Config(commands::config::ConfigArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// The options of a command that every command may have.
#[derive(Clone, Copy)]
pub(crate) struct GivenOptions<'o> {
    /// The files that the command works with.
    pub(crate) files: Option<&'o FileOptions>,
    pub(crate) printing: PrintOptions,
}

impl Command {
    /// Returns the options that were given.
    pub(crate) fn options(&self) -> GivenOptions<'_> {
        let (files, printing) = match self {
            Self::Snapshot(args) => (&args.common.files.0, args.common.printing),
            Self::Render(args) => (&args.common.files, args.common.printing),
            Self::Template(args) => (&args.common.files, args.common.printing),
            Self::Init(args) => (&args.common.files.0, args.common.printing),
            Self::Validate(args) => (&args.common.files, args.common.printing),
            Self::Verify(args) => (&args.common.files, args.common.printing),
            Self::Outage(args) => (&args.common.files, args.common.printing),
            Self::Trace(args) => (&args.common.files, args.common.printing),
            Self::Graph(args) => (&args.common.files, args.common.printing),
            Self::Capacity(args) => (&args.common.files, args.common.printing),
            Self::Diff(args) => (&args.common.files, args.common.printing),
            Self::Report(args) => (&args.common.files, args.common.printing),
            #[cfg(feature = "snapshot")]
            Self::Status(args) => (&args.common.files, args.common.printing),
            Self::Guard(args) => (&args.common.files, args.common.printing),
            Self::Rbac(args) => (&args.common.files.0, args.common.printing),
            Self::Dns(args) => (&args.common.files, args.common.printing),
            Self::Wireguard(args) => (&args.common.files, args.common.printing),
            Self::Firewall(args) => (&args.common.files, args.common.printing),
            Self::Annotate(args) => (&args.common.files, args.common.printing),
            Self::Config(args) => (&args.common.files, args.common.printing),
            Self::Argocd(args) => (args.files(), PrintOptions::default()),
            Self::Explain(ExplainArgs { colour, .. }) => {
                return GivenOptions::without_files(*colour);
            }
            Self::Schema(_) | Self::Completions(_) | Self::Man(_) => {
                return GivenOptions::without_files(Colour::default());
            }
        };
        GivenOptions {
            files: Some(files),
            printing,
        }
    }

    /// Returns the format of findings, if the command has no other result.
    pub(crate) fn findings_format(&self) -> ReportFormat {
        match self {
            Self::Validate(args) => args.output,
            Self::Verify(args) => args.output.into(),
            Self::Outage(args) => args.output.into(),
            Self::Trace(args) => args.format().into(),
            Self::Graph(args) => args.output.into(),
            Self::Capacity(args) => args.output.into(),
            #[cfg(feature = "snapshot")]
            Self::Status(args) => args.output.into(),
            Self::Config(args) => args.output.into(),
            Self::Dns(args) => args.output.into(),
            Self::Wireguard(args) => args.output.into(),
            Self::Firewall(args) => args.output.into(),
            Self::Annotate(args) => args.output.into(),
            _ => ReportFormat::Human,
        }
    }

    /// Returns whether the command reads the config, and warns of one that is ignored.
    pub(crate) fn has_settings(&self) -> bool {
        self.options().files.is_some() && !matches!(self, Self::Init(_) | Self::Argocd(_))
    }
}

impl GivenOptions<'_> {
    fn without_files(colour: Colour) -> Self {
        Self {
            files: None,
            printing: PrintOptions {
                colour,
                quiet: false,
            },
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
    let command = in_either_case(Cli::command());
    let end = format!(
        "{COMMON_OPTIONS}\n\n{}\n\n{EXIT_CODES}",
        common_options().trim_end()
    );
    let command = with_common_options_once(command).after_long_help(end);
    let template = template(&command);
    command.help_template(template)
}

/// Returns the description of the options that commands share.
fn common_options() -> String {
    let command = with_options(clap::Command::new("clustermesh")).disable_help_flag(true);
    #[cfg(feature = "snapshot")]
    let command = crate::reach::ReachOptions::augment_args(command);
    let help = command.help_template("{all-args}").render_long_help();
    help.ansi().to_string()
}

/// Hides the options that commands share in the help of each command, which names them in one line instead.
fn with_common_options_once(command: clap::Command) -> clap::Command {
    const HEADINGS: [&str; 3] = [FILES, OUTPUT, CLUSTER_ACCESS];
    let is_common = |arg: &clap::Arg| {
        arg.get_help_heading()
            .is_some_and(|it| HEADINGS.contains(&it))
    };
    let common = command.get_arguments().filter(|it| is_common(it));
    let names: Vec<String> = common
        .filter_map(|it| Some(format!("--{}", it.get_long()?)))
        .collect();
    let command = command
        .mut_args(|arg| if is_common(&arg) { arg.hide(true) } else { arg })
        .mut_subcommands(with_common_options_once);
    if names.is_empty() {
        return command;
    }
    let end = command
        .get_after_help()
        .map(|it| format!("\n\n{}", it.ansi()));
    let line = format!(
        "Common options (see `clustermesh --help`): {}",
        names.join(", ")
    );
    command.after_help(line + &end.unwrap_or_default())
}

/// Accepts the values of closed choices in upper case too, as in `--fail-on Warning`.
fn in_either_case(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_closed = !arg.get_possible_values().is_empty() && arg.get_action().takes_values();
        arg.ignore_case(is_closed)
    });
    command.mut_subcommands(in_either_case)
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

/// Returns the command line with all options that are understood, also those that the help of a command only names.
pub(crate) fn completed() -> clap::Command {
    with_options(Cli::command())
}

/// Adds the options that may stand before a command.
fn with_options(command: clap::Command) -> clap::Command {
    PrintOptions::augment_args(FileOptions::augment_args(command))
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
    let front = with_options(clap::Command::new("clustermesh"))
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
