//! `capacity` with clusters that join.

use std::fs;

use serde_json::Value;

use super::{limit, object};
use crate::cli::Folder;
use crate::support::assert_contains;

/// A rendered mesh of `east`, which `north` and `west` join.
fn joining() -> Folder {
    let folder = Folder::mesh();
    for cluster in ["north", "west"] {
        let name = format!("    - name: {cluster}\n");
        folder.edit("mesh.yaml", &name, &format!("{name}      state: Joining\n"));
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

#[test]
fn the_load_with_all_clusters_is_shown_before_they_join() {
    let folder = joining();
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS
    east    ok         0       0     15   1 ms      0 s       2   266 B        1
    north   ok         0       0     15   1 ms      0 s       2   266 B        1
    west    ok         0       0     15   1 ms      0 s       2   266 B        1

    3 clusters, 0 Peer objects; 0 tunnel ends in total on all nodes (not Kubernetes objects)

    with north, west joined
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS  CHANGE  BUSY
    east    ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms
    north   ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms
    west    ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms
    ");
    let (_, before) = object(&folder, &[]);
    let joined = Folder::rendered();
    let (_, after) = object(&joined, &[]);
    let loads = |targets: &Value| {
        let mut targets = targets.as_array().unwrap().clone();
        for target in &mut targets {
            let target = target.as_object_mut().unwrap();
            target.remove("change");
        }
        targets
    };
    assert_eq!(before["joining"]["fits"], true);
    assert_eq!(loads(&before["joining"]["targets"]), loads(&after["targets"]));
}

#[test]
fn a_cluster_without_a_snapshot_waits() {
    let folder = joining();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let (_, object) = object(&folder, &[]);
    let clusters = object["joining"]["clusters"].as_array().unwrap();
    assert_eq!((clusters.len(), &clusters[0]["cluster"]), (1, &"north".into()));
    assert_eq!(object["waiting"][0]["cluster"], "west");
    let run = folder.run(&["capacity"]);
    assert!(
        run.stdout.ends_with("\nNot counted, because a snapshot is missing: west.\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_load_with_all_clusters_fits_a_comment() {
    let folder = joining();
    let run = folder.run(&["capacity", "--output", "markdown"]);
    let tables = run.stdout.matches("| TARGET | GRADE |").count();
    assert_eq!((run.code, tables), (0, 2), "{}", run.stdout);
    assert_contains(&run.stdout, "#### With north, west joined");
    let run = folder.run(&["capacity", "east", "--output", "markdown"]);
    assert_contains(&run.stdout, "```text\neast: ");
}

#[test]
fn a_limit_that_is_exceeded_with_all_clusters_is_a_field() {
    let folder = joining();
    limit(&folder, "peers: { warning: 3 }");
    let (code, object) = object(&folder, &[]);
    assert_eq!((code, &object["joining"]["fits"]), (0, &false.into()));
}
