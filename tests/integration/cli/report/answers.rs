//! The answers on a page: the verdict, the first step, and what is free.

use std::fs;

use serde_json::json;

use super::{example, part};
use crate::cli::{Folder, node};
use crate::support::{assert_contains, clustermesh};

#[test]
fn a_missing_snapshot_is_unknown_and_not_broken() {
    let folder = example("hub-and-spokes");
    fs::remove_file(folder.path("snapshots/tenant-bell.json")).unwrap();
    let page = folder.page(&[]);
    assert_contains(&part(&page, "verdict"), "Not all of it can be checked");
    let cut_off = part(&page, "cut-off");
    assert_contains(&cut_off, "No cluster is cut off.");
    assert_contains(&cut_off, "cannot be checked:\ntenant-bell");
}

#[test]
fn the_cause_of_a_lost_cluster_comes_before_the_guard() {
    let folder = Folder::rendered();
    let mut nodes = vec![node(1, 1), node(1, 2)];
    for node in &mut nodes {
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations.remove("kilo.squat.ai/key");
    }
    folder.keep("east", &nodes);
    let page = folder.page(&[]);
    let first = part(&page, "first-step");
    assert_contains(&first, "east: none of its 2 nodes takes part");
    assert!(!first.contains("--allow-empty"), "{first}");
    // No command that gives Peers up can be copied.
    assert!(!page.contains("<code class=\"command\">clustermesh render --allow-empty"));
}

#[test]
fn reasons_do_not_go_in_a_circle() {
    let folder = Folder::rendered();
    let mut nodes = vec![node(1, 1), node(1, 2)];
    for node in &mut nodes {
        node["annotations"]["kilo.squat.ai/key"] = json!("");
    }
    folder.keep("east", &nodes);
    let run = folder.run(&["render", "--allow-empty", "north/east", "--allow-empty", "west/east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let cut_off = part(&folder.page(&[]), "cut-off");
    assert_contains(&cut_off, "east: none of its 2 nodes takes part");
    assert!(!cut_off.contains("north:") && !cut_off.contains("west:"), "{cut_off}");
}

#[test]
fn a_range_in_which_nodes_have_addresses_is_not_free() {
    let page = example("quickstart").page(&[]);
    let free = part(&page, "free-ranges");
    assert_contains(&free, "192.168.0.0/16192.168.128.0/17, 192.168.64.0/18");
}

#[test]
fn clusters_of_separate_meshes_may_use_the_same_ranges() {
    let folder = Folder::rendered();
    let mesh = folder.read("mesh.yaml");
    let other = mesh.replace("name: prod", "name: test");
    let other = ["east", "north", "west"]
        .iter()
        .fold(other, |text, it| text.replace(&format!("name: {it}"), &format!("name: {it}-2")));
    folder.write("mesh.yaml", format!("{mesh}\n---\n{other}"));
    for (number, cluster) in (1..).zip(["east-2", "north-2", "west-2"]) {
        folder.keep(cluster, &[node(number, 1), node(number, 2)]);
    }
    folder.run(&["render"]);
    let page = folder.page(&[]);
    assert!(!page.contains("also declared by") && !page.contains("<h3>Overlaps</h3>"));
}

#[test]
fn a_location_is_a_word_of_the_shell() {
    let folder = Folder::rendered();
    let mut nodes = vec![node(1, 1), node(1, 2), node(1, 3)];
    for (node, location) in nodes.iter_mut().zip(["eu; touch x #/y", "eu; touch x #/y", "b"]) {
        node["annotations"]["kilo.squat.ai/location"] = json!(location);
    }
    folder.keep("east", &nodes);
    folder.edit(
        "mesh.yaml",
        "- name: east",
        "- name: east\n      serviceCIDR: 10.200.0.0/16\n      anchors: [{ ranges: [10.200.0.0/16], nodes: [n1, n2], count: 2 }]",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let page = folder.page(&[]);
    assert_contains(&page, "If location <strong>east:eu; touch x #&#x2f;y</strong> fails");
    assert_contains(&page, "clustermesh outage &#x27;east:eu; touch x #&#x2f;y&#x27;</code>");
}

#[test]
fn a_command_in_a_name_cannot_be_copied() {
    let folder = Folder::rendered();
    let mut nodes = vec![node(1, 1), node(1, 2), node(1, 3)];
    nodes[2]["name"] = json!("`kubectl delete ns kube-system`");
    nodes.rotate_right(1);
    folder.keep("east", &nodes);
    let page = folder.page(&[]);
    assert!(!page.contains("class=\"command\">kubectl delete"));
}

#[test]
fn only_a_page_is_replaced() {
    let folder = Folder::rendered();
    for path in ["mesh.yaml", "snapshots/east.json"] {
        let refusal = folder.refusal(2, |it| it.run(&["report", "--out", path]));
        assert_contains(&refusal, "exists and is not an HTML page");
    }
    let refusal = folder.refusal(2, |it| it.run(&["report", "--out", "snapshots"]));
    assert_contains(&refusal, "snapshots is a folder: name a file in it, such as `report.html`");
    for _ in 0..2 {
        let run = clustermesh(folder.0.path(), &["report", "--out", "report.html"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
}

#[test]
fn an_unknown_commit_is_the_first_step() {
    let folder = Folder::rendered();
    let page = folder.page(&["--against", "nowhere"]);
    assert_contains(&part(&page, "verdict"), "Needs attention");
    assert_contains(&part(&page, "first-step"), "not in a git repository");
}
