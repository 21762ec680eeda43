//! Clusters whose agents run with another granularity than the mesh declares.

use super::*;
use crate::cli::diff::Repository;

/// A rendered mesh in which `west` declares a granularity.
fn declared(granularity: &str, west: &[Value]) -> Folder {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.103.0.0/24",
        &format!("wireguardCIDR: 10.103.0.0/24\n      granularity: {granularity}"),
    );
    folder.keep("west", west);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

fn full() -> Vec<Value> {
    (1..=3).map(|it| node(3, it)).collect()
}

#[test]
fn what_most_nodes_contradict_is_a_warning_of_render_and_an_error_of_all_who_judge() {
    for (granularity, nodes, says) in [
        ("Location", full(), "Full"),
        ("Cross", full(), "Full"),
        ("Full", location(full()), "Location"),
    ] {
        let folder = declared(granularity, &nodes);
        let report = format!(
            "[contradicted-declaration]: west: all 3 nodes have granularity `{says}`, not the declared `{granularity}`"
        );
        assert_contains(&folder.run(&["render"]).stderr, &format!("warning{report}"));
        for command in ["validate", "verify"] {
            let run = folder.run(&[command]);
            assert_contains(&run.stdout, &format!("error{report}"));
            assert_eq!(run.code, 1, "{command} of {granularity}");
        }
    }
}

#[test]
fn the_proof_follows_the_agents() {
    // Two of three nodes of `west` answer with keys that no other cluster knows, or have no Peers.
    for (folder, advice) in [
        (declared("Location", &full()), "set `granularity: Full` for `west`"),
        (declared("Full", &location(full())), "set `granularity: Location` for `west`"),
    ] {
        let (_, text) = verified(&folder, &[]);
        let (_, text) = text.split_once("\n\n").unwrap();
        let (table, findings) = text.split_once("\n\n").unwrap();
        insta::allow_duplicates!(insta::assert_snapshot!(table, @"
        FROM   TO     pod → pod
        east   north  4/4
        east   west   2/6
        north  east   4/4
        north  west   2/6
        west   east   2/6
        west   north  2/6
        "));
        // The failures follow from it.
        assert_eq!(findings.matches("error[").count(), 1, "{findings}");
        assert_contains(findings, "16 of 32 declared paths work");
        let run = folder.run(&["trace", "east/n1", "west/n2"]);
        assert_contains(&run.stdout, advice);
        assert_eq!(run.code, 1);
    }
}

/// In the order of `docs/how-to/clusters.md`: the agents, then the mesh and its snapshot.
#[test]
fn a_cluster_can_be_switched_there_and_back() {
    for (old, new, before, after) in [
        ("Full", "Location", full(), location(full())),
        ("Location", "Full", location(full()), full()),
    ] {
        let repository = Repository::of(declared(old, &before));
        repository.commit();
        let folder = &repository.folder;
        folder.keep("west", &after);
        assert_eq!(verified(folder, &[]).0, 1);
        let held = folder.run(&["verify", "--held-back", "HEAD"]);
        assert_eq!(held.stdout, "west\n");
        let [old, new] = [old, new].map(|it| format!("granularity: {it}"));
        folder.edit("mesh.yaml", &old, &new);
        let run = folder.run(&["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(verified(folder, &["--fail-on", "warning"]).0, 0);
        assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
    }
}

#[test]
fn what_no_node_reports_is_not_contradicted() {
    let mut nodes = full();
    for node in &mut nodes {
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations.remove("kilo.squat.ai/granularity");
    }
    for granularity in ["Cross", "Full", "Location"] {
        let folder = declared(granularity, &nodes);
        let run = folder.run(&["validate"]);
        assert!(!run.stdout.contains("contradicted"), "{}", run.stdout);
        assert_eq!(verified(&folder, &[]).0, 0);
    }
}

#[test]
fn a_few_nodes_with_another_granularity_do_not_contradict_it() {
    let mut nodes = full();
    nodes[0]["annotations"]["kilo.squat.ai/granularity"] = json!("location");
    let folder = declared("Full", &nodes);
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "warning[mixed-granularity]: west/n1");
    assert_eq!(run.code, 0);
    assert_eq!(verified(&folder, &[]).0, 0);
}

/// A cluster that is not ready yet must not block other changes.
#[test]
fn a_joining_cluster_is_only_a_warning() {
    let folder = declared("Location\n      state: Joining", &full());
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "warning[contradicted-declaration]: west");
    assert_eq!(run.code, 0);
    assert_eq!(verified(&folder, &[]).0, 0);
}

#[test]
fn levels_apply_to_it() {
    let folder = declared("Location", &full());
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules:\n  contradicted-declaration: { level: error, reason: x }\n",
    );
    assert_eq!(folder.run(&["render"]).code, 1);
    folder.edit("clustermesh.yaml", "level: error", "level: warning");
    assert_eq!(folder.run(&["validate"]).code, 0);
}
