//! The shell of `clustermesh`: arguments, files, exit codes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only the shell touches the world"
)]

use std::io;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use rayon::ThreadPoolBuilder;

mod commands {
    pub(crate) mod argocd;
    pub(crate) mod capacity;
    pub(crate) mod completions;
    pub(crate) mod config;
    pub(crate) mod explain;
    pub(crate) mod init;
    pub(crate) mod man;
    pub(crate) mod render;
    pub(crate) mod schema;
    pub(crate) mod snapshot;
    pub(crate) mod template;
    pub(crate) mod trace;
    pub(crate) mod verify;
    pub(crate) mod validate;
}
mod allowance;
#[cfg(feature = "snapshot")]
mod cluster;
mod clock;
mod content;
mod disk;
mod evidence;
mod fabric;
mod files;
mod input;
mod judgement;
mod output;
mod outputs;
mod printing;
mod rendered;
mod secrets;
mod settings;
mod threshold;

/// Join Kubernetes clusters with Kilo and WireGuard, the GitOps way
#[derive(Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_long_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    options: settings::Options,

    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "\
Join Kubernetes clusters with Kilo and WireGuard, the GitOps way

`snapshot` keeps each cluster's nodes as JSON in git, `render` turns these and a ClusterMesh into
the Kilo Peers of every cluster, and Flux or Argo CD apply them. Nothing runs in a cluster, nothing
writes to one.";

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing to act on
  1  something to act on: mistakes, Peers or nodes that would be lost, differences with --check,
     warnings with --strict
  2  could not do it: wrong usage, unreadable or unparsable input, a cluster that could not be read";

#[derive(Subcommand)]
enum Command {
    Snapshot(commands::snapshot::Args),
    Render(commands::render::Args),
    Template(commands::template::Args),
    Init(commands::init::Args),
    Validate(commands::validate::Args),
    Trace(commands::trace::Args),
    Verify(commands::verify::Args),
    Capacity(commands::capacity::Args),
    Argocd(commands::argocd::Args),
    Explain(commands::explain::Args),
    Config(commands::config::Args),
    Schema(commands::schema::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

/// What a command has to say to whoever called it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Outcome {
    /// Nothing to act on: exit code 0.
    Clean,
    /// Something to act on, already printed: exit code 1.
    Findings,
    /// Input that cannot be read, already printed: exit code 2.
    Unreadable,
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = start_threads() {
        let mut talk = output::Talk::new(&cli.options);
        return finish(Err(error), &mut talk, &mut io::stdout());
    }
    let mut talk = output::Talk::new(&cli.options);
    let mut result = io::stdout().lock();
    let entered = cli.options.enter();
    if entered.is_ok() && cli.command.has_settings() {
        warn_of_ignored_config(&cli.options, &mut talk);
    }
    let outcome = entered.and_then(|()| match &cli.command {
        Command::Snapshot(args) => {
            commands::snapshot::run(args, &cli.options, &mut talk, &mut result)
        }
        Command::Render(args) => commands::render::run(args, &cli.options, &mut talk, &mut result),
        Command::Template(args) => {
            commands::template::run(args, &cli.options, &mut talk, &mut result)
        }
        Command::Validate(args) => {
            commands::validate::run(args, &cli.options, &mut talk, &mut result)
        }
        Command::Trace(args) => commands::trace::run(args, &cli.options, &mut talk, &mut result),
        Command::Verify(args) => commands::verify::run(args, &cli.options, &mut talk, &mut result),
        Command::Capacity(args) => {
            commands::capacity::run(args, &cli.options, &mut talk, &mut result)
        }
        Command::Config(args) => commands::config::run(args, &cli.options, &mut talk, &mut result),
        Command::Init(args) => commands::init::run(args, &mut talk, &mut result),
        Command::Argocd(args) => Ok(commands::argocd::run(args, &cli.options, &mut result)),
        Command::Explain(args) => commands::explain::run(args, &mut result),
        Command::Schema(args) => commands::schema::run(args, &mut result),
        Command::Completions(args) => commands::completions::run(args, &mut result),
        Command::Man(args) => commands::man::run(args, &mut result),
    });
    finish(outcome, &mut talk, &mut result)
}

/// Prints why a run failed, and returns its exit code.
fn finish(
    outcome: anyhow::Result<Outcome>,
    talk: &mut output::Talk,
    result: &mut impl io::Write,
) -> ExitCode {
    let outcome = match outcome {
        Ok(Outcome::Clean) => return ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => return ExitCode::SUCCESS,
        outcome => talk.release(result).map_err(Into::into).and(outcome),
    };
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Ok(Outcome::Unreadable) => ExitCode::from(2),
        Err(error) => {
            talk.error(&error);
            ExitCode::from(2)
        }
    }
}

impl Command {
    /// Returns whether the command reads the config.
    fn has_settings(&self) -> bool {
        match self {
            Self::Snapshot(_)
            | Self::Render(_)
            | Self::Template(_)
            | Self::Validate(_)
            | Self::Trace(_)
            | Self::Verify(_)
            | Self::Capacity(_)
            | Self::Config(_) => true,
            Self::Init(_)
            | Self::Argocd(_)
            | Self::Explain(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

fn warn_of_ignored_config(options: &settings::Options, talk: &mut output::Talk) {
    if let Some(config) = options.ignored_config() {
        talk.note(&format!(
            "{} is ignored because another user owns it or its folder; to use it, add --config",
            disk::shown(&config)
        ));
    }
}

fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches()?)
}

/// Prints help, the version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    let is_lost = printed.is_err_and(|it| it.kind() != io::ErrorKind::BrokenPipe);
    if error.use_stderr() || is_lost {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Makes do with the thread that we have where no more can be started, as under a limit of processes
/// or of memory: the work is the same, only slower.
fn start_threads() -> anyhow::Result<()> {
    let wanted = thread::available_parallelism().map_or(1, NonZero::get);
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    let started: Vec<_> = (0..wanted)
        .map_while(|_| {
            let gate = Arc::clone(&gate);
            let wait = move || drop(gate.lock());
            thread::Builder::new().spawn(wait).ok()
        })
        .collect();
    drop(closed);
    let can_start_all = started.len() == wanted;
    for thread in started {
        let _ = thread.join();
    }
    let builder = ThreadPoolBuilder::new();
    let builder = if can_start_all {
        builder
    } else {
        builder.num_threads(1).use_current_thread()
    };
    builder.build_global().context("cannot start threads")
}

/// Returns the command line that is understood.
fn command() -> clap::Command {
    let command = Cli::command();
    let names = command.get_subcommands().map(|it| it.get_name().to_owned());
    let names = PossibleValuesParser::new(names.collect::<Vec<_>>());
    command.mut_subcommand("man", |man| {
        man.mut_arg(commands::man::COMMAND, |arg| arg.value_parser(names))
    })
}

/// Prints a result. Whoever closes it early has read enough, and what was found stays found.
fn print(result: &mut impl io::Write, text: &str) -> io::Result<()> {
    let printed = result
        .write_all(text.as_bytes())
        .and_then(|()| result.flush());
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

/// `clustermesh … | head` is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
