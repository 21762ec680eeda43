//! Which snapshots are believed: guards, annotations that are carried over, stale marks, `--check`.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cli::{Folder, api_node};
use crate::support::{Run, assert_contains};

/// A mesh whose clusters have eight nodes each.
fn eight() -> Folder {
    let folder = Folder::mesh();
    keep(&folder, &nodes());
    folder
}

fn nodes() -> Vec<Value> {
    (1..=8).map(|number| api_node(1, number)).collect()
}

fn keep(folder: &Folder, nodes: &[Value]) {
    let run = snapshot(folder, nodes, &["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Takes the snapshot of `east` from a dump of these nodes.
fn snapshot(folder: &Folder, nodes: &[Value], flags: &[&str]) -> Run {
    let dump = json!({ "kind": "NodeList", "items": nodes });
    let arguments = [&["snapshot", "east", "--from", "-"], flags].concat();
    folder.run_with_input(&arguments, dump.to_string())
}

/// The messages about nodes that are refused; the old snapshot stays.
fn refusal(folder: &Folder, nodes: &[Value], flags: &[&str]) -> String {
    folder.refusal(1, |folder| snapshot(folder, nodes, flags))
}

/// Takes away what Kilo's agent writes, as it does when it stops.
fn strip(node: &mut Value) {
    let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.clear();
    annotations.insert("kilo.squat.ai/force-endpoint".to_owned(), json!("198.18.113.99:1"));
}

fn kept(folder: &Folder, index: usize) -> Value {
    let snapshot: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    snapshot["nodes"][index].clone()
}

#[test]
fn keeps_a_cluster_that_loses_more_than_a_quarter() {
    let folder = eight();
    let mut broken = nodes();
    for node in &mut broken[..3] {
        node["spec"] = json!({});
    }
    insta::assert_snapshot!(refusal(&folder, &broken, &[]), @"
    snapshots/east.json: 8 nodes, 5 usable, not written
    error[shrunk-snapshot]: east: mesh prod would lose 3 of 8 usable nodes (the limit is 25%); unusable: n1 (no pod CIDR is assigned), n2 (no pod CIDR is assigned), n3 (no pod CIDR is assigned); snapshots/east.json was kept
    help: correct what makes nodes unusable and run the command again with a new list; if the loss is intended, add `--accept east`
    ");
    let run = snapshot(&folder, &broken, &["--accept", "east"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"snapshots/east.json: 8 nodes, 5 usable, written (+0 ~3 -0 nodes)");
}

#[test]
fn lets_a_quarter_go() {
    let folder = eight();
    let mut broken = nodes();
    for node in &mut broken[..2] {
        node["spec"] = json!({});
    }
    let run = snapshot(&folder, &broken, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 8 nodes, 6 usable, written (+0 ~2 -0 nodes)
    notice[lost-nodes]: east: mesh prod loses 2 of 8 usable nodes; unusable: n1 (no pod CIDR is assigned), n2 (no pod CIDR is assigned)
    ");
}

/// No snapshot has times, and a list of last week has nodes of last week.
#[test]
fn an_old_list_that_loses_nodes_is_dated() {
    let folder = eight();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let seen = |nodes: &[Value], age: u64| {
        let mut nodes = nodes.to_vec();
        for node in &mut nodes {
            let time = (now - age).to_string();
            node["metadata"]["annotations"]["kilo.squat.ai/last-seen"] = json!(time);
        }
        nodes
    };
    let days = 3 * 86_400;
    // Of a list without losses, the age does not matter.
    let run = snapshot(&folder, &seen(&nodes(), days), &[]);
    insta::assert_snapshot!(run.stderr, @"snapshots/east.json: 8 nodes, 8 usable, unchanged");
    insta::assert_snapshot!(refusal(&folder, &seen(&nodes()[5..], days), &[]), @"
    snapshots/east.json: 3 nodes, 3 usable, not written
    error[shrunk-snapshot]: east: mesh prod would lose 5 of 8 usable nodes (the limit is 25%, where a node that is gone counts 50%); gone: n1, n2, n3, n4, n5; snapshots/east.json was kept; the list is old: most of its nodes were last seen 3 days ago
    help: if these nodes were removed from the cluster, add `--accept east`; if the list was incomplete, run the command again with a new list
    ");
    let run = snapshot(&folder, &seen(&nodes()[2..], days), &[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 6 nodes, 6 usable, written (+0 ~0 -2 nodes)
    notice[lost-nodes]: east: mesh prod loses 2 of 8 usable nodes; gone: n1, n2; the list is old: most of its nodes were last seen 3 days ago
    help: if the nodes still exist, list them again and run the command with the new list
    ");
    let run = snapshot(&folder, &seen(&nodes()[4..], 1_800), &[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 4 nodes, 4 usable, written (+0 ~0 -2 nodes)
    notice[lost-nodes]: east: mesh prod loses 2 of 6 usable nodes; gone: n3, n4
    ");
}

#[test]
fn counts_nodes_that_are_gone_by_half() {
    let folder = eight();
    insta::assert_snapshot!(refusal(&folder, &nodes()[5..], &[]), @"
    snapshots/east.json: 3 nodes, 3 usable, not written
    error[shrunk-snapshot]: east: mesh prod would lose 5 of 8 usable nodes (the limit is 25%, where a node that is gone counts 50%); gone: n1, n2, n3, n4, n5; snapshots/east.json was kept
    help: if these nodes were removed from the cluster, add `--accept east`; if the list was incomplete, run the command again with a new list
    ");
    let run = snapshot(&folder, &nodes()[4..], &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn keeps_a_cluster_that_loses_its_last_node() {
    let folder = eight();
    keep(&folder, &nodes()[..1]);
    let mut renamed = api_node(1, 2);
    renamed["metadata"]["name"] = json!("other");
    insta::assert_snapshot!(refusal(&folder, &[renamed], &[]), @"
    snapshots/east.json: 1 node, 1 usable, not written
    error[shrunk-snapshot]: east: mesh prod would lose its only usable node; gone: n1; snapshots/east.json was kept
    help: if the list is incomplete or of another cluster, run the command again with a list of `east`; if all of these nodes were removed or replaced, add `--accept east`
    ");
}

#[test]
fn takes_limits_from_the_config() {
    let folder = eight();
    let config = |limits: &str| {
        format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: {{ {limits} }}\n")
    };
    folder.write("clustermesh.yaml", config("nodes: 7"));
    let mut more = nodes();
    more.push(api_node(1, 9));
    insta::assert_snapshot!(refusal(&folder, &more, &[]), @"
    snapshots/east.json: 9 nodes, 9 usable, not written
    error[too-many-nodes]: east: 9 nodes exceed the limit of 7; snapshots/east.json was kept
    help: if the cluster is that large, add `--accept east`, or raise `limits.nodes` in the config
    ");
    let mut broken = nodes();
    broken[0]["spec"] = json!({});
    folder.write("clustermesh.yaml", config("lostPercent: 10, lostNodes: 1"));
    assert!(refusal(&folder, &broken, &[]).contains("would lose 1 of 8 usable nodes"));
    folder.write("clustermesh.yaml", config("lostPercent: 10, lostNodes: 2"));
    assert_eq!(snapshot(&folder, &broken, &[]).code, 0);
    folder.write("clustermesh.yaml", config("gonePercent: 0"));
    assert_eq!(snapshot(&folder, &nodes()[7..], &[]).code, 0);
}

#[test]
fn a_kept_snapshot_may_be_a_warning() {
    let folder = eight();
    let before = folder.touches(".");
    let run = snapshot(&folder, &nodes()[5..], &["--keep-going"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "warning[shrunk-snapshot]");
    let run = snapshot(&folder, &nodes()[5..], &["--keep-going", "--fail-on", "warning"]);
    assert_eq!(run.code, 1);
    assert_eq!(folder.touches("."), before);
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = snapshot(&folder, &[], &["--keep-going"]);
    assert_eq!(run.code, 1, "there is none to keep: {}", run.stderr);
}

#[test]
fn does_not_replace_what_it_cannot_read() {
    let folder = eight();
    let text = folder.read("snapshots/east.json");
    folder.write("snapshots/east.json", format!("<<<<<<< HEAD\n{text}"));
    insta::assert_snapshot!(refusal(&folder, &nodes(), &[]), @"
    snapshots/east.json: 8 nodes, 8 usable, not written
    error[unreadable-snapshot]: east: snapshots/east.json is not a snapshot, so losses cannot be determined: git's conflict markers: two versions of the file were not merged; it was kept
    help: restore the committed file, or add `--accept east` to replace it
    ");
    keep(&folder, &nodes());
    assert_eq!(folder.read("snapshots/east.json"), text);
}

#[test]
fn carries_over_what_a_stopping_agent_strips() {
    let folder = eight();
    let mut stripped = nodes();
    strip(&mut stripped[0]);
    let run = snapshot(&folder, &stripped, &[]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 8 nodes, 8 usable, 1 carried over, written (+0 ~1 -0 nodes)
    warning[carried-over]: east/n1: has no key at the moment (its Kilo agent may be restarting); the annotations of the last snapshot were kept
    help: if Kilo was removed from it permanently, add `--no-carry-over east`
    ");
    let node = kept(&folder, 0);
    assert_eq!(node["carriedOver"], true);
    assert_eq!(
        node["annotations"]["kilo.squat.ai/key"],
        api_node(1, 1)["metadata"]["annotations"]["kilo.squat.ai/key"]
    );
    assert_eq!(node["annotations"]["kilo.squat.ai/force-endpoint"], "198.18.113.99:1");
    // Again, and for as long as it takes.
    let run = snapshot(&folder, &stripped, &[]);
    assert_contains(&run.stderr, "1 carried over, unchanged");
    let run = snapshot(&folder, &nodes(), &[]);
    assert_eq!(run.stderr, "snapshots/east.json: 8 nodes, 8 usable, written (+0 ~1 -0 nodes)\n");
    assert!(kept(&folder, 0).get("carriedOver").is_none());
}

#[test]
fn carries_nothing_over_if_reported_so_or_if_it_is_another_node() {
    let folder = eight();
    let mut stripped = nodes();
    strip(&mut stripped[0]);
    let run = snapshot(&folder, &stripped, &["--no-carry-over", "east"]);
    assert_contains(&run.stderr, "8 nodes, 7 usable, written");
    let folder = eight();
    stripped[0]["metadata"]["uid"] = json!("another");
    let run = snapshot(&folder, &stripped, &[]);
    assert_contains(&run.stderr, "8 nodes, 7 usable, written");
}

/// A staging cluster has the names and ranges of the one that it was copied from.
#[test]
fn another_cluster_with_the_same_names_is_reported() {
    let folder = eight();
    let mut others = nodes();
    for (node, number) in others.iter_mut().zip(100_u8..) {
        node["metadata"]["uid"] = json!(format!("other-{number}"));
        node["metadata"]["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([number; 32]));
    }
    let run = snapshot(&folder, &others, &[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 8 nodes, 8 usable, written (+0 ~8 -0 nodes)
    warning[twin-cluster]: east: all 8 nodes have other UIDs and keys than before, so this may be another cluster with the same names
    help: check the context or file of `east`, and restore its snapshot with `git checkout HEAD -- snapshots/east.json`; if the nodes were replaced on purpose, keep the new snapshot
    ");
    assert_eq!(run.code, 0);
    // One node that is still the same shows that it is the same cluster.
    let folder = eight();
    others[3] = nodes().remove(3);
    assert!(!snapshot(&folder, &others, &[]).stderr.contains("twin-cluster"));
}

#[test]
fn a_restart_of_all_agents_changes_no_peer() {
    let folder = eight();
    assert_eq!(folder.run(&["render"]).code, 0);
    let mut stripped = nodes();
    for node in &mut stripped {
        node["metadata"]["annotations"] = json!({});
    }
    let run = snapshot(&folder, &stripped, &[]);
    assert_contains(&run.stderr, "8 usable, 8 carried over");
    let run = folder.run(&["render", "--check"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
}

#[test]
fn tells_of_stale_nodes() {
    let folder = eight();
    let mut seen = nodes();
    for (node, time) in seen.iter_mut().zip(1_763_600_000..) {
        node["metadata"]["annotations"]["kilo.squat.ai/last-seen"] = json!(time.to_string());
    }
    seen[3]["metadata"]["annotations"]["kilo.squat.ai/last-seen"] = json!("1763500000");
    let run = snapshot(&folder, &seen, &[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 8 nodes, 8 usable, 1 stale, written (+0 ~1 -0 nodes)
    notice[stale-node]: east/n4: marked stale: its Kilo agent was last seen 27 hours before the others
    help: check that Kilo runs on it and that its clock is right
    ");
    assert_eq!(kept(&folder, 3)["stale"], true);
}

#[test]
fn compares_by_node_and_field() {
    let folder = eight();
    let before = folder.touches(".");
    let run = snapshot(&folder, &nodes(), &["--check"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"snapshots/east.json: 8 nodes, 8 usable, up to date");
    let mut changed = nodes();
    changed[0]["metadata"]["labels"]["zone"] = json!("\u{1b}[2J");
    changed[1]["spec"] = json!({ "podCIDRs": ["10.1.99.0/24"] });
    strip(&mut changed[2]);
    changed[4] = api_node(1, 9);
    let run = snapshot(&folder, &changed, &["--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @r"
    snapshots/east.json: `n1`: labels[zone] added: `\u{1b}[2J`
    snapshots/east.json: `n2`: podCIDRs was `10.1.2.0/24`, is `10.1.99.0/24`
    snapshots/east.json: `n3`: annotations[kilo.squat.ai/force-endpoint] added: `198.18.113.99:1`
    snapshots/east.json: `n3`: annotations[kilo.squat.ai/persistent-keepalive] removed: `25`
    snapshots/east.json: `n3`: carriedOver added: `true`
    snapshots/east.json: `n5` removed
    snapshots/east.json: `n9` added
    ");
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 8 nodes, 8 usable, 1 carried over, differs
    warning[carried-over]: east/n3: has no key at the moment (its Kilo agent may be restarting); the annotations of the last snapshot were kept
    help: if Kilo was removed from it permanently, add `--no-carry-over east`

    notice[lost-nodes]: east: mesh prod loses 1 of 8 usable nodes; gone: n5
    ");
    assert_eq!(folder.touches("."), before);
}

#[test]
fn compares_what_is_missing_and_what_is_written_otherwise() {
    let folder = eight();
    let text = folder.read("snapshots/east.json");
    folder.write("snapshots/east.json", text.replace("  ", "\t"));
    let run = snapshot(&folder, &nodes(), &["--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"snapshots/east.json: formatted differently than `clustermesh snapshot` writes it");
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = snapshot(&folder, &nodes(), &["--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"snapshots/east.json: missing");
    assert!(!folder.path("snapshots/east.json").exists());
}

#[test]
fn without_a_mesh_keys_and_pod_cidrs_count() {
    let folder = Folder::empty();
    keep(&folder, &nodes());
    insta::assert_snapshot!(refusal(&folder, &nodes()[..1], &[]), @"
    snapshots/east.json: 1 node, not written
    error[shrunk-snapshot]: east: the cluster would lose 7 of 8 usable nodes (the limit is 25%, where a node that is gone counts 50%); gone: n2, n3, n4, n5, n6, n7, n8; snapshots/east.json was kept
    help: if these nodes were removed from the cluster, add `--accept east`; if the list was incomplete, run the command again with a new list
    ");
    let run = snapshot(&folder, &nodes()[..6], &[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 6 nodes, written (+0 ~0 -2 nodes)
    notice[lost-nodes]: east: the cluster loses 2 of 8 usable nodes; gone: n7, n8
    ");
    assert_eq!(run.code, 0);
}

#[test]
fn a_wrong_mesh_judges_nothing() {
    let folder = eight();
    folder.edit("mesh.yaml", "podCIDRs", "podCidrs");
    let stderr = refusal(&folder, &nodes()[..1], &[]);
    assert_contains(&stderr, "unknown field `podCidrs`");
}

#[test]
fn a_slip_in_the_name_of_a_cluster_is_reported() {
    let folder = eight();
    let dump = json!({ "kind": "NodeList", "items": nodes() }).to_string();
    let stderr =
        folder.refusal(2, |it| it.run_with_input(&["snapshot", "eest", "--from", "-"], &dump));
    insta::assert_snapshot!(stderr, @"error: --from: `eest` is not a cluster of any mesh; did you mean `east`?");
}

#[test]
fn what_was_accepted_once_is_not_asked_again() {
    let folder = eight();
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: { nodes: 7 }\n",
    );
    let run = snapshot(&folder, &nodes(), &[]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, "snapshots/east.json: 8 nodes, 8 usable, unchanged\n")
    );
    assert_eq!(snapshot(&folder, &nodes(), &["--check"]).code, 0);
}

#[test]
fn keeping_what_cannot_be_read_is_never_forgiven() {
    let folder = eight();
    folder.write("snapshots/east.json", "<<<<<<< HEAD");
    assert_eq!(snapshot(&folder, &nodes(), &["--keep-going"]).code, 1);
}

/// A list of the wrong cluster, which `--accept` does not allow.
#[test]
fn the_nodes_of_another_cluster_are_refused() {
    let folder = eight();
    let dump = json!({ "kind": "NodeList", "items": nodes() }).to_string();
    let twin = ["snapshot", "west", "--from", "-", "--accept", "west"];
    let run = folder.run_with_input(&twin, &dump);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/west.json: 8 nodes, 0 usable, not written
    error[twin-cluster]: west: the list has the nodes of `east`, such as `n1`; snapshots/west.json was kept
    help: check the context or file, and run the command again with a list of `west`; if the snapshot of `east` is the wrong one, remove that file first
    ");
    let lowered = [&twin[..], &["--keep-going"]].concat();
    assert_eq!(folder.run_with_input(&lowered, &dump).code, 0);
    // The wrong snapshot is that of the other cluster.
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    assert_eq!(folder.run_with_input(&twin, &dump).code, 0);
    assert_eq!(folder.run_with_input(&twin, &dump).code, 0);
}

/// `kubectl get node NAME` prints no list.
#[test]
fn a_single_node_is_not_a_list() {
    let folder = Folder::mesh();
    let mut node = api_node(1, 1);
    node["kind"] = json!("Node");
    folder.write("one.json", node.to_string());
    insta::assert_snapshot!(folder.run(&["snapshot", "--from", "east=one.json"]).stderr, @"
    snapshots/east.json: 1 node, 1 usable, written (+0 ~0 -1 nodes)
    notice[lost-nodes]: east: mesh prod loses 1 of 2 usable nodes; gone: n2
    help: if the cluster has more nodes, write the file with `kubectl get nodes -o json`: it is one Node
    ");
}
