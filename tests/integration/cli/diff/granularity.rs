//! Changes of the granularity, as the mesh declares it and as agents report it.

use super::*;
use crate::support::assert_contains;

/// A repository with three nodes of `west`.
fn repository(granularity: &str, west: &[Value]) -> Repository {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", WEST, &declared(granularity));
    folder.keep("west", west);
    let repository = Repository::of(folder);
    render(&repository);
    repository.commit();
    repository
}

const WEST: &str = "      wireguardCIDR: 10.103.0.0/24\n";

fn declared(granularity: &str) -> String {
    format!("{WEST}      granularity: {granularity}\n")
}

fn full() -> Vec<Value> {
    (1..=3).map(|it| node(3, it)).collect()
}

fn render(repository: &Repository) {
    let run = repository.folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

fn grade(repository: &Repository) -> Value {
    let run = repository.folder.run(&["diff", "--output", "json"]);
    run.json()["grade"].clone()
}

/// Four Peers would become two, and only the leader answers.
#[test]
fn a_declaration_that_the_agents_contradict_loses_paths() {
    let repository = repository("Full", &full());
    repository.folder.edit("mesh.yaml", "granularity: Full", "granularity: Location");
    render(&repository);
    assert_eq!(grade(&repository), "disruptive");
}

/// The paths were lost when the agents began to run with the other granularity.
#[test]
fn a_declaration_that_follows_the_agents_repairs_paths() {
    let repository = repository("Location", &full());
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "granularity: Location", "granularity: Full");
    render(&repository);
    assert_eq!(folder.run(&["verify"]).code, 0);
    let run = folder.run(&["diff"]);
    assert!(!run.stdout.contains("no longer work"), "{}", run.stdout);
}

#[test]
fn agents_with_another_granularity_than_the_declared_one_are_a_cause() {
    let repository = repository("Full", &full());
    repository.folder.keep("west", &location(full()));
    render(&repository);
    let run = repository.folder.run(&["diff"]);
    let cause = "most nodes of west report another granularity: Full → Location";
    assert_contains(&run.stdout, cause);
}
