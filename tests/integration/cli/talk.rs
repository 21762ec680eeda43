//! Help, versions and colours.

use super::{Folder, HEADER};

const ESCAPE: char = '\u{1b}';

/// A mesh about which there is a warning, and an excerpt.
fn remarkable() -> Folder {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.1.0.0/16", "10.1.7.7/16");
    folder.edit("snapshots/east.json", "10.101.0.2/24", "10.101.0.1/24");
    folder
}

#[test]
fn shows_examples_with_every_command() {
    let folder = Folder::empty();
    for command in ["render", "snapshot"] {
        for flag in ["--help", "-h"] {
            let run = folder.run(&[command, flag]);
            assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            let example = format!("Examples:\n  clustermesh {command}");
            let piped = format!("| clustermesh {command}");
            assert!(
                run.stdout.contains(&example) || run.stdout.contains(&piped),
                "{}",
                run.stdout
            );
            assert!(run.stdout.contains("Examples:"), "{}", run.stdout);
        }
    }
}

#[test]
fn shows_what_exit_codes_mean() {
    let run = Folder::empty().run(&["--help"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let (_, codes) = run.stdout.split_once("Exit codes:").unwrap();
    insta::assert_snapshot!(codes, @"

    0  nothing to act on
    1  something to act on: mistakes, Peers or nodes that would be lost, differences with --check,
       warnings with --strict
    2  could not do it: wrong usage, unreadable or unparsable input, a cluster that could not be read
    ");
}

#[test]
fn lists_its_commands() {
    let run = Folder::empty().run(&["-h"]);
    for command in ["snapshot", "render"] {
        assert!(
            run.stdout.contains(&format!("\n  {command} ")),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn says_which_version_it_is() {
    let expected = format!("clustermesh {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        let run = Folder::empty().run(&[flag]);
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr.as_str()),
            (0, expected.as_str(), "")
        );
    }
}

#[test]
fn uses_no_colour_but_on_a_terminal() {
    let folder = remarkable();
    for arguments in [
        ["render"].as_slice(),
        &["render", "--check"],
        &["render", "--help"],
        &["--nope"],
    ] {
        let run = folder.run(arguments);
        assert!(
            !run.stdout.contains(ESCAPE) && !run.stderr.contains(ESCAPE),
            "{run:?}"
        );
    }
}

#[test]
fn uses_colour_if_asked_to() {
    let run = remarkable().run(&["render", "--color", "always"]);
    assert_eq!(run.stderr.matches("warning").count(), 2);
    assert!(run.stderr.contains(ESCAPE));
}

#[test]
fn says_the_same_in_colour() {
    let folder = remarkable();
    let plain = folder.run(&["render", "--target", "west"]);
    let colored = folder.run(&["render", "--target", "west", "--color=always"]);
    let mut pieces = colored.stderr.split("\u{1b}[");
    let before = pieces.next().unwrap();
    let rest = pieces.map(|piece| piece.split_once('m').unwrap().1);
    let text: String = std::iter::once(before).chain(rest).collect();
    assert_eq!(text, plain.stderr);
}

#[test]
fn keeps_colour_out_of_results() {
    let folder = Folder::rendered();
    folder.write("rendered/west/prod--south.yaml", HEADER);
    let check = folder.run(&["render", "--check", "--color=always"]);
    assert_eq!(check.stdout, "stale: rendered/west/prod--south.yaml\n");
    let printed = folder.run(&["render", "--target", "west", "--color=always"]);
    assert!(!printed.stdout.contains(ESCAPE));
}

#[test]
fn uses_no_colour_where_nobody_wants_it() {
    let folder = remarkable();
    let variables = [("NO_COLOR", "1"), ("TERM", "xterm-256color")];
    assert!(
        !folder
            .run_with(&variables, &["render"])
            .stderr
            .contains(ESCAPE)
    );
    let variables = [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "0")];
    assert!(
        !folder
            .run_with(&variables, &["render"])
            .stderr
            .contains(ESCAPE)
    );
}

#[test]
fn prefers_the_flag_to_the_variable() {
    let folder = remarkable();
    let run = folder.run_with(&[("NO_COLOR", "1")], &["render", "--color=always"]);
    assert!(run.stderr.contains(ESCAPE));
    let run = folder.run_with(&[("CLICOLOR_FORCE", "1")], &["render", "--color=never"]);
    assert!(!run.stderr.contains(ESCAPE));
}

#[test]
fn quiet_runs_print_nothing_on_success() {
    let folder = remarkable();
    for arguments in [
        &["-q", "render"][..],
        &["render", "--quiet"],
        &["render", "--check", "-q"],
        &["validate", "-q"],
        &["verify", "-q"],
        &["capacity", "-q"],
        &["trace", "east/n1", "west/n1", "-q"],
    ] {
        let run = folder.run(arguments);
        let printed = (run.stdout.as_str(), run.stderr.as_str());
        assert_eq!((run.code, printed), (0, ("", "")), "{arguments:?}");
    }
    let run = Folder::empty().run(&["init", "-q"]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
}

#[test]
fn quiet_runs_print_everything_on_failure() {
    let folder = remarkable();
    for arguments in [
        &["validate", "--strict"][..],
        &["render", "--strict"],
        &["capacity", "south"],
        &["trace", "east/n1", "west/n9"],
    ] {
        let loud = folder.run(arguments);
        let quiet = folder.run(&[arguments, &["-q"]].concat());
        assert_ne!(quiet.code, 0, "{arguments:?}");
        assert_eq!((quiet.code, quiet.stdout), (loud.code, loud.stdout));
        assert_eq!(quiet.stderr, loud.stderr);
    }
}

#[test]
fn quiet_runs_print_output_for_programs() {
    let folder = remarkable();
    assert_eq!(folder.run(&["render"]).code, 0);
    for arguments in [
        &["render", "--target", "west"][..],
        &["validate", "-o", "json"],
        &["verify", "-o", "json"],
        &["capacity", "-o", "json"],
        &["trace", "east/n1", "west/n1", "-o", "json"],
        &["config", "-o", "json"],
    ] {
        let loud = folder.run(arguments);
        let quiet = folder.run(&[arguments, &["-q"]].concat());
        assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
        assert!(!quiet.stdout.is_empty(), "{arguments:?}");
        assert_eq!(quiet.stdout, loud.stdout, "{arguments:?}");
    }
}
