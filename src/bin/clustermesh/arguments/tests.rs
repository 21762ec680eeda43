use clap::Command;

use super::{command, names, reordered};

/// Every command, and every command in one.
fn all() -> Vec<Command> {
    let mut program = command().disable_help_subcommand(true);
    program.build();
    let mut all = vec![program];
    let mut next = 0;
    while let Some(command) = all.get(next) {
        let inner: Vec<Command> = command.get_subcommands().cloned().collect();
        all.extend(inner);
        next += 1;
    }
    all
}

#[test]
fn every_command_is_in_one_group() {
    let mut grouped: Vec<&str> = names().collect();
    let command = command();
    let mut commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    assert_eq!(grouped, commands, "in one order");
    grouped.sort_unstable();
    commands.sort_unstable();
    commands.dedup();
    assert_eq!(grouped, commands, "each once");
}

#[test]
fn first_lines_are_short() {
    for command in all() {
        let name = command
            .get_bin_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!((1..=80).contains(&about.chars().count()), "{name}: {about}");
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                (1..=80).contains(&help.chars().count()),
                "{name} {}: {help}",
                arg.get_id()
            );
            assert!(!help.ends_with('.'), "{name} {}: {help}", arg.get_id());
        }
    }
}

#[test]
fn options_move_behind_the_command() {
    let moved = |line: &str| {
        let words = line.split(' ').map(Into::into).collect();
        let words: Vec<String> = reordered(&command(), words)
            .into_iter()
            .map(|it| it.into_string().unwrap())
            .collect();
        words.join(" ")
    };
    for (line, expected) in [
        ("c render -q", "c render -q"),
        ("c -C x -q render --check", "c render -C x -q --check"),
        (
            "c -Cx --mesh=a --mesh b render",
            "c render -Cx --mesh=a --mesh b",
        ),
        ("c -C render render", "c render -C render"),
        (
            "c -C x argocd generate --root y",
            "c argocd generate -C x --root y",
        ),
        ("c -C x --help", "c --help"),
        ("c -C x help render", "c help render"),
        ("c -C x rendr", "c rendr"),
        ("c --bogus render", "c --bogus render"),
        ("c -C", "c -C"),
        ("c", "c"),
    ] {
        assert_eq!(moved(line), expected, "{line}");
    }
}
