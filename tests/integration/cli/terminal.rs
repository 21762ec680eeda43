//! Output on terminals of 80 and of 60 columns, which `script` provides.

use std::process::{Command, Stdio};

use crate::support::{copy, project};

/// Returns what a command prints in an example on a terminal, without colours; nothing if there is no
/// `script`.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn on_a_terminal(columns: usize, example: &str, arguments: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    copy(&project().join("examples").join(example), folder.path());
    let program = env!("CARGO_BIN_EXE_clustermesh");
    let command = format!("stty cols {columns} rows 24; {program} {arguments}");
    let run = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_clear()
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm"),
            ("SHELL", "/bin/sh"),
            ("NO_COLOR", "1"),
        ])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output();
    let run = run.inspect_err(|_| eprintln!("SKIPPED: there is no `script`"));
    let text = String::from_utf8(run.ok()?.stdout).unwrap();
    Some(text.replace('\r', ""))
}

/// Returns the lines that are longer than a terminal is wide. Words and the lines of examples are never
/// broken.
fn long_lines(columns: usize, text: &str) -> Vec<&str> {
    let is_long = |line: &&str| {
        columns < line.chars().count()
            && line.trim().contains(' ')
            && !line.starts_with("    kubectl")
    };
    text.lines().filter(is_long).collect()
}

#[test]
fn tables_and_texts_fit_80_columns() {
    for arguments in [
        "capacity",
        "capacity management",
        "config",
        "explain",
        "explain missing-endpoint",
        "explain nat",
        "validate --statistics",
        "verify",
        "trace management/mgmt-gw-2 tenant-dijkstra/dijkstra-md0-r9m3c-6nhfs",
        "--help",
        "capacity --help",
    ] {
        let Some(text) = on_a_terminal(80, "hub-and-spokes", arguments) else {
            return;
        };
        assert!(2 < text.lines().count(), "{arguments}: {text}");
        assert_eq!(long_lines(80, &text), Vec::<&str>::new(), "{arguments}");
    }
}

#[test]
fn tables_of_status_and_diff_fit_80_and_60_columns() {
    for columns in [80, 60] {
        // No cluster can be read: each has a line in the table and a note.
        let status = cfg!(feature = "snapshot").then_some(("hub-and-spokes", "status", "CLUSTER"));
        let diff = "-C after diff --against ../before/rendered";
        let diff = Some(("pull-request", diff, "TARGET"));
        for (example, arguments, head) in [status, diff].into_iter().flatten() {
            let Some(text) = on_a_terminal(columns, example, arguments) else {
                return;
            };
            assert_eq!(long_lines(columns, &text), Vec::<&str>::new(), "{text}");
            let heads = text.lines().filter(|it| it.starts_with(head)).count();
            let is_folded = example == "hub-and-spokes";
            assert_eq!(1 < heads, is_folded, "{columns}: {text}");
        }
    }
}
