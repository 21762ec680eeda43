//! `render --target C`: one cluster's manifests and nothing else.

use std::fs;
use std::io::{self, PipeWriter};
use std::process::{Command, Stdio};

use serde::Deserialize as _;
use serde_yaml::Value;

use crate::cli::{Folder, node};
use crate::support::assert_contains;

const WEST: [&str; 3] = ["render", "--target", "west"];

#[test]
fn prints_peers_and_nothing_else() {
    let folder = Folder::mesh();
    let run = folder.run(&WEST);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let documents = serde_yaml::Deserializer::from_str(&run.stdout);
    let peers: Vec<Value> = documents.map(|it| Value::deserialize(it).unwrap()).collect();
    let names: Vec<&str> = peers
        .iter()
        .map(|peer| {
            assert_eq!(peer["kind"], "Peer");
            peer["metadata"]["name"].as_str().unwrap()
        })
        .collect();
    let expected = ["prod--east--n1", "prod--east--n2", "prod--north--n1", "prod--north--n2"];
    assert_eq!(names, expected);
    assert!(!folder.path("rendered").exists());
}

#[test]
fn prints_what_it_would_write() {
    let folder = Folder::rendered();
    let printed = folder.run(&WEST).stdout;
    for source in ["east", "north"] {
        let written = folder.read(&format!("rendered/west/prod--{source}.yaml"));
        let (_, peers) = written.split_once('\n').unwrap();
        assert_contains(&printed, peers);
    }
}

#[test]
fn keeps_talk_apart() {
    let folder = Folder::mesh();
    let quiet = folder.run(&WEST).stdout;
    folder.edit("snapshots/west.json", "10.103.0.2/24", "10.103.0.1/24");
    let run = folder.run(&WEST);
    assert_eq!((run.code, run.stdout), (0, quiet));
    assert!(run.stderr.starts_with("warning[duplicate-address]: west/n2"), "{}", run.stderr);
}

