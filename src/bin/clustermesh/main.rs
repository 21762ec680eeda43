//! The shell of `clustermesh`: arguments, files, exit codes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only the shell touches the world"
)]

use std::process::ExitCode;
use std::{env, io};

use arguments::Command;
use failure::{CommandFailure, CommandResult};

mod commands {
    pub(crate) mod annotate;
    pub(crate) mod argocd;
    pub(crate) mod capacity;
    pub(crate) mod completions;
    pub(crate) mod config;
    pub(crate) mod diff;
    pub(crate) mod explain;
    pub(crate) mod guard;
    pub(crate) mod init;
    pub(crate) mod man;
    pub(crate) mod outage;
    pub(crate) mod rbac;
    pub(crate) mod render;
    pub(crate) mod report;
    pub(crate) mod schema;
    pub(crate) mod snapshot;
    #[cfg(feature = "snapshot")]
    pub(crate) mod status;
    pub(crate) mod template;
    pub(crate) mod trace;
    pub(crate) mod verify;
    pub(crate) mod dns;
    pub(crate) mod firewall;
    pub(crate) mod graph;
    pub(crate) mod wireguard;
    pub(crate) mod validate;
}
mod allowed_losses;
mod applications;
mod arguments;
#[cfg(feature = "snapshot")]
mod cluster;
mod choice;
mod clock;
mod command_groups;
mod disk;
mod failure;
mod inputs;
mod cluster_peers;
mod files;
mod template_process;
mod git;
mod guard_files;
mod input_file;
mod checked_plan;
mod origin;
mod output;
mod outputs;
mod printing;
mod proving;
#[cfg(feature = "snapshot")]
mod reach;
mod tree_comparison;
#[cfg(feature = "snapshot")]
mod secrets;
mod settings;
mod threads;
mod threshold;

/// The result of a command for its caller.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
enum Outcome {
    /// Nothing to act on: exit code 0.
    #[default]
    Clean,
    /// Something to act on, already printed: exit code 1.
    Findings,
    /// Input that cannot be read, already printed: exit code 2.
    Unreadable,
}

impl Outcome {
    /// Returns whether there is something to act on.
    fn findings_if(are_any: bool) -> Self {
        if are_any { Self::Findings } else { Self::Clean }
    }
}

fn main() -> ExitCode {
    if let Some(code) = template_process::worker::answer() {
        return code;
    }
    let cli = match arguments::parse(env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refuse(&arguments::escaped(error)),
    };
    let mut printer = output::Printer::new(cli.printing);
    let outcome = run(&cli.command, &cli.files, &mut printer);
    let is_pipe_closed =
        matches!(&outcome, Err(CommandFailure::Error(error)) if is_broken_pipe(error));
    if is_pipe_closed || matches!(outcome, Ok(Outcome::Clean)) {
        return ExitCode::SUCCESS;
    }
    let released = printer.release().map_err(Into::into);
    let result =
        released.and(outcome).or_else(|failure| printer.failure_as(failure, cli.findings_format));
    ExitCode::from(match result {
        Ok(Outcome::Clean) => 0,
        Ok(Outcome::Findings) => 1,
        Ok(Outcome::Unreadable) => 2,
        Err(error) => {
            printer.error(&error);
            2
        }
    })
}

fn run(
    command: &Command,
    files: &settings::FileOptions,
    printer: &mut output::Printer,
) -> CommandResult {
    threads::start()?;
    files.enter()?;
    for note in arguments::notes_about_variables() {
        printer.note(&note);
    }
    if let Some(config) = files.ignored_config()
        && !matches!(command, Command::Argocd(_))
    {
        printer.note(&format!(
            "{} is ignored because another user owns it or its folder; to use it, add --config",
            disk::shown(&config)
        ));
    }
    match command {
        Command::Snapshot(args) => commands::snapshot::run(args, files, printer),
        Command::Render(args) => commands::render::run(args, files, printer),
        Command::Template(args) => commands::template::run(args, files, printer),
        Command::Init(args) => commands::init::run(args, files, printer),
        Command::Validate(args) => commands::validate::run(args, files, printer),
        Command::Verify(args) => commands::verify::run(args, files, printer),
        Command::Outage(args) => commands::outage::run(args, files, printer),
        Command::Trace(args) => commands::trace::run(args, files, printer),
        Command::Capacity(args) => commands::capacity::run(args, files, printer),
        Command::Diff(args) => commands::diff::run(args, files, printer),
        Command::Report(args) => commands::report::run(args, files, printer),
        #[cfg(feature = "snapshot")]
        Command::Status(args) => commands::status::run(args, files, printer),
        Command::Guard(args) => commands::guard::run(args, files, printer),
        Command::Dns(args) => commands::dns::run(args, files, printer),
        Command::Wireguard(args) => commands::wireguard::run(args, files, printer),
        Command::Graph(args) => commands::graph::run(args, files, printer),
        Command::Firewall(args) => commands::firewall::run(args, files, printer),
        Command::Annotate(args) => commands::annotate::run(args, files, printer),
        Command::Rbac(args) => commands::rbac::run(args, files, printer),
        Command::Explain(args) => commands::explain::run(args, files, printer),
        Command::Schema(args) => commands::schema::run(args, printer),
        Command::Config(args) => commands::config::run(args, files, printer),
        Command::Completions(args) => {
            commands::completions::run(args, arguments::completed(), printer)
        }
        Command::Man(args) => commands::man::run(args, arguments::command(), printer),
        Command::Argocd(args) => Ok(commands::argocd::run(args, files, printer)),
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_lost = error.print().is_err_and(|it| it.kind() != io::ErrorKind::BrokenPipe);
    if error.use_stderr() || is_lost { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// `clustermesh … | head` is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
