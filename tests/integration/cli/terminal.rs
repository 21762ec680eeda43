//! Output on a terminal of 80 columns, which `script` provides.

use std::process::{Command, Stdio};

use crate::support::{copy, project};

/// Returns what a command prints on a terminal of 80 columns, without colours; nothing if there is no
/// `script`.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn on_a_terminal(arguments: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    copy(&project().join("examples/hub-and-spokes"), folder.path());
    let program = env!("CARGO_BIN_EXE_clustermesh");
    let command = format!("stty cols 80 rows 24; {program} {arguments}");
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
        let Some(text) = on_a_terminal(arguments) else {
            return;
        };
        assert!(2 < text.lines().count(), "{arguments}: {text}");
        // Words and the lines of examples are never broken.
        let is_long = |line: &&str| {
            80 < line.chars().count()
                && line.trim().contains(' ')
                && !line.starts_with("    kubectl")
        };
        let long: Vec<&str> = text.lines().filter(is_long).collect();
        assert_eq!(long, Vec::<&str>::new(), "{arguments}");
    }
}
