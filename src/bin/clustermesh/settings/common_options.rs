//! Common options: those that most commands have, before the name of the command or behind it.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command};

use super::given_options::{GivenOptions, is_written};
use super::options::{FileOptions, PrintOptions, WrittenFiles};

/// Returns the common options of a command, by its name: the first ones of each list.
pub(crate) fn options_of(name: &str) -> Vec<Arg> {
    let (files, printing) = match name {
        "schema" | "completions" | "man" | "argocd" => (0, 0),
        "explain" => (0, 1),
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
        let command = command.args(options).next_help_heading(None::<&str>);
        command.mut_subcommands(with_options)
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
