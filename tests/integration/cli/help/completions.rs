//! Completion: the scripts for shells.

use std::process::{Command, Stdio};

use crate::cli::Folder;
use crate::cli::render::target::broken;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

fn script(shell: &str) -> String {
    let folder = Folder::empty();
    let run = folder.run(&["completions", shell]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
    assert_eq!(folder.touches(".").len(), 0);
    run.stdout
}

#[test]
fn scripts_complete_commands_options_and_fixed_values() {
    for shell in SHELLS {
        let script = script(shell);
        // The help of a command does not list all of these.
        for word in ["clustermesh", "firewall", "fail-on", "mesh", "directory", "color"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
        assert!(!script.contains("target/"), "{script}");
    }
}

#[test]
fn makes_scripts_that_their_shells_can_read() {
    let folder = Folder::empty();
    for shell in ["bash", "fish", "zsh"] {
        folder.write(shell, script(shell));
        let mut command = Command::new(shell);
        let command = command.arg("-n").arg(folder.path(shell));
        // Not every shell is everywhere.
        let Ok(output) = command.stdin(Stdio::null()).output() else {
            continue;
        };
        assert!(output.status.success(), "{shell}: {output:?}");
    }
}

#[test]
fn completes_in_bash() {
    let folder = Folder::mesh();
    folder.write("completions", script("bash"));
    for (words, found) in [
        ("fire", "firewall"),
        ("render --rend", "--rendered"),
        ("-C . render --me", "--mesh"),
        ("render --color n", "never"),
        ("completions po", "powershell"),
        ("render --mesh me", "mesh.yaml"),
    ] {
        let (before, current) = words.rsplit_once(' ').unwrap_or(("clustermesh", words));
        let previous = before.rsplit(' ').next().unwrap();
        let line = format!(
            "source completions; COMP_WORDS=(clustermesh {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _clustermesh clustermesh '{current}' '{previous}'; echo ${{COMPREPLY[*]}}"
        );
        let mut command = Command::new("bash");
        let command = command.args(["--norc", "-c", &line]);
        let Ok(output) = command.current_dir(folder.path("")).output() else {
            return;
        };
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(report, format!("{found}\n"), "{words}: {output:?}");
    }
}

#[test]
fn wants_a_shell_that_it_knows() {
    let run = Folder::empty().run(&["completions", "tcsh"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"
    error: invalid value 'tcsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    ");
}

#[test]
fn needs_no_config_that_is_right() {
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", "a: [");
    assert_eq!(folder.run(&["completions", "bash"]).code, 0);
    assert_eq!(folder.run(&["man", "render"]).code, 0);
}

#[test]
fn does_not_mind_a_reader_who_has_gone() {
    let folder = Folder::mesh();
    for arguments in [["completions", "bash"], ["man", "render"], ["config", "--output=json"]] {
        let mut command = crate::cli::render::target::command(&folder, &arguments);
        let output = command.stdout(broken()).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}
