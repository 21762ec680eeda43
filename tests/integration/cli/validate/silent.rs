//! Clusters that no other cluster can reach, and why.

use super::*;
use crate::support::assert_contains;

/// Returns what is reported of `east`, which is new.
fn silent(folder: &Folder) -> Vec<String> {
    // For people, it is counted at its cause.
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let meant = findings.filter(|it| it["rule"] == "silent-cluster" && it["cluster"] == "east");
    meant.map(|it| it["message"].as_str().unwrap().to_owned()).collect()
}

fn changed(change: impl Fn(&mut [Value])) -> Folder {
    let folder = Folder::mesh();
    let mut nodes = [node(1, 1), node(1, 2)];
    change(&mut nodes);
    folder.keep("east", &nodes);
    folder
}

fn annotate(nodes: &mut [Value], key: &str, value: &str) {
    for node in nodes {
        node["annotations"][format!("kilo.squat.ai/{key}")] = json!(value);
    }
}

#[track_caller]
fn assert_why(folder: &Folder, why: &str) {
    let found = silent(folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(&found[0], &format!("no other cluster can reach it: {why}"));
}

#[test]
fn a_cluster_whose_keys_others_have_says_so() {
    let folder = Folder::mesh();
    // East ranks last, and its nodes have the keys of west.
    let mesh = folder.read("mesh.yaml");
    let (head, entries) = mesh.split_once("    - name: east\n").unwrap();
    let (east, others) = entries.split_at(entries.find("    - name: north").unwrap());
    folder.write("mesh.yaml", format!("{head}{others}    - name: east\n{east}"));
    let mut nodes = [node(1, 1), node(1, 2)];
    for (node, number) in nodes.iter_mut().zip([1, 2]) {
        let other = self::node(3, number);
        node["annotations"]["kilo.squat.ai/key"] =
            other["annotations"]["kilo.squat.ai/key"].clone();
    }
    folder.keep("east", &nodes);
    assert_why(&folder, "no cluster gets its Peers (key-in-two-clusters, key-of-target-node)");
}

#[test]
fn a_cluster_whose_endpoints_are_in_the_ranges_of_others_says_so() {
    let folder = changed(|nodes| {
        annotate(&mut nodes[..1], "force-endpoint", "10.2.9.1:51820");
        annotate(&mut nodes[1..], "force-endpoint", "10.3.9.1:51820");
    });
    // Each of the others would have the endpoint of one Peer among its own pods.
    assert_why(&folder, "no cluster gets its Peers (looping-endpoint)");
    let folder = changed(|nodes| annotate(nodes, "force-endpoint", "10.1.9.1:51820"));
    assert_why(&folder, "no cluster gets its Peers (looping-endpoint)");
}

#[test]
fn a_cluster_that_nobody_accepts_says_so() {
    let folder = Folder::mesh();
    for range in ["10.102.0.0/24", "10.103.0.0/24"] {
        let entry = format!("wireguardCIDR: {range}\n");
        let limited = format!("{entry}      acceptedNetworks: [10.2.0.0/15]\n");
        folder.edit("mesh.yaml", &entry, &limited);
    }
    assert_why(&folder, "no cluster accepts the ranges of its nodes");
}

/// The declared granularity is contradicted too, but that is not the reason.
#[test]
fn nodes_without_endpoints_are_not_blamed_on_the_granularity() {
    let folder = changed(|nodes| {
        for node in nodes {
            node["addresses"] = json!([]);
        }
    });
    folder.edit("mesh.yaml", "- name: east", "- name: east\n      granularity: Location");
    let why = "all 2 nodes are left out (1 × leader-left-out, 1 × missing-endpoint)";
    assert_why(&folder, why);
}

/// Kilo runs there, with another granularity than the declared one, so that most nodes have no address in
/// its subnet.
#[test]
fn kilo_is_not_said_to_be_missing_where_it_runs() {
    let folder = changed(|nodes| {
        annotate(nodes, "granularity", "location");
        annotate(nodes, "wireguard-ip", "");
    });
    let run = folder.run(&["validate"]);
    assert_eq!(silent(&folder).len(), 1);
    assert!(!run.stdout.contains("check that Kilo runs in the cluster"), "{}", run.stdout);
}
