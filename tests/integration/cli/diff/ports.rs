//! The endpoints that clusters dial in one version only.

use super::*;
use crate::support::assert_contains;

/// A new node is reached only with its port open, so the grade is not enough.
#[test]
fn endpoints_of_new_and_old_nodes() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.keep("west", &[node(3, 2), node(3, 3)]);
    let run = repository.diff(&[]);
    let ports: Vec<&str> = run.stdout.lines().filter(|it| it.contains("UDP ")).collect();
    insta::assert_snapshot!(ports.join("\n"), @"
    before the merge, open what other clusters will dial: UDP 198.18.113.33:51820 (west/n3)
    after the merge, other clusters no longer dial: UDP 198.18.113.31:51820 (west/n1)
    ");
    let changes = repository.diff(&["--output", "json"]).json();
    let of = |list: &str| changes[list].as_array().unwrap().len();
    assert_eq!([of("openedPorts"), of("closedPorts")], [1, 1], "{}", run.stdout);
    let markdown = repository.diff(&["--output", "markdown"]).stdout;
    assert_contains(&markdown, "before the merge, open what other clusters will dial: UDP ");
}

/// Another range of a node does not concern a firewall.
#[test]
fn an_endpoint_that_stays_is_not_listed() {
    let repository = Repository::committed();
    let mut other = node(3, 1);
    other["podCIDRs"] = json!(["10.3.9.0/24"]);
    repository.folder.keep("west", &[other, node(3, 2)]);
    let run = repository.diff(&[]);
    assert!(!run.stdout.contains("UDP "), "{}", run.stdout);
    assert_contains(&run.stdout, "10.3.9.0/24");
}

/// The API server refuses the new Peers, so the cluster keeps the old ones.
#[test]
fn a_guard_that_refuses_the_change_is_noted() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.write(
        "guards/west.yaml",
        folder.run(&["guard", "west", "--writers", "ada@example.com"]).stdout,
    );
    repository.commit();
    assert_eq!(repository.diff(&[]).stderr, "");
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.1.0.0/16]",
        "podCIDRs: [10.1.0.0/16]\n      additionalCIDRs: [10.71.0.0/16]",
    );
    assert_contains(
        &repository.diff(&[]).stderr,
        "note: the guard of west refuses 1 Peer that `render` writes: prod--east--n1 (",
    );
}
