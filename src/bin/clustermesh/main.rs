//! The shell of `clustermesh`: arguments, files, exit codes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only the shell touches the world"
)]

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod commands {
    pub(crate) mod render;
    pub(crate) mod snapshot;
}
mod disk;
mod input;
mod output;
mod settings;

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
  1  something to act on: mistakes, Peers that would be lost, differences with --check,
     warnings with --strict
  2  could not do it: wrong usage, unreadable or unparsable input";

#[derive(Subcommand)]
enum Command {
    Snapshot(commands::snapshot::Args),
    Render(commands::render::Args),
}

/// What a command has to say to whoever called it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    /// Nothing to act on: exit code 0.
    Clean,
    /// Something to act on, already printed: exit code 1.
    Findings,
    /// Input that cannot be read, already printed: exit code 2.
    Unreadable,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = cli.options.color();
    let mut talk = output::Talk::new(color);
    let mut result = io::stdout().lock();
    let outcome = cli.options.enter().and_then(|()| match &cli.command {
        Command::Snapshot(args) => commands::snapshot::run(args, &cli.options, &mut talk),
        Command::Render(args) => commands::render::run(args, &cli.options, &mut talk, &mut result),
    });
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Ok(Outcome::Unreadable) => ExitCode::from(2),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            talk.error(&error);
            ExitCode::from(2)
        }
    }
}

/// `clustermesh … | head` is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