#[test]
fn prints_nothing_if_anything_is_wrong() {
    let folder = Folder::mesh();
    folder.edit("snapshots/west.json", "10.103.0.2/24", "10.103.0.1/24");
    let run = folder.run(&[WEST.as_slice(), &["--fail-on", "warning"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}

#[test]
fn leaves_the_tree_alone() {
    let folder = Folder::rendered();
    folder.edit("rendered/west/prod--east.yaml", "51820", "51821");
    let before = folder.touches(".");
    assert_eq!(folder.run(&WEST).code, 0);
    assert_eq!(folder.touches("."), before);
}

#[test]
fn prints_no_empty_target_unless_allowed() {
    let folder = Folder::mesh();
    for (number, cluster) in [(1, "east"), (2, "north")] {
        let mut node = node(number, 1);
        node["podCIDRs"] = serde_json::json!([]);
        folder.keep(cluster, &[node]);
    }
    let run = folder.run(&WEST);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[missing-pod-cidr]: east/n1: left out: no pod CIDR is assigned (2 other findings follow from it: error[empty-target])
    help: let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, then run `clustermesh snapshot east`; if a cluster should have no Peers, run `clustermesh render --target west --allow-empty west`

    warning[missing-pod-cidr]: north/n1: left out: no pod CIDR is assigned (1 other finding follows from it)
    help: let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, then run `clustermesh snapshot north`

    1 error, 1 warning
    ");
    let run = folder.run(&[WEST.as_slice(), &["--allow-empty", "west"]].concat());
    assert_eq!(run.code, 0);
    let documents = serde_yaml::Deserializer::from_str(&run.stdout);
    let peers: Vec<Value> = documents.map(|it| Value::deserialize(it).unwrap()).collect();
    assert!(peers.iter().all(Value::is_null), "{peers:?}");
}

/// Leaves `east` with a node that no other cluster can dial.
fn silence_east(folder: &Folder) {
    let mut node = node(1, 1);
    node["addresses"] = serde_json::json!([]);
    node["annotations"]["kilo.squat.ai/endpoint"] = serde_json::json!("");
    folder.keep("east", &[node]);
}

/// The messages of `render --target west` if it is refused.
fn refusal(folder: &Folder, flags: &[&str]) -> String {
    let run = folder.run(&[&WEST, flags].concat());
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    run.stderr
}

/// The Peers of a print of `west`.
fn printed(folder: &Folder, flags: &[&str]) -> Vec<String> {
    let run = folder.run(&[&WEST, flags].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let names = run.stdout.lines().filter_map(|it| it.strip_prefix("  name: "));
    names.map(str::to_owned).collect()
}

const OF_NORTH: [&str; 2] = ["prod--north--n1", "prod--north--n2"];

#[test]
fn compares_with_the_tree_as_writing_does() {
    let folder = Folder::rendered();
    silence_east(&folder);
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[missing-endpoint]: east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address (2 other findings follow from it: error[lost-source])
    help: annotate each node with an address that other clusters can dial: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `east` instead; if a cluster should have no Peers, run `clustermesh render --target west --allow-empty west/east`

    1 error
    ");
    refusal(&folder, &["--allow-empty", "north/east"]);
    for allowed in ["west/east", "*/east", "west", "*"] {
        assert_eq!(printed(&folder, &["--allow-empty", allowed]), OF_NORTH);
    }
    let run = folder.run(&["render", "--target", "east"]);
    assert_eq!(run.code, 0, "another target loses nothing: {}", run.stderr);
    fs::write(folder.path("rendered/west/prod--north.yaml"), "mine").unwrap();
    assert!(refusal(&folder, &[]).contains("error[blocked-file]: west"));
}

#[test]
fn without_a_tree_every_source_must_give_something() {
    let folder = Folder::mesh();
    silence_east(&folder);
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[missing-endpoint]: east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address (2 other findings follow from it: error[lost-source])
    help: annotate each node with an address that other clusters can dial: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `east` instead; if a cluster should have no Peers, run `clustermesh render --target west --allow-empty west/east`

    1 error
    ");
    refusal(&folder, &["--allow-empty", "north/east"]);
    for allowed in ["west/east", "*/east", "west", "*"] {
        assert_eq!(printed(&folder, &["--allow-empty", allowed]), OF_NORTH);
    }
    // A snapshot without nodes may have had some.
    folder.keep("east", &[]);
    assert_contains(
        &refusal(&folder, &[]),
        "error[silent-cluster]: east: no other cluster can reach it: its snapshot has no nodes (1 other finding follows from it: error[lost-source])",
    );
    // A tree without a folder of the target records nothing about it.
    folder.write("rendered/README.md", "");
    assert_contains(
        &refusal(&folder, &[]),
        "error[silent-cluster]: east: no other cluster can reach it: its snapshot has no nodes (1 other finding follows from it: error[lost-source])",
    );
}

#[test]
fn without_a_tree_a_partial_loss_is_a_warning() {
    let folder = Folder::mesh();
    folder.edit("snapshots/east.json", "10.101.0.2/24", "10.101.0.1/24");
    let run = folder.run(&WEST);
    assert_eq!(run.code, 0);
    assert!(run.stderr.starts_with("warning[duplicate-address]: east/n2"), "{}", run.stderr);
}

#[test]
fn without_a_tree_claims_of_nodes_stop_no_other_cluster() {
    let folder = Folder::mesh();
    let copied = |number: u8| {
        let mut node = node(1, number);
        let key = &crate::cli::node(2, number)["annotations"]["kilo.squat.ai/key"];
        node["annotations"]["kilo.squat.ai/key"] = key.clone();
        node
    };
    folder.keep("east", &[copied(1), copied(2)]);
    assert_eq!(printed(&folder, &[]), ["prod--east--n1", "prod--east--n2"]);
}

#[test]
fn an_allowance_for_a_target_that_is_nowhere_is_a_mistake() {
    let run = Folder::mesh().run(&[WEST.as_slice(), &["--allow-empty", "wets"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: --allow-empty names unknown cluster `wets`; known clusters: `east`, `north`, `west`");
}

/// A pipe whose reader has gone, as behind `| head`.
pub(crate) fn broken() -> PipeWriter {
    io::pipe().unwrap().1
}

pub(crate) fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("clustermesh"));
    let command_in_folder = command.env_clear().current_dir(folder.0.path());
    command_in_folder.args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn does_not_mind_a_reader_who_has_gone() {
    let folder = Folder::mesh();
    let mut command = command(&folder, &WEST);
    let output = command.stdout(broken()).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn calls_nothing_done_that_is_not() {
    let folder = Folder::mesh();
    folder.edit("snapshots/west.json", "10.103.0.2/24", "10.103.0.1/24");
    let status = command(&folder, &["render"]).stderr(broken()).status();
    let is_done = status.unwrap().success();
    assert_eq!(is_done, folder.path("rendered").exists());
}

#[test]
fn calls_nothing_clean_that_is_not() {
    let folder = Folder::mesh();
    let mut command = command(&folder, &["render", "--check"]);
    let status = command.stdout(broken()).stderr(Stdio::null()).status();
    assert!(!status.unwrap().success());
}
