use std::ffi::OsString;

use clap::Command;

use super::{command, names, parse};

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
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!((1..=80).contains(&about.chars().count()), "{name}: {about}");
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!((1..=80).contains(&help.chars().count()), "{name} {}: {help}", arg.get_id());
            assert!(!help.ends_with('.'), "{name} {}: {help}", arg.get_id());
        }
    }
}

/// The result of a command line: its command and its options, or the first line of the error.
fn understood(line: &str) -> String {
    match parse(line.split(' ').map(OsString::from)) {
        Ok(cli) => {
            let (choice, quiet) = (cli.printing.color, cli.printing.quiet);
            format!("{:?} {choice} {quiet}", cli.files.folder())
        }
        Err(error) => {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().to_owned()
        }
    }
}

#[test]
fn common_options_stand_before_the_command_or_behind_it() {
    let expected = r#"Some("x") never true"#;
    for line in [
        "c render -C x -q --color never",
        "c -C x -q --color never render",
        "c -q -Cx render --color=NEVER",
        "c --color never rbac -qC x --mesh y",
        "c --mesh y snapshot -qC x --color never --snapshots z",
    ] {
        assert_eq!(understood(line), expected, "{line}");
    }
    let lists = parse("c --mesh a render --mesh b --mesh c".split(' ').map(OsString::from)).ok();
    let meshes = lists.map(|it| it.files.named_meshes());
    assert_eq!(meshes, Some(["a", "b", "c"].map(Into::into).to_vec()));
    for (line, error) in [
        ("c -C x render -C y", "error: '--directory' is given before the command and behind it"),
        (
            "c -C x schema mesh",
            "error: unexpected argument '--directory' found: `clustermesh schema` does not have it",
        ),
        (
            "c --snapshots x argocd parameters",
            "error: unexpected argument '--snapshots' found: `clustermesh argocd parameters` does not have it",
        ),
        (
            "c -q argocd generate",
            "error: unexpected argument '--quiet' found: `clustermesh argocd generate` does not have it",
        ),
        ("c schema mesh -q", "error: unexpected argument '-q' found"),
        ("c rbac --snapshots x", "error: unexpected argument '--snapshots' found"),
        ("c -C x rendr", "error: unrecognized subcommand 'rendr'"),
        ("c --bogus render", "error: unexpected argument '--bogus' found"),
        ("c -C", "error: a value is required for '--directory <DIR>' but none was supplied"),
    ] {
        assert_eq!(understood(line), error, "{line}");
    }
}
