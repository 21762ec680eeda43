//! Manifests that people wrote into the rendered tree. `render` keeps them, so they are in the new version, too.

use super::*;
use crate::support::assert_contains;

const KEPT: &str = "rendered/west/laptop.yaml";

/// A rendered mesh in which `west` has a Peer of its own.
fn with_laptop() -> Repository {
    let repository = Repository::of(Folder::rendered());
    let peers = repository.folder.read("rendered/west/prod--east.yaml");
    let (_, peer) = peers.split_once('\n').unwrap();
    let (peer, _) = peer.split_once("---\n").unwrap();
    let key = STANDARD.encode([77; 32]);
    let line = peer.lines().find(|it| it.contains("publicKey")).unwrap();
    let peer = peer
        .replace(line, &format!("  publicKey: {key}"))
        .replace("prod--east--n1", "laptop")
        .replace("10.1.1.0/24", "10.9.9.0/24")
        .replace("10.101.0.1/32", "10.9.8.1/32");
    let labels =
        peer.lines().filter(|it| !it.contains("kilo-clustermesh") && !it.contains("labels:"));
    let labels = labels.filter(|it| !it.contains("app.kubernetes.io"));
    let peer = labels.collect::<Vec<_>>().join("\n") + "\n";
    repository.folder.write(KEPT, peer);
    repository.commit();
    repository
}

#[test]
fn a_manifest_that_render_keeps_does_not_change() {
    let repository = with_laptop();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.path(KEPT).is_file());
    assert_eq!(repository.grade(&[]), "none");
    assert_eq!(repository.grade(&["--against", "old"]), "none");
    folder.write(
        "west.yaml",
        folder.read("rendered/west/prod--east.yaml")
            + "---\n"
            + &folder.read("rendered/west/prod--north.yaml")
            + "---\n"
            + &folder.read(KEPT),
    );
    assert_eq!(repository.grade(&["--peers", "west=west.yaml"]), "none");
    // A generated file that no plan has is removed.
    folder.write(
        "rendered/west/old.yaml",
        folder.read("rendered/west/prod--east.yaml").replace("prod--", "test--"),
    );
    repository.commit();
    assert_eq!(repository.grade(&[]), "disruptive");
}

#[test]
fn a_manifest_that_a_person_removes_or_edits_changes() {
    let repository = with_laptop();
    let folder = &repository.folder;
    fs::remove_dir_all(folder.path("rendered/east")).unwrap();
    folder.edit(KEPT, "10.9.9.0/24", "10.9.7.0/24");
    let changes = repository.diff(&["--output", "json"]).json();
    let target = &changes["targets"][0];
    assert_eq!(
        (&target["cluster"], &target["changed"], &target["removed"]),
        (&json!("west"), &json!(1), &json!(0))
    );
    fs::remove_file(folder.path(KEPT)).unwrap();
    assert_eq!(repository.grade(&[]), "disruptive");
    repository.commit();
    // Its text may be anything, so it is not shown.
    folder.write(KEPT, "a: hunter2 [\nb: [\n");
    let stderr = repository.refusal(&[]);
    assert!(!stderr.contains("hunter2"), "{stderr}");
    assert_contains(&stderr, &format!("`{KEPT}` cannot be read"));
    assert_contains(
        &stderr,
        "; `clustermesh render` keeps this file, so the new Peers are unknown; move it away\n",
    );
}
