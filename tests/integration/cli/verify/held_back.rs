//! Clusters whose new snapshots cause errors, so that a refresh keeps their old ones.

use std::fmt::Write as _;

use super::*;
use crate::cli::diff::Repository;

/// A committed repository in which every cluster has three nodes, and a new snapshot of `west` with one more.
fn refreshed() -> Repository {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.2.0.0/16]\n",
        "podCIDRs: [10.2.0.0/16, 'fd00:2::/48']\n      granularity: Full\n",
    );
    for (number, cluster) in [(1, "east"), (2, "north"), (3, "west")] {
        folder.keep(cluster, &nodes(number, 3));
    }
    let repository = committed(folder);
    repository.folder.keep("west", &nodes(3, 4));
    repository
}

fn committed(folder: Folder) -> Repository {
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

fn nodes(cluster: u8, count: u8) -> Vec<Value> {
    (1..=count).map(|it| node(cluster, it)).collect()
}

/// Returns nodes with an annotation of Kilo, which may depend on the number of the node.
fn annotated(mut nodes: Vec<Value>, key: &str, value: impl Fn(usize) -> String) -> Vec<Value> {
    for (i, node) in nodes.iter_mut().enumerate() {
        node["annotations"][format!("kilo.squat.ai/{key}")] = json!(value(i + 1));
    }
    nodes
}

/// Returns the nodes of a cluster with the keys of those of another one.
fn with_keys_of(cluster: u8, other: u8) -> Vec<Value> {
    let mut nodes = nodes(cluster, 3);
    for (node, other) in nodes.iter_mut().zip(self::nodes(other, 3)) {
        node["annotations"]["kilo.squat.ai/key"] =
            other["annotations"]["kilo.squat.ai/key"].clone();
    }
    nodes
}

fn held_back(folder: &Folder) -> Run {
    let run = folder.run(&["verify", "--held-back", "HEAD"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

#[test]
fn only_the_cluster_whose_nodes_cause_errors_is_listed() {
    let west = || nodes(3, 4);
    for (cluster, nodes, rule) in [
        (
            "north",
            annotated(nodes(2, 3), "granularity", |_| "location".to_owned()),
            "contradicted-declaration",
        ),
        (
            "north",
            annotated(nodes(2, 3), "key", |it| if it == 1 { "" } else { "x" }.to_owned()),
            "unproved-nodes",
        ),
        (
            "north",
            annotated(nodes(2, 3), "internal-ip", |it| format!("fd00:2::{it}/64")),
            "cut-off-cluster",
        ),
        // The errors are about clusters that rank behind it, and are not the cause.
        ("east", with_keys_of(1, 2), "unproved-nodes]: north"),
        ("north", with_keys_of(2, 3), "unproved-nodes]: west"),
        (
            "north",
            annotated(nodes(2, 3), "force-endpoint", |it| format!("10.3.{it}.9:51820")),
            "unproved-nodes]: north",
        ),
        (
            "north",
            annotated(nodes(2, 3), "internal-ip", |it| format!("10.3.200.{it}/16")),
            "local-shadow",
        ),
        ("north", Vec::new(), "lost-source"),
    ] {
        let repository = refreshed();
        let folder = &repository.folder;
        folder.keep(cluster, &nodes);
        let run = held_back(folder);
        assert_eq!(run.stdout, format!("{cluster}\n"), "{rule}: {}", run.stderr);
        assert_contains(&run.stderr, &format!("warning[{rule}"));
        // The rest can be merged.
        repository.git(&["checkout", "HEAD", "--", &format!("snapshots/{cluster}.json")]);
        assert_eq!(held_back(folder).stdout, "");
        for arguments in [["render"].as_slice(), &["validate"], &["verify"]] {
            let run = folder.run(arguments);
            assert_eq!(run.code, 0, "{rule}: {arguments:?}: {}{}", run.stdout, run.stderr);
        }
        let text = folder.read("snapshots/west.json");
        assert_contains(&text, west()[3]["uid"].as_str().unwrap());
    }
}

#[test]
fn ordinary_changes_hold_back_nothing() {
    let mut joining = node(2, 4);
    joining["annotations"] = json!({});
    let mut drained = nodes(2, 3);
    drained[2]["stale"] = json!(true);
    let mut reinstalled = nodes(2, 3);
    reinstalled[0]["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([99; 32]));
    for nodes in
        [[nodes(2, 3), vec![joining]].concat(), drained, reinstalled, nodes(2, 2), nodes(2, 6)]
    {
        let repository = refreshed();
        repository.folder.keep("north", &nodes);
        let run = held_back(&repository.folder);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    }
}

#[test]
fn several_clusters_are_listed_by_name() {
    let repository = refreshed();
    let folder = &repository.folder;
    folder.keep("west", &annotated(nodes(3, 3), "key", |_| String::new()));
    folder.keep("east", &with_keys_of(1, 2));
    assert_eq!(held_back(folder).stdout, "east\nwest\n");
}

/// The nodes of `north` moved to `east`, and both snapshots are sound only together.
#[test]
fn snapshots_that_need_each_other_are_not_held_for_a_third_one() {
    let repository = refreshed();
    let folder = &repository.folder;
    folder.keep("east", &with_keys_of(1, 2));
    folder.keep("north", &with_keys_of(2, 9));
    assert_eq!(held_back(folder).stdout, "");
    folder.keep("west", &annotated(nodes(3, 3), "key", |_| String::new()));
    assert_eq!(held_back(folder).stdout, "west\n");
}

/// Each of both snapshots alone is sound.
#[test]
fn one_of_two_clusters_that_get_the_same_keys_is_listed() {
    let repository = refreshed();
    let folder = &repository.folder;
    folder.keep("east", &with_keys_of(1, 9));
    folder.keep("west", &with_keys_of(3, 9));
    assert_eq!(held_back(folder).stdout, "west\n");
}

/// To restore the old snapshot would not help.
#[test]
fn errors_that_were_there_before_hold_back_nothing() {
    let folder = Folder::mesh();
    let mut west = nodes(3, 4);
    for node in &mut west[..2] {
        node["annotations"]["kilo.squat.ai/key"] = json!("");
    }
    folder.keep("west", &west);
    let repository = committed(folder);
    let folder = &repository.folder;
    west.push(node(3, 5));
    folder.keep("west", &west);
    assert_contains(&folder.run(&["verify"]).stdout, "error[unproved-nodes]: west");
    assert_eq!(held_back(folder).stdout, "");
    // Others are still compared.
    folder.keep("north", &annotated(nodes(2, 2), "key", |_| String::new()));
    assert_eq!(held_back(folder).stdout, "north\n");
}

#[test]
fn a_cluster_without_an_old_snapshot_is_not_listed() {
    let folder = Folder::rendered();
    let north = folder.read("snapshots/north.json");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.write("snapshots/north.json", north.replace("kilo.squat.ai/key", "x"));
    assert_eq!(held_back(folder).stdout, "");
}

#[test]
fn a_commit_is_needed_also_if_there_are_no_errors() {
    let repository = Repository::of(Folder::rendered());
    let run = |revision| repository.folder.run(&["verify", "--held-back", revision]);
    let without = run("HEAD");
    assert_contains(&without.stderr, "the repository has no commit yet");
    assert_eq!((without.code, without.stdout.as_str()), (2, ""));
    repository.commit();
    assert_eq!(run("HEAD").code, 0);
    assert_eq!(run("HAED").code, 2, "a typing error");
    let outside = Folder::rendered().run(&["verify", "--held-back", "HEAD"]);
    insta::assert_snapshot!(outside.stderr, @"error: this folder is not in a git repository");
}

#[test]
fn the_peers_are_those_that_would_be_rendered() {
    let folder = Folder::rendered();
    let arguments = ["verify", "--held-back", "HEAD", "--peers", "west=x.yaml"];
    let run = folder.run(&arguments);
    assert_contains(&run.stderr, "--held-back cannot be combined with --peers");
    assert_eq!(run.code, 2);
}

#[test]
fn levels_and_strict_apply() {
    let repository = refreshed();
    let folder = &repository.folder;
    let hostile = annotated(nodes(2, 3), "granularity", |_| "location".to_owned());
    folder.keep("north", &hostile);
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules:\n  contradicted-declaration: { level: warning, reason: x }\n",
    );
    let run = held_back(folder);
    assert!(!run.stderr.contains("contradicted-declaration"), "{}", run.stderr);
    let mut joining = node(2, 4);
    joining["annotations"] = json!({});
    folder.keep("north", &[nodes(2, 3), vec![joining]].concat());
    assert_eq!(held_back(folder).stdout, "");
    let run = folder.run(&["verify", "--held-back", "HEAD", "--fail-on", "warning"]);
    assert_eq!(run.stdout, "north\n");
}

/// Many are found in a few proofs of the whole. `c1` takes the keys of the old nodes of `c2`, which is not the cause.
#[test]
fn of_many_clusters_exactly_the_causes_are_listed() {
    let folder = Folder::empty();
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n  clusters:\n".to_owned();
    for number in 1..=14 {
        let wireguard = 100 + number;
        writeln!(
            mesh,
            "    - {{ name: c{number}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.{wireguard}.0.0/24 }}"
        )
        .unwrap();
        folder.keep(&format!("c{number}"), &nodes(number, 3));
    }
    folder.write("mesh.yaml", mesh);
    let repository = committed(folder);
    let folder = &repository.folder;
    for number in 1..=14 {
        folder.keep(&format!("c{number}"), &nodes(number, 4));
    }
    for number in [4, 5, 9, 10, 12] {
        let silent = annotated(nodes(number, 4), "key", |_| String::new());
        folder.keep(&format!("c{number}"), &silent);
    }
    folder.keep("c1", &with_keys_of(1, 2));
    let run = held_back(folder);
    assert_eq!(run.stdout, "c1\nc10\nc12\nc4\nc5\nc9\n", "{}", run.stderr);
    assert_contains(&run.stderr, "the new snapshot of c1 would cause 1 error:\n");
    assert_contains(&run.stderr, "the new snapshot of c9 would cause");
}
