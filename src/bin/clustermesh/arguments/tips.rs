//! Tips for words that no command takes, where clap knows none.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clustermesh::document::nearest;
use clustermesh::text::listed;

/// Commands of similar tools, and what does their work here.
const COMMANDS: [(&str, &str); 7] = [
    ("version", "`clustermesh --version` prints the version"),
    ("plan", "`clustermesh diff` shows what a change does"),
    ("apply", "Flux or Argo CD applies what `clustermesh render` writes"),
    ("build", "`clustermesh render` writes the Peers"),
    (
        "check",
        "`clustermesh validate` looks for mistakes, and `clustermesh verify` proves the paths",
    ),
    ("lint", "`clustermesh validate` looks for mistakes"),
    ("get", "`clustermesh snapshot` reads the nodes of clusters"),
];

/// Options of similar tools, and what does their work here.
const OPTIONS: [(&str, &str); 7] = [
    ("--dry-run", "`clustermesh render --check` writes nothing and lists what differs"),
    ("--base", "`clustermesh diff --against REVISION` compares with a commit"),
    ("--cluster", "write only the name of the cluster"),
    ("--strict", "`--fail-on warning` fails for warnings too"),
    ("-t", "`--target CLUSTER` selects one cluster"),
    ("-f", "`--mesh FILE` reads a mesh"),
    (
        "--port",
        "`clustermesh trace` follows packets by their addresses; their ports make no difference",
    ),
];

/// Adds what a user probably meant to an error about an unknown word.
pub(super) fn with_tip(mut error: clap::Error, program: &clap::Command) -> clap::Error {
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            text(&error, ContextKind::InvalidSubcommand).and_then(|it| command(&it))
        }
        ErrorKind::UnknownArgument => {
            text(&error, ContextKind::InvalidArg).and_then(|it| of_argument(&it, &error, program))
        }
        _ => None,
    };
    // No command takes an option as a value, so the tip of clap to write it behind `--` leads nowhere.
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

fn command(word: &str) -> Option<String> {
    if word == "status" && !cfg!(feature = "snapshot") {
        return Some("this build cannot connect to clusters, and `status` does; `kubectl get peers -l kilo-clustermesh.io/mesh=MESH` lists \
             the Peers of a cluster".to_owned());
    }
    known(&COMMANDS, word)
}

fn of_argument(word: &str, error: &clap::Error, program: &clap::Command) -> Option<String> {
    let usage = error.get(ContextKind::Usage)?.to_string();
    let mut of_usage = usage.split_whitespace();
    let command = of_usage.find_map(|it| program.find_subcommand(it))?;
    let name = command.get_name();
    if let Some(tip) = known(&OPTIONS, word) {
        return Some(tip);
    }
    let Some(option) = word.strip_prefix("--") else {
        return if word.starts_with('-') { None } else { of_value(name, word) };
    };
    if option == "target" && command.get_positionals().next().is_some() {
        return Some(format!("`clustermesh {name} CLUSTER` takes the name without an option"));
    }
    if (name, option) == ("outage", "node") {
        return Some(
            "`clustermesh outage CLUSTER/NODE` shows what the loss of a node breaks".to_owned(),
        );
    }
    let is_part = |it: &&str| it.starts_with(option) || option.starts_with(*it);
    if let Some(meant) = long_options(command).find(is_part) {
        return Some(format!("a similar option exists: `--{meant}`"));
    }
    let has = |it: &&clap::Command| long_options(it).any(|it| it == option);
    let others = program.get_subcommands().filter(has);
    let others: Vec<String> = others.map(|it| format!("`{}`", it.get_name())).collect();
    if !others.is_empty() {
        return Some(format!("`--{option}` is an option of {}", listed(others)));
    }
    let meant = nearest(option, long_options(command))?;
    Some(format!("a similar option exists: `--{meant}`"))
}

fn long_options(command: &clap::Command) -> impl Iterator<Item = &str> {
    command.get_arguments().filter_map(clap::Arg::get_long)
}

/// Returns the option of a command for a value that was given without one.
fn of_value(command: &str, word: &str) -> Option<String> {
    match command {
        "render" | "template" => {
            Some(format!("`clustermesh {command} --target {word}` prints one cluster"))
        }
        "init" if cfg!(feature = "snapshot") => Some(format!(
            "`--context {word}` reads a cluster, and `--from {word}=FILE` a dump of its nodes"
        )),
        "init" => Some(format!("`--from {word}=FILE` reads a dump of the nodes of a cluster")),
        "report" if word.to_lowercase().ends_with(".html") => {
            Some(format!("`clustermesh report --out {word}` writes the page"))
        }
        "diff" | "report" => {
            // Of a range, the files here are the other end.
            let range = word.split_once("..").filter(|it| it.1 != ".");
            let commit = range.map_or(word, |it| it.0);
            Some(format!("`clustermesh {command} --against {commit}` compares with a commit"))
        }
        _ => None,
    }
}

fn known(list: &[(&str, &str)], word: &str) -> Option<String> {
    let found = list.iter().find(|it| it.0 == word)?;
    Some(found.1.to_owned())
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}
