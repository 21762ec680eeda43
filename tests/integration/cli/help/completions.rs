//! Completion: the scripts for shells, and the candidates that they ask for.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli::render::target::broken;
use crate::cli::{Folder, node};
use crate::support::assert_contains;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

fn script(shell: &str) -> String {
    let folder = Folder::empty();
    let run = folder.run(&["completions", shell]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
    assert_eq!(folder.touches(".").len(), 0);
    run.stdout
}

/// Returns the candidates for the last word, as a shell's script asks for them.
fn candidates(folder: &Folder, shell: &str, words: &[&str]) -> Vec<String> {
    let index = words.len().to_string();
    let variables = [
        ("CLUSTERMESH_COMPLETE", shell),
        ("_CLAP_COMPLETE_INDEX", &index),
        ("_CLAP_IFS", "\n"),
        ("KUBECONFIG", "kubeconfig"),
    ];
    let before = folder.touches(".");
    let run = folder.run_with(&variables, &[&["--", "clustermesh"], words].concat());
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, ""),
        "{shell} {words:?}"
    );
    assert_eq!(folder.touches("."), before);
    let values = run
        .stdout
        .lines()
        .map(|line| match shell {
            "fish" => line.split('\t').next().unwrap(),
            "zsh" => line.split(':').next().unwrap(),
            _ => line,
        })
        .filter(|it| !it.is_empty());
    values.map(str::to_owned).collect()
}

