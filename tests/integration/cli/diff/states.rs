//! A cluster that joins and leaves in reviewed steps: the grade of each.

use super::*;
use crate::support::assert_contains;

/// Renders, and commits everything.
fn apply(repository: &Repository) {
    let run = repository.folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    repository.commit();
}

#[test]
fn a_cluster_that_gets_another_name_and_leaves_is_one_reason() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "name: west", "name: orient\n      state: Leaving");
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    folder.keep("orient", &[node(3, 1), node(3, 2)]);
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "\neast, north: destructive\n  it loses all Peers of orient\n");
    assert!(!shown.contains("all paths to and from"), "{shown}");
}

/// The state is a reason also where the snapshots are deleted in the same commit.
#[test]
fn clusters_that_leave_without_snapshots_are_all_named() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    for cluster in ["north", "west"] {
        let name = format!("- name: {cluster}\n");
        folder.edit("mesh.yaml", &name, &format!("{name}      state: Leaving\n"));
        fs::remove_file(folder.path(&format!("snapshots/{cluster}.json"))).unwrap();
    }
    let shown = repository.diff(&[]).stdout;
    let (causes, _) = shown.split_once("\n\n").unwrap();
    insta::assert_snapshot!(causes, @"
    cluster north leaves (`state: Leaving`)
        east +0 ~0 -2, north +0 ~0 -4, west +0 ~0 -2
    cluster west leaves (`state: Leaving`)
        east +0 ~0 -2, north +0 ~0 -2, west +0 ~0 -4
    ");
    folder.edit("mesh.yaml", &NORTH.replacen('\n', "\n      state: Leaving\n", 1), "");
    assert_contains(&repository.diff(&[]).stdout, "cluster north left (its entry is removed)\n");
}

#[test]
fn only_the_step_that_connects_and_the_one_that_separates_change_peers() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    let nodes = folder.read("snapshots/north.json");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let repository = Repository::of(folder);
    let folder = &repository.folder;
    apply(&repository);

    folder.write("snapshots/north.json", nodes);
    let west = "    - name: west\n";
    let joining = NORTH.replacen('\n', "\n      state: Joining\n", 1);
    folder.edit("mesh.yaml", west, &format!("{joining}{west}"));
    assert_eq!(repository.grade(&[]), "none");
    let shown = folder.run(&["diff"]).stdout;
    assert!(shown.contains("cluster north was added with `state: Joining`"), "{shown}");
    apply(&repository);

    folder.edit("mesh.yaml", "      state: Joining\n", "");
    assert_eq!(repository.grade(&[]), "additive");
    apply(&repository);

    folder.edit("mesh.yaml", "- name: north", "- name: north\n      state: Leaving");
    assert_eq!(repository.grade(&[]), "destructive");
    apply(&repository);

    let leaving = NORTH.replacen('\n', "\n      state: Leaving\n", 1);
    folder.edit("mesh.yaml", &leaving, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(repository.grade(&[]), "none");
    apply(&repository);
    assert!(!folder.path("rendered/north").exists());
}

/// Before it joins, its node has the key of another cluster and dials none; afterwards, the third cluster has two nodes for one
/// Peer.
#[test]
fn a_cluster_that_joins_with_the_key_of_another_breaks_paths() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "- name: north", "- name: north\n      state: Joining");
    let mut copy = node(2, 1);
    copy["annotations"]["kilo.squat.ai/key"] =
        node(1, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("north", &[copy, node(2, 2)]);
    assert_eq!(folder.run(&["render", "-q"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.edit("mesh.yaml", "\n      state: Joining", "");
    let run = repository.diff(&["--fail-on", "disruptive"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(&run.stdout, "east → west: ");
    assert_contains(&run.stdout, "declared paths lost");
}
