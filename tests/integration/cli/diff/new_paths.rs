//! `--fail-on-new-path`: paths that a change opens, for good or on the way.

use super::*;
use crate::support::assert_contains;

const TOPOLOGY: &str = "  topology: { mode: Links, links: [[east, west], [west, north]] }\n";

/// A mesh in which `east` and `north` are apart.
fn apart() -> Repository {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", &format!("spec:\n{TOPOLOGY}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

fn findings(run: &Run) -> Vec<&str> {
    let lines = run.stderr.lines();
    lines.filter(|it| it.contains("[opened-path]")).collect()
}

#[test]
fn a_link_opens_paths_in_both_directions() {
    let repository = apart();
    repository.folder.edit("mesh.yaml", TOPOLOGY, "");
    for watched in ["east:north", "north:east"] {
        let run = repository.diff(&["--fail-on-new-path", watched]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert_eq!(findings(&run).len(), 1, "{}", run.stderr);
        assert_contains(findings(&run)[0], "4 paths open from");
    }
    for watched in ["east:west", "west:north"] {
        let run = repository.diff(&["--fail-on-new-path", watched]);
        assert_eq!((run.code, findings(&run).len()), (0, 0), "{}", run.stderr);
    }
    let run = repository.diff(&["--fail-on-new-path", "east:north", "--output", "json"]);
    let json = run.json();
    let paths = json["paths"].as_array().unwrap();
    let opened = |from: &str| {
        let of = paths.iter().find(|it| {
            it["from"] == from && it["to"] == json!(if from == "east" { "north" } else { "east" })
        });
        of.unwrap()["opened"]["declared"].clone()
    };
    assert_eq!((opened("east"), opened("north")), (json!(4), Value::Null));
}

#[test]
fn groups_are_all_their_members_and_typing_errors_are_reported() {
    let repository = apart();
    let groups = "spec:\n  groups: { far: [east, west] }\n";
    repository.folder.edit("mesh.yaml", "spec:\n", groups);
    repository.folder.edit("mesh.yaml", TOPOLOGY, "");
    let run = repository.diff(&["--fail-on-new-path", "far:north"]);
    assert_eq!((run.code, findings(&run).len()), (1, 1), "{}", run.stderr);
    let run = repository.diff(&["--fail-on-new-path", "fat:north"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "did you mean `far`?");
    let run = repository.diff(&["--fail-on-new-path", "north"]);
    assert_contains(&run.stderr, "expected FROM:TO");
}

#[test]
fn a_change_cannot_leave_the_group_that_it_opens() {
    let repository = apart();
    let groups = |members: &str| format!("spec:\n  groups: {{ far: [{members}] }}\n");
    repository
        .folder
        .edit("mesh.yaml", "spec:\n", &groups("east, west"));
    repository.commit();
    repository
        .folder
        .edit("mesh.yaml", &groups("east, west"), &groups("west"));
    repository.folder.edit("mesh.yaml", TOPOLOGY, "");
    let run = repository.diff(&["--fail-on-new-path", "far:north"]);
    assert_eq!((run.code, findings(&run).len()), (1, 1), "{}", run.stderr);
}

/// First `east` gets Peers of `north`, and not the reverse; after the change it is the other way round.
#[test]
fn a_path_that_is_open_only_on_the_way_counts() {
    let folder = Folder::mesh();
    let subnets = [
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.102.0.0/24",
    ];
    let [of_east, of_north] = subnets.map(|subnet| {
        let accepted = "acceptedNetworks: [10.3.0.0/16, 10.103.0.0/24]";
        (subnet, format!("{subnet}\n      {accepted}"))
    });
    folder.edit("mesh.yaml", of_north.0, &of_north.1);
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", &of_north.1, of_north.0);
    folder.edit("mesh.yaml", of_east.0, &of_east.1);
    let run = repository.diff(&["--fail-on-new-path", "east:north"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(
        findings(&run)[0],
        "4 paths may open while the change is applied",
    );
    assert_contains(&run.stdout, "open only while the Peers arrive");
    let run = repository.diff(&["--fail-on-new-path", "east:west"]);
    assert_eq!((run.code, findings(&run).len()), (0, 0), "{}", run.stderr);
}
