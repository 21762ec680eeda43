//! Arguments: the command line, and its help.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, FromArgMatches as _, Subcommand, ValueEnum as _};
use clustermesh::diagnostic;
use clustermesh::document::nearest;

use crate::command_groups::{GROUPS, names};
use crate::commands;
use crate::output::ReportFormat;
use crate::settings::{self, CLUSTER_ACCESS, FILES, FileOptions, OUTPUT, PrintOptions};
use crate::threshold;

/// The longest word that an error repeats, in characters.
const SHOWN: usize = 400;

/// A command line.
pub(crate) struct Cli {
    pub(crate) command: Command,
    pub(crate) files: FileOptions,
    pub(crate) printing: PrintOptions,
    /// The format of findings, if the command has no other result.
    pub(crate) findings_format: ReportFormat,
}

const LONG_ABOUT: &str = "\
Join Kubernetes clusters with Kilo and WireGuard, the GitOps way

`snapshot` saves the nodes of each cluster as JSON in git. `render` computes the Kilo Peers of each
cluster from the snapshots and a ClusterMesh. Flux or Argo CD applies them. clustermesh
does not run in a cluster and does not write to one.";

const COMMON_OPTIONS: &str = "Common options, which the help of a command only names:";

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  problems found, files differ (--check), or Peers or nodes would be lost
  2  failed: wrong usage, unreadable input, or a cluster that cannot be reached

Common options can also be given before the name of a command: `clustermesh -C mesh render`.";

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

/// Reads a command line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut program = command();
    let matches = program.try_get_matches_from_mut(words);
    let matches = matches.map_err(|it| tips::with_tip(it, &program))?;
    let (files, printing) = settings::read(&mut program, &matches)?;
    let command = Command::from_arg_matches(&matches)?;
    let (given, _) = settings::innermost(&matches);
    if given.try_contains_id(threshold::FLAG).is_ok() {
        threshold::floor().map_err(|it| program.error(ErrorKind::ValueValidation, it))?;
    }
    Ok(Cli { findings_format: findings_format(&command, given), command, files, printing })
}

/// Returns a note about each variable of the environment that no option reads, with the one that was probably meant.
pub(crate) fn notes_about_variables() -> Vec<String> {
    const PREFIX: &str = "CLUSTERMESH_";
    let ending = |name: OsString| Some(name.to_str()?.strip_prefix(PREFIX)?.to_owned());
    let given: Vec<String> = env::vars_os().filter_map(|(name, _)| ending(name)).collect();
    if given.is_empty() {
        return Vec::new();
    }
    let program = command();
    let commands = program.get_subcommands().chain([&program]);
    let options = commands.flat_map(clap::Command::get_arguments);
    let options = options.filter_map(|it| it.get_env().map(OsString::from));
    let known: BTreeSet<String> =
        options.chain([threshold::FLOOR.into()]).filter_map(ending).collect();
    let unknown = given.iter().filter(|it| !known.contains(*it));
    let notes = unknown.filter_map(|name| {
        let meant = nearest(name, known.iter().map(String::as_str))?;
        let name = diagnostic::escaped(name, SHOWN);
        Some(format!("{PREFIX}{name} is not read; did you mean {PREFIX}{meant}?"))
    });
    notes.collect()
}

/// Escapes the words of a command line that an error repeats.
pub(crate) fn escaped(mut error: clap::Error) -> clap::Error {
    let escaped = |text: &String| diagnostic::escaped(text, SHOWN);
    let hostile: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| {
            let value = match value {
                ContextValue::String(text) => ContextValue::String(escaped(text)),
                ContextValue::Strings(texts) => {
                    ContextValue::Strings(texts.iter().map(escaped).collect())
                }
                _ => return None,
            };
            Some((kind, value))
        })
        .filter(|(kind, value)| error.get(*kind) != Some(value))
        .collect();
    for (kind, value) in hostile {
        error.insert(kind, value);
        // It repeats the word as it is.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Returns the format of findings, by the value of `--output`.
fn findings_format(command: &Command, given: &ArgMatches) -> ReportFormat {
    let output = given.try_get_raw("output").ok().flatten();
    let output = output.and_then(|mut it| it.next_back()?.to_str());
    match (command, output) {
        (Command::Diff(_), _) | (_, None) => ReportFormat::Human,
        (Command::Config(_), Some("yaml")) => ReportFormat::Json,
        (_, Some(name)) => ReportFormat::from_str(name, true).unwrap_or(ReportFormat::Human),
    }
}

/// Returns the command line that is understood.
pub(crate) fn command() -> clap::Command {
    let command = in_either_case(completed());
    let end = format!("{COMMON_OPTIONS}\n\n{}\n\n{EXIT_CODES}", common_options().trim_end());
    let command = with_common_options_once(command).after_help(None::<&str>).after_long_help(end);
    let template = template(&command);
    command.help_template(template)
}

/// Returns the description of the options that commands share.
fn common_options() -> String {
    let command = clap::Command::new("clustermesh").disable_help_flag(true);
    let command = command.args(settings::options_of("clustermesh"));
    #[cfg(feature = "snapshot")]
    let command = <crate::reach::ReachOptions as clap::Args>::augment_args(command);
    let help = command.help_template("{all-args}").render_long_help();
    help.ansi().to_string()
}

/// Hides the options that commands share in the help of each command, which names them in one line instead.
fn with_common_options_once(command: clap::Command) -> clap::Command {
    const HEADINGS: [&str; 3] = [FILES, OUTPUT, CLUSTER_ACCESS];
    let is_common =
        |arg: &clap::Arg| arg.get_help_heading().is_some_and(|it| HEADINGS.contains(&it));
    let common = command.get_arguments().filter(|it| is_common(it));
    let names: Vec<String> =
        common.filter_map(|it| Some(format!("--{}", it.get_long()?))).collect();
    let command = command
        .mut_args(|arg| if is_common(&arg) { arg.hide(true) } else { arg })
        .mut_subcommands(with_common_options_once);
    if names.is_empty() {
        return command;
    }
    let end = command.get_after_help().map(|it| format!("\n\n{}", it.ansi()));
    let line = format!("Common options (see `clustermesh --help`): {}", names.join(", "));
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
            let command = command.find_subcommand(name);
            let Some(about) = command.and_then(clap::Command::get_about) else {
                continue;
            };
            let space = " ".repeat(width - name.len());
            let _ = writeln!(text, "  {literal}{name}{literal:#}{space}  {about}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
}

/// Returns the command line with all options that are understood, also those that the help of a command only names.
pub(crate) fn completed() -> clap::Command {
    settings::with_common_options(program())
}

fn program() -> clap::Command {
    let program = clap::Command::new("clustermesh")
        .version(env!("CARGO_PKG_VERSION"))
        .about(LONG_ABOUT.lines().next())
        .long_about(LONG_ABOUT)
        .subcommand_required(true)
        .arg_required_else_help(true);
    Command::augment_subcommands(program)
}

mod tips;
#[cfg(test)]
mod tests;