#[test]
fn scripts_call_the_program() {
    for shell in SHELLS {
        let script = script(shell);
        for word in ["clustermesh", "CLUSTERMESH_COMPLETE"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
        assert!(!script.contains("target/"), "{script}");
    }
}

#[test]
fn candidates_are_those_of_the_repository() {
    let folder = Folder::mesh();
    for shell in ["bash", "fish", "zsh"] {
        let all = |words: &[&str]| candidates(&folder, shell, words);
        let commands = ["convert", "capacity", "config", "completions"];
        assert_eq!(all(&["man", "c"]), commands);
        assert_eq!(all(&["render", "--target", ""]), ["east", "north", "west"]);
        assert_eq!(all(&["render", "--target=e"]), ["--target=east"]);
        assert_eq!(all(&["snapshot", "--accept", "n"]), ["north"]);
        assert_eq!(all(&["capacity", "w"]), ["west"]);
        assert_eq!(all(&["render", "--allow-empty", "east/n"]), ["east/north"]);
        assert_eq!(all(&["trace", "n"]), ["north/"]);
        assert_eq!(all(&["trace", "east/n1", "west/"]), ["west/n1", "west/n2"]);
        assert_eq!(all(&["verify", "--peers", "w"]), ["west="]);
        assert_eq!(all(&["verify", "--peers", "west=me"]), ["west=mesh.yaml"]);
        assert_eq!(all(&["explain", "missing-e"]), ["missing-endpoint"]);
        assert_eq!(all(&["explain", "NodeNoE"]), ["NodeNoEndpoint"]);
        assert_eq!(all(&["render", "--mesh", "m"]), ["mesh.yaml"]);
        assert_eq!(all(&["-C", "snap"]), ["snapshots/"]);
        assert_eq!(all(&["render", "--rend"]), ["--rendered"]);
        assert_eq!(all(&["explain", "--mesh"]), [""; 0]);
    }
}

#[test]
fn candidates_follow_the_options() {
    let folder = Folder::mesh();
    folder.write("other/lab.yaml", crate::cli::MESH.replace("north", "south"));
    let targets = |words: &[&str]| candidates(&folder, "bash", words);
    let others = ["east", "south", "west"];
    assert_eq!(
        targets(&["render", "--mesh", "other/lab.yaml", "--target", ""]),
        others
    );
    assert_eq!(
        targets(&[
            "-C", "other", "render", "--mesh", "lab.yaml", "--target", ""
        ]),
        others
    );
    assert_eq!(targets(&["-C", "other", "render", "--target", ""]), [""; 0]);
    folder.write("mesh.yaml", "a: [");
    assert_eq!(targets(&["render", "--target", ""]), [""; 0]);
}

#[test]
fn hostile_names_are_no_candidates() {
    let folder = Folder::mesh();
    let hostile = [
        "$(touch pwned)",
        "`id`",
        "a b",
        "a\nb",
        "a\u{b}b",
        "a\tb",
        "-x",
        "--accept",
        "'q",
        "\"q",
        "a;id",
        "a|b",
        "a>b",
        "*",
        "~",
        "{a,b}",
        "#a",
        "!!",
        "\u{1b}[2J",
        "\u{202e}a",
        "a\\b",
        "",
    ];
    let mut nodes = vec![node(1, 1), node(1, 2)];
    for (number, name) in (3..).zip(hostile) {
        let mut node = node(1, number);
        node["name"] = json!(name);
        nodes.push(node);
    }
    let mut long = node(1, 99);
    long["name"] = json!("a".repeat(300));
    nodes.push(long);
    folder.keep("east", &nodes);
    fs::create_dir(folder.path("files")).unwrap();
    // Behind a folder, a dash is harmless.
    for name in hostile
        .iter()
        .filter(|it| !it.is_empty() && !it.starts_with('-'))
    {
        folder.write(&format!("files/{name}"), "");
    }
    folder.write("files/plain.yaml", "");
    for shell in SHELLS {
        let plain = ["east/n1", "east/n2"];
        assert_eq!(
            candidates(&folder, shell, &["trace", "east/"]),
            plain,
            "{shell}"
        );
        let path = candidates(&folder, shell, &["render", "--mesh", "files/"]);
        assert_eq!(path, ["files/plain.yaml"], "{shell}");
    }
}

#[test]
#[cfg(feature = "snapshot")]
fn contexts_are_read_without_running_a_program() {
    let folder = Folder::mesh();
    let context =
        |name: &str| format!("  - {{ name: {name:?}, context: {{ cluster: c, user: u }} }}\n");
    let names = [
        "kind-east",
        "admin@east",
        "arn:aws:eks:eu-1:1:cluster/x",
        "$(touch pwned)",
        "-x",
    ];
    folder.write("kubeconfig", format!(
        "apiVersion: v1\nkind: Config\nclusters:\n  - {{ name: c, cluster: {{ server: \"https://198.18.0.1\" }} }}\n\
         users:\n  - {{ name: u, user: {{ exec: {{ apiVersion: client.authentication.k8s.io/v1, command: touch, \
         args: [pwned], interactiveMode: Never }} }} }}\ncontexts:\n{}",
        names.map(context).concat()
    ));
    let found = |words: &[&str]| candidates(&folder, "bash", words);
    let plain = ["admin@east", "arn:aws:eks:eu-1:1:cluster/x", "kind-east"];
    assert_eq!(found(&["snapshot", "--context", ""]), plain);
    assert_eq!(found(&["snapshot", "--secrets-from", "k"]), ["kind-east"]);
    assert_eq!(
        found(&["snapshot", "--context", "east=k"]),
        ["east=kind-east"]
    );
    fs::rename(folder.path("kubeconfig"), folder.path("other")).unwrap();
    assert_eq!(found(&["snapshot", "--context", ""]), [""; 0]);
    assert_eq!(
        found(&["snapshot", "--kubeconfig", "other", "--context", "k"]),
        ["kind-east"]
    );
    assert!(!folder.path("pwned").exists());
}

#[test]
fn pipes_and_other_folders_are_not_read() {
    let folder = Folder::mesh();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
    if !made.is_ok_and(|it| it.success()) {
        return;
    }
    for words in [
        &["render", "--mesh", "pipe", "--target", ""][..],
        &["render", "--config", "pipe", "--target", ""],
        &["trace", "../../"],
    ] {
        assert_eq!(candidates(&folder, "bash", words), [""; 0], "{words:?}");
    }
}

#[test]
fn snapshots_beyond_the_limit_are_not_read() {
    let folder = Folder::mesh();
    let text = folder.read("snapshots/north.json");
    let padded = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    let limit = 8 << 20;
    folder.write("snapshots/north.json", padded(limit));
    let nodes = || candidates(&folder, "bash", &["trace", "north/"]);
    // Completion gives up after a second, which is too short on a busy machine.
    assert!((0..10).any(|_| !nodes().is_empty()));
    folder.write("snapshots/north.json", padded(limit + 1));
    assert_eq!(nodes(), [""; 0]);
}

#[test]
fn the_limit_counts_only_what_begins_with_the_text() {
    let folder = Folder::mesh();
    let nodes = (0..1500).map(|number| {
        let mut node = node(1, 1);
        node["name"] = json!(format!("n{number:04}"));
        node
    });
    folder.keep("east", &nodes.collect::<Vec<_>>());
    let found = |text: &str| candidates(&folder, "bash", &["trace", text]);
    assert_eq!(found("east/").len(), 1000);
    assert_eq!(found("east/n1499"), ["east/n1499"]);
}

#[test]
fn paths_begin_in_the_folder_of_the_run() {
    let folder = Folder::mesh();
    folder.write("other/lab.yaml", "");
    folder.write("other/deep/a.yaml", "");
    let found = |words: &[&str]| candidates(&folder, "bash", words);
    assert_eq!(
        found(&["-C", "other", "render", "--mesh", "l"]),
        ["lab.yaml"]
    );
    assert_eq!(
        found(&["render", "-C", "other", "--rendered", "d"]),
        ["deep/"]
    );
    let peers = ["verify", "-C", "other", "--peers", "west=l"];
    assert_eq!(found(&peers), ["west=lab.yaml"]);
    assert_eq!(found(&["-C", "oth"]), ["other/"]);
    assert_eq!(found(&["-C", "other/d"]), ["other/deep/"]);
}

#[test]
fn refuses_shells_that_it_does_not_know() {
    let folder = Folder::empty();
    let run = folder.run_with(
        &[("CLUSTERMESH_COMPLETE", "tcsh")],
        &["--", "clustermesh", ""],
    );
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_contains(&run.stderr, "unknown shell `tcsh`");
    // Set to nothing, or under the name that others use, the variable means nothing.
    for variable in [("CLUSTERMESH_COMPLETE", ""), ("COMPLETE", "bash")] {
        assert_eq!(folder.run_with(&[variable], &["--version"]).code, 0);
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

/// Bash splits words at `=` and `:`, and replaces only the last part.
#[test]
fn completes_in_bash() {
    let folder = Folder::mesh();
    folder.write("completions", script("bash"));
    folder.write("a:b/c.yaml", "");
    let program = assert_cmd::cargo::cargo_bin("clustermesh");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    for (line, words, current, found) in [
        (
            "render --target ",
            "render --target ''",
            "",
            "east north west",
        ),
        (
            "render --target=",
            "render --target =",
            "",
            "east north west",
        ),
        ("render --target=e", "render --target = e", "e", "east"),
        ("render  --target=e", "render --target = e", "e", "east"),
        (
            "verify --peers west=me",
            "verify --peers west = me",
            "me",
            "mesh.yaml",
        ),
        (
            "verify --peers=west=me",
            "verify --peers = west = me",
            "me",
            "mesh.yaml",
        ),
        ("verify --peers w", "verify --peers w", "w", "west="),
        (
            "render --mesh a:b/",
            "render --mesh a : b/",
            "b/",
            "b/c.yaml",
        ),
        (
            "render --target=east --fail",
            "render --target = east --fail",
            "--fail",
            "--fail-on",
        ),
    ] {
        let line = format!(
            "source completions; COMP_LINE='clustermesh {line}'; COMP_POINT=${{#COMP_LINE}}; \
             COMP_WORDS=(clustermesh {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMP_TYPE=9 _clustermesh clustermesh '{current}' x; echo ${{COMPREPLY[*]}}"
        );
        let mut command = Command::new("bash");
        let command = command.args(["--norc", "-c", &line]).env("PATH", &path);
        let Ok(output) = command.current_dir(folder.path("")).output() else {
            return;
        };
        let report = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(report, format!("{found}\n"), "{line}: {output:?}");
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
    for arguments in [
        ["completions", "bash"],
        ["man", "render"],
        ["config", "--output=json"],
    ] {
        let mut command = crate::cli::render::target::command(&folder, &arguments);
        let output = command.stdout(broken()).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}
