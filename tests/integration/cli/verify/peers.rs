//! `--peers`: only Peers are Peers, for every command that reads them.

use crate::cli::*;

/// Every command that reads the Peers of a cluster.
const COMMANDS: [&[&str]; 3] = [&["verify"], &["trace", "west/n1", "east/n1"], &["capacity"]];

/// Runs a command with these Peers of `west`, from the standard input.
fn run(folder: &Folder, command: &[&str], peers: &str) -> Run {
    let arguments = [command, &["--peers", "west=-"]].concat();
    folder.run_with_input(&arguments, peers)
}

#[test]
fn what_is_no_list_of_peers_is_an_error() {
    let folder = Folder::rendered();
    let texts = [
        "",
        "NAME             AGE\nprod--east--n1   5d\n",
        "<html><title>Log in</title></html>",
        r#"{"kind":"Status","apiVersion":"v1","reason":"Forbidden","code":403,"message":"peers.kilo.squat.ai is forbidden: User \"nobody\" cannot list resource \"peers\""}"#,
        r#"{"kind":"NodeList","apiVersion":"v1","items":[]}"#,
        r#"{"kind":"List","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}]}"#,
        r#"{"kind":"PeerList","apiVersion":"kilo.squat.ai/v1alpha1","metadata":{"continue":"x"},"items":[]}"#,
        "a: [",
    ];
    for command in COMMANDS {
        let report = texts.map(|text| {
            let run = run(&folder, command, text);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{command:?}");
            run.stderr
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(report.concat(), @r#"
            error: cannot read the Peers of `west`: the standard input is empty; did the command that lists the Peers fail?
            error: cannot read the Peers of `west`: the standard input is a table or other plain text; use the output of `kubectl get peers -o yaml`
            error: cannot read the Peers of `west`: the standard input is a web page; is `server` in the kubeconfig a Kubernetes API server?
            error: cannot read the Peers of `west`: the standard input is an error of the API server: Forbidden: peers.kilo.squat.ai is forbidden: User "nobody" cannot list resource "peers"
            error: cannot read the Peers of `west`: the standard input contains an object of the kind `NodeList`; use the output of `kubectl get peers -o yaml`
            error: cannot read the Peers of `west`: the standard input contains an object of the kind `Node`; use the output of `kubectl get peers -o yaml`
            error: cannot read the Peers of `west`: the standard input is one page of a longer list (`metadata.continue` is set); use the output of `kubectl get peers -o yaml`, which has all pages
            error: cannot read the Peers of `west`: the standard input is neither YAML nor JSON, see line 1, column 4
            "#);
        }
    }
}

#[test]
fn a_cluster_without_peers_lists_none() {
    let folder = Folder::rendered();
    let empty =
        r#"{"kind":"PeerList","apiVersion":"kilo.squat.ai/v1alpha1","metadata":{},"items":[]}"#;
    for command in COMMANDS {
        let run = run(&folder, command, empty);
        assert_ne!(run.code, 2, "{command:?}: {}", run.stderr);
    }
    let run = run(&folder, &["trace", "west/n1", "east/n1"], empty);
    assert_eq!(run.code, 1, "{}", run.stdout);
}

#[test]
fn the_standard_input_is_read_once() {
    let folder = Folder::rendered();
    let peers = folder.read("rendered/west/prod--east.yaml");
    let twice = ["verify", "--peers", "west=-", "--peers", "east=-"];
    let with_mesh = ["verify", "--mesh", "-", "--peers", "west=-"];
    let report = [folder.run_with_input(&twice, &peers), folder.run_with_input(&with_mesh, MESH)];
    for run in &report {
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    }
    insta::assert_snapshot!(report.map(|it| it.stderr).concat(), @"
    error: only one input can be `-`: the standard input is read already
    error: only one input can be `-`: the standard input is read already
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_and_descriptors_are_read() {
    let folder = Folder::rendered();
    let files = ["east", "north"].map(|it| folder.read(&format!("rendered/west/prod--{it}.yaml")));
    folder.write("west.yaml", files.join("---\n"));
    let script = "mkfifo pipe; cat west.yaml > pipe & \
                  \"$0\" verify --peers west=pipe && \
                  cat west.yaml | \"$0\" verify --peers west=/dev/stdin && \
                  \"$0\" verify --peers west=/dev/stdin < west.yaml && \
                  \"$0\" verify --peers west=/dev/fd/7 7< west.yaml && \
                  \"$0\" verify --peers west=<(cat west.yaml)";
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_clustermesh")])
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let run = Run::from(output);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_without_a_writer_is_not_waited_for() {
    let folder = Folder::rendered();
    let script = "mkfifo pipe && exec \"$0\" verify --peers west=pipe";
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_clustermesh")])
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let run = Run::from(output);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: cannot read `pipe`: it is a pipe that no program has opened for writing within 5 s");
}
