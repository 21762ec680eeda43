//! Completion: the answers to a shell when a person presses Tab. The shell's script, which
//! `clustermesh completions` prints, calls the program again with a variable.
//!
//! Candidates from files are names that no shell interprets; others are not offered. Completion runs no
//! program and writes no file.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, ValueHint};
use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCompleter, CompletionCandidate, PathCompleter};

use crate::arguments;
use crate::commands::completions::{PROGRAM, VARIABLE};

mod candidates;

use candidates::is_plain;

/// The option that is about where all other paths begin.
const DIRECTORY: &str = "directory";

/// The most candidates.
const MOST: usize = 1000;

/// Answers a shell, if one asks.
pub(crate) fn answer() -> Option<ExitCode> {
    let asked = CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .bin(PROGRAM)
        .completer(PROGRAM);
    match asked.try_complete(env::args_os(), env::current_dir().ok().as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(error) => Some(crate::refuse(&error)),
    }
}

/// Returns the command line with a completer for each value. Options may stand before the command.
fn command() -> Command {
    completed(arguments::with_options(arguments::command()))
}

fn completed(command: Command) -> Command {
    let command = command.mut_args(|arg| match completer(&arg) {
        Some(completer) => arg.add(completer),
        None => arg,
    });
    command.mut_subcommands(completed)
}

/// Returns the completer for the value of an argument, by the name that the help shows.
fn completer(arg: &Arg) -> Option<ArgValueCompleter> {
    let name = arg.get_value_names().and_then(|names| names.first());
    let complete: fn(&str) -> Vec<String> = match name.map_or("", |name| name.as_str()) {
        "CLUSTER" | "TARGET" => |_| candidates::clusters(),
        "TARGET[/SOURCE]" => |text| match text.split_once('/') {
            Some((target, _)) => prefixed(target, '/', candidates::clusters()),
            None => candidates::clusters(),
        },
        "FROM" | "TO" => |text| match text.split_once('/') {
            Some((cluster, _)) => prefixed(cluster, '/', candidates::nodes(cluster)),
            None => clusters_before('/'),
        },
        "CLUSTER=FILE" => |text| match text.split_once('=') {
            Some((cluster, path)) => prefixed(cluster, '=', paths(PathCompleter::file(), path)),
            None => clusters_before('='),
        },
        "RULE" => |_| candidates::rules(),
        #[cfg(feature = "snapshot")]
        "CONTEXT" => |_| candidates::contexts(),
        #[cfg(feature = "snapshot")]
        "[CLUSTER=]CONTEXT" => |text| match text.split_once('=') {
            Some((cluster, _)) => prefixed(cluster, '=', candidates::contexts()),
            None => candidates::contexts(),
        },
        _ if arg.get_id() == DIRECTORY => |text| plain_paths(&PathCompleter::dir(), text),
        _ => match arg.get_value_hint() {
            ValueHint::FilePath => |text| paths(PathCompleter::file(), text),
            ValueHint::DirPath => |text| paths(PathCompleter::dir(), text),
            ValueHint::AnyPath => |text| paths(PathCompleter::any(), text),
            _ => return None,
        },
    };
    Some(ArgValueCompleter::new(move |current: &std::ffi::OsStr| {
        let Some(text) = current.to_str() else {
            return Vec::new();
        };
        let found = complete(text).into_iter();
        found
            .filter(|it| it.starts_with(text))
            .take(MOST)
            .map(CompletionCandidate::new)
            .collect()
    }))
}

/// Returns the clusters, each with the separator that follows it.
fn clusters_before(separator: char) -> Vec<String> {
    let clusters = candidates::clusters().into_iter();
    clusters.map(|it| format!("{it}{separator}")).collect()
}

/// Returns candidates behind what is already there.
fn prefixed(before: &str, separator: char, found: Vec<String>) -> Vec<String> {
    let found = found.into_iter();
    found.map(|it| format!("{before}{separator}{it}")).collect()
}

/// Returns the paths that begin with a text, from the folder in which the program would run.
fn paths(completer: PathCompleter, text: &str) -> Vec<String> {
    let matches = matches();
    let directory = matches.and_then(|it| it.try_get_one::<PathBuf>(DIRECTORY).ok()?.cloned());
    plain_paths(
        &match directory {
            Some(directory) => completer.current_dir(directory),
            None => completer,
        },
        text,
    )
}

/// Returns the paths that begin with a text and mean nothing else to a shell.
fn plain_paths(completer: &PathCompleter, text: &str) -> Vec<String> {
    use clap_complete::engine::ValueCompleter as _;
    let found = completer
        .complete(text.as_ref())
        .into_iter()
        .filter_map(|it| it.get_value().to_str().map(str::to_owned));
    found.filter(|path| is_plain(path)).collect()
}

/// Returns the values on the command line so far, of the innermost command.
fn matches() -> Option<ArgMatches> {
    let words: Vec<OsString> = env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    let command = arguments::command();
    let words = arguments::reordered(&command, words);
    let command = command.ignore_errors(true);
    let mut matches = command.try_get_matches_from(words).ok()?;
    while let Some((_, inner)) = matches.remove_subcommand() {
        matches = inner;
    }
    Some(matches)
}
