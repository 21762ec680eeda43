//! `--fail-on-new-path`: paths that a change opens, for good or on the way.

use super::*;
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

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
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &json), Vec::<String>::new());
}

/// WireGuard works on without an agent, so the paths of a silent node are as open as those of other nodes.
#[test]
fn paths_of_silent_nodes_count() {
    let repository = apart();
    let folder = &repository.folder;
    let silence = |name: &str| {
        let name = format!("\"name\":\"{name}\"");
        folder.edit("snapshots/north.json", &name, &format!("{name},\"stale\":true"));
    };
    for node in ["n1", "n2"] {
        silence(node);
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    folder.edit("mesh.yaml", TOPOLOGY, "");
    let run = repository.diff(&["--fail-on-new-path", "east:north"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(findings(&run)[0], "4 paths open from");
    // A node that checks in again opens nothing.
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    folder.edit("snapshots/north.json", ",\"stale\":true", "");
    let run = repository.diff(&["--fail-on-new-path", "east:north"]);
    assert_eq!((run.code, findings(&run).len()), (0, 0), "{}", run.stderr);
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
    repository.folder.edit("mesh.yaml", "spec:\n", &groups("east, west"));
    repository.commit();
    repository.folder.edit("mesh.yaml", &groups("east, west"), &groups("west"));
    repository.folder.edit("mesh.yaml", TOPOLOGY, "");
    let run = repository.diff(&["--fail-on-new-path", "far:north"]);
    assert_eq!((run.code, findings(&run).len()), (1, 1), "{}", run.stderr);
}

/// First `east` gets Peers of `north`, and not the reverse; after the change it is the other way round.
#[test]
fn a_path_that_is_open_only_on_the_way_counts() {
    let folder = Folder::mesh();
    let subnets = ["wireguardCIDR: 10.101.0.0/24", "wireguardCIDR: 10.102.0.0/24"];
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
    assert_contains(findings(&run)[0], "4 paths may open while the change is applied");
    assert_contains(&run.stdout, "open only while the Peers arrive");
    let run = repository.diff(&["--fail-on-new-path", "east:west"]);
    assert_eq!((run.code, findings(&run).len()), (0, 0), "{}", run.stderr);
}

/// A job shows only one of them to a person, so each has everything.
#[test]
fn every_format_has_the_new_paths() {
    let repository = apart();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  groups: { far: [east] }\n");
    folder.edit(
        "mesh.yaml",
        "[[east, west], [west, north]]",
        "[[east, west], [west, north], [east, north]]",
    );
    let watched = ["--fail-on-new-path", "far:north", "--fail-on-new-path", "east:north"];
    let run = |format: &str| repository.diff(&[&watched[..], &["--output", format]].concat());
    let message = "4 paths open from `east` to `north`, such as from east/";
    let flags = "remove `--fail-on-new-path far:north`, `--fail-on-new-path east:north` from the command; otherwise \
                 revert the change of `topology`";
    let human = run("human");
    assert_contains(
        &human.stdout,
        "4 declared paths opened although `--fail-on-new-path` forbids it",
    );
    for page in [human.stderr, run("markdown").stdout] {
        assert_contains(&page, message);
        assert_contains(&page, "mesh.yaml:7");
    }
    let commands = run("github").stdout;
    assert_contains(&commands, "::error file=mesh.yaml,line=7,");
    assert_contains(&commands, message);
    assert_contains(&commands, flags);
    let json = run("json").json();
    let new = &json["newPaths"];
    assert_eq!(new.as_array().unwrap().len(), 1);
    assert_eq!(new[0]["watched"], json!(["far:north", "east:north"]));
    assert_eq!((&new[0]["from"], &new[0]["to"]), (&json!("east"), &json!("north")));
    assert_eq!(
        (&new[0]["opened"]["declared"], &new[0]["passing"]["declared"]),
        (&json!(4), &json!(0))
    );
    assert!(new[0]["example"]["from"].as_str().unwrap().starts_with("east/"));
    let causes = new[0]["causes"].as_array().unwrap();
    let cause = usize::try_from(causes[0].as_u64().unwrap()).unwrap();
    let cause = &json["causes"][cause];
    assert_contains(cause["message"].as_str().unwrap(), "`topology`");
    let finding = &json["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["places"][0]["line"]),
        (&json!("opened-path"), &json!(7))
    );
    assert_eq!(finding["places"][1]["label"], "the receiver");
}

/// The line that closed the paths is gone, so the entry of the receiver is the place.
#[test]
fn a_removed_limit_is_named() {
    let repository = apart();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", TOPOLOGY, "");
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedClusters: [west] }\n";
    folder.write("policies/north.yaml", policy);
    repository.commit();
    folder.write("policies/north.yaml", policy.replace("acceptedClusters: [west]", ""));
    let run = repository.diff(&["--fail-on-new-path", "east:north"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "name: north");
    assert_contains(&run.stderr, "otherwise revert the change of `acceptedClusters`");
}

/// A node with the keys and the ranges can dial in from any address.
#[test]
fn a_path_is_open_even_if_nobody_can_dial_today() {
    let repository = apart();
    let folder = &repository.folder;
    let port = "spec:\n  defaults: { wireguardPort: 9999 }\n";
    folder.edit("mesh.yaml", "spec:\n", port);
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    folder.edit("mesh.yaml", TOPOLOGY, "");
    let works = repository.diff(&["--output", "json"]).json();
    assert_eq!(works["paths"], json!([]), "{works:#}");
    let run = repository.diff(&["--fail-on-new-path", "east:north"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(findings(&run)[0], "4 paths open from `east` to `north`");
    // The ports alone open nothing.
    folder.edit("mesh.yaml", "spec:\n", &format!("spec:\n{TOPOLOGY}"));
    folder.edit("mesh.yaml", "  defaults: { wireguardPort: 9999 }\n", "");
    let run = repository.diff(&["--fail-on-new-path", "east:west"]);
    assert_eq!((run.code, findings(&run).len()), (0, 0), "{}", run.stderr);
}
