//! Clusters that join or leave: their Peers, their folders, and what the guards accept.

use std::fs;

use serde_json::json;

use crate::cli::{Folder, HEADER, NORTH, TREE, node};
use crate::support::assert_contains;

/// Writes the state of a cluster into its entry.
fn set(folder: &Folder, cluster: &str, state: &str) {
    let name = format!("    - name: {cluster}\n");
    folder.edit("mesh.yaml", &name, &format!("{name}      state: {state}\n"));
}

fn unset(folder: &Folder, state: &str) {
    folder.edit("mesh.yaml", &format!("      state: {state}\n"), "");
}

fn succeeds(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run(arguments);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    run.stderr
}

const WITHOUT_NORTH: [&str; 5] = [
    "east/kustomization.yaml",
    "east/prod--west.yaml",
    "north/kustomization.yaml",
    "west/kustomization.yaml",
    "west/prod--east.yaml",
];

#[test]
fn a_cluster_that_joins_has_an_empty_folder_and_no_findings() {
    let folder = Folder::mesh();
    set(&folder, "north", "Joining");
    insta::assert_snapshot!(succeeds(&folder, &["render"]), @"
    east: +2 ~0 -0 files, 2 Peers of 1 cluster
    north: +1 ~0 -0 files, 0 Peers of 0 clusters
    west: +2 ~0 -0 files, 2 Peers of 1 cluster
    4 Peers in 3 targets
    ");
    assert_eq!(folder.tree(), WITHOUT_NORTH);
    let kustomization = folder.read("rendered/north/kustomization.yaml");
    assert!(kustomization.ends_with("resources: []\n"), "{kustomization}");
    for arguments in [
        ["render", "--check", "--fail-on", "warning"].as_slice(),
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
        &["render", "--target", "north"],
    ] {
        succeeds(&folder, arguments);
    }
    unset(&folder, "Joining");
    succeeds(&folder, &["render"]);
    assert_eq!(folder.tree(), TREE);
    succeeds(&folder, &["verify", "--fail-on", "warning"]);
}

#[test]
fn the_first_cluster_of_a_mesh_waits_for_others() {
    let folder = Folder::mesh();
    set(&folder, "north", "Joining");
    set(&folder, "west", "Joining");
    for arguments in [
        ["render"].as_slice(),
        &["render", "--check", "--fail-on", "warning"],
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
        &["render", "--target", "east"],
    ] {
        succeeds(&folder, arguments);
    }
}

#[test]
fn a_cluster_can_be_declared_before_it_exists() {
    let folder = Folder::mesh();
    set(&folder, "north", "Joining");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    insta::assert_snapshot!(succeeds(&folder, &["render"]), @"
    notice[unchecked-cluster]: north: is joining and has no snapshot, so its nodes are not checked
      --> mesh.yaml:11:14
       |
    11 |       state: Joining
       |              ^^^^^^^
    help: run `clustermesh snapshot north`

    east: +2 ~0 -0 files, 2 Peers of 1 cluster
    north: +1 ~0 -0 files, 0 Peers of 0 clusters
    west: +2 ~0 -0 files, 2 Peers of 1 cluster
    4 Peers in 3 targets
    ");
    assert_eq!(folder.tree(), WITHOUT_NORTH);
    for arguments in [
        ["render", "--check", "--fail-on", "warning"].as_slice(),
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
        &["capacity"],
        &["config"],
    ] {
        succeeds(&folder, arguments);
    }
    unset(&folder, "Joining");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "missing-snapshot");
}

#[test]
fn the_ranges_of_a_cluster_that_joins_or_leaves_are_reserved() {
    for state in ["Joining", "Leaving"] {
        let folder = Folder::mesh();
        set(&folder, "north", state);
        folder.edit("mesh.yaml", "[10.2.0.0/16]", "[10.3.1.0/24]");
        let run = folder.run(&["render"]);
        assert_eq!(run.code, 1);
        assert_contains(&run.stderr, "[overlapping-ranges]");
    }
}

#[test]
fn the_nodes_of_a_cluster_that_joins_are_checked_and_stop_nobody() {
    let folder = Folder::rendered();
    let run = folder.run(&["render", "--allow-empty", "north", "--allow-empty", "*/north"]);
    assert_eq!(run.code, 0);
    let mut strange = node(2, 1);
    strange["podCIDRs"] = json!(["10.99.1.0/24"]);
    folder.keep("north", &[strange]);
    assert_eq!(folder.run(&["validate"]).code, 1, "a joined one fails");
    set(&folder, "north", "Joining");
    let report = folder.run(&["render", "--allow-empty", "north", "--allow-empty", "*/north"]);
    assert_eq!(report.code, 0, "{}", report.stderr);
    assert!(
        report.stderr.contains("warning[contradicted-declaration]: north"),
        "{}",
        report.stderr
    );
    assert!(!report.stderr.contains("silent-cluster"), "{}", report.stderr);
}

#[test]
fn a_joined_cluster_that_is_set_to_joining_loses_nothing_unasked() {
    let folder = Folder::rendered();
    set(&folder, "north", "Joining");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"
    error[lost-source]: north: all 2 Peers would be removed from east, west (2 other findings follow from it)
      --> mesh.yaml:11:14
       |
    11 |       state: Joining
       |              ^^^^^^^ it joins only later
    help: to keep them, remove `state: Joining`; if `north` should leave the mesh, set `state: Leaving` in its entry; if only these Peers should be removed, run `clustermesh render --allow-empty '*/north' --allow-empty north/east --allow-empty north/west`

    1 error
    nothing was written
    ");
    assert_eq!(folder.tree(), TREE);
}

#[test]
fn a_cluster_leaves_without_a_flag() {
    let folder = Folder::rendered();
    set(&folder, "north", "Leaving");
    insta::assert_snapshot!(succeeds(&folder, &["render"]), @"
    notice[leaving-cluster]: north: leaves and gets no Peers any more; `kubectl apply -k` and automated sync of Argo CD refuse the empty folder `north` and keep the old Peers
      --> mesh.yaml:11:14
       |
    11 |       state: Leaving
       |              ^^^^^^^
    help: unless Flux applies the folder, run `kubectl --context north delete peers -l kilo-clustermesh.io/mesh=prod`; `clustermesh render` lists the next steps for north

    east: +0 ~1 -1 files, 2 Peers of 1 cluster (+0 ~0 -2)
    north: +0 ~1 -2 files, 0 Peers of 0 clusters (+0 ~0 -4)
    west: +0 ~1 -1 files, 2 Peers of 1 cluster (+0 ~0 -2)
    4 Peers in 3 targets

    Next steps for north, which leaves:
    1. Commit all files.
    2. Wait until north has no Peers: `kubectl --context north get peers -l kilo-clustermesh.io/mesh=prod`.
       Without Flux, delete them:
       `kubectl --context north delete peers -l kilo-clustermesh.io/mesh=prod`.
    3. Delete what delivered the Peers to north and the rights:
       `clustermesh rbac --delivery | kubectl --context north delete -f -`.
    4. Remove the entry of north from mesh.yaml, delete snapshots/north.json,
       run `clustermesh render`, and commit. docs/how-to/clusters.md of clustermesh has more.
    ");
    assert_eq!(folder.tree(), WITHOUT_NORTH);
    for arguments in [
        ["render", "--check", "--fail-on", "warning"].as_slice(),
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
        &["render", "--target", "north"],
        &["render", "--target", "east"],
    ] {
        succeeds(&folder, arguments);
    }
    // The cluster may be gone by now.
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    for arguments in [
        ["render", "--check", "--fail-on", "warning"].as_slice(),
        &["verify", "--fail-on", "warning"],
    ] {
        succeeds(&folder, arguments);
    }
    assert_eq!(folder.tree(), WITHOUT_NORTH);
}

#[test]
fn the_entry_of_a_cluster_that_has_left_is_removed_without_a_flag() {
    let folder = Folder::rendered();
    set(&folder, "north", "Leaving");
    succeeds(&folder, &["render"]);
    unset(&folder, "Leaving");
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    insta::assert_snapshot!(succeeds(&folder, &["render"]), @"
    north: +0 ~0 -1 files, no longer a target (+0 ~0 -0)
    2 targets unchanged
    4 Peers in 2 targets
    ");
    assert!(!folder.path("rendered/north").exists());
    // One that was not rendered without Peers is still kept.
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    assert_eq!(folder.run(&["render"]).code, 1);
}

#[test]
fn the_word_for_one_cluster_is_none_for_others() {
    let folder = Folder::rendered();
    set(&folder, "north", "Leaving");
    let mut unreachable = node(1, 1);
    unreachable["addresses"] = json!([]);
    unreachable["annotations"]["kilo.squat.ai/endpoint"] = json!("");
    folder.keep("east", &[unreachable]);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    let lost: Vec<&str> = run.stderr.lines().filter(|it| it.starts_with("error")).collect();
    let [cause] = lost.as_slice() else { panic!("{lost:?}") };
    assert!(cause.starts_with("error[missing-endpoint]: east/n1: left out"), "{cause}");
    assert!(cause.ends_with("follow from it: errors[empty-target, lost-source])"), "{cause}");
    let flags = "--allow-empty west --allow-empty west/east`";
    assert_contains(&run.stderr, flags);
}

#[test]
fn the_last_pair_parts_without_a_flag() {
    let folder = Folder::rendered();
    set(&folder, "north", "Leaving");
    set(&folder, "west", "Leaving");
    let report = succeeds(&folder, &["render"]);
    assert_eq!(report.matches("notice[leaving-cluster]").count(), 3, "{report}");
    for arguments in [
        ["render", "--check", "--fail-on", "warning"].as_slice(),
        &["validate", "--fail-on", "warning"],
        &["verify", "--fail-on", "warning"],
        &["render", "--target", "east"],
    ] {
        succeeds(&folder, arguments);
    }
}

#[test]
fn without_a_tree_a_cluster_that_leaves_is_printed_without_peers() {
    let folder = Folder::mesh();
    set(&folder, "north", "Leaving");
    let run = folder.run(&["render", "--target", "north"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, HEADER), "{}", run.stderr);
    let run = folder.run(&["render", "--target", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains("prod--north"), "{}", run.stdout);
}

#[test]
fn peers_that_are_left_of_a_cluster_that_leaves_are_undeclared() {
    let folder = Folder::rendered();
    let of = |cluster: &str| {
        let run = folder.run(&["render", "--target", cluster]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        folder.write(&format!("{cluster}.yaml"), run.stdout);
        format!("{cluster}={cluster}.yaml")
    };
    let dumps = ["east", "north", "west"].map(of);
    set(&folder, "north", "Leaving");
    succeeds(&folder, &["render"]);
    let mut arguments = vec!["verify", "--fail-on", "warning", "--undeclared"];
    arguments.extend(dumps.iter().flat_map(|it| ["--peers", it.as_str()]));
    let run = folder.run(&arguments);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_contains(&run.stdout, "north");
    // Clusters that no mesh has linked must still be kept apart.
    folder.edit(
        "mesh.yaml",
        "  clusters:\n",
        "  topology: { mode: Links, links: [[east, north], [east, west]] }\n  clusters:\n",
    );
    let run = folder.run(&arguments);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("unpromised-reach") || run.stdout.contains("unpromised-reach"));
}

#[test]
fn a_trace_to_a_cluster_that_joins_names_the_line() {
    let folder = Folder::mesh();
    set(&folder, "north", "Joining");
    succeeds(&folder, &["render"]);
    let run = folder.run(&["trace", "east/n1", "north/n1"]);
    assert_eq!(run.code, 1);
    let report = run.stdout + &run.stderr;
    assert_contains(&report, "remove `state: Joining` of `north` in the mesh");
}

#[test]
fn a_cluster_that_joins_has_nothing_to_delete_when_another_leaves() {
    let folder = Folder::mesh();
    set(&folder, "north", "Joining");
    set(&folder, "west", "Leaving");
    let report = succeeds(&folder, &["render"]);
    assert_contains(&report, "notice[leaving-cluster]: west");
    assert!(!report.contains("[leaving-cluster]: north"), "{report}");
}
