//! Causes: one mistake is one entry for a person, with what follows from it below it.

use super::*;
use crate::support::{assert_contains, copy, project};

mod consequences;
mod defaults;

/// A rendered mesh of two clusters, of which no node of `east` has an endpoint now.
fn unreachable() -> Folder {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        node["addresses"] = json!([]);
        node["annotations"].as_object_mut().unwrap().remove("kilo.squat.ai/endpoint");
        node
    });
    folder.keep("east", &nodes);
    folder
}

/// An example with its Peers.
fn rendered(example: &str) -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples").join(example), folder.0.path());
    folder.run(&["render"]);
    folder
}

fn lines(folder: &Folder) -> Vec<String> {
    let run = folder.run(&["validate", "--output", "concise"]);
    let found = run.stdout.lines().filter_map(|it| {
        let (severity, rest) = it.split_once('[')?;
        let severity = severity.rsplit(' ').next()?;
        let (rule, message) = rest.split_once("] ")?;
        let follows = message.rsplit_once(" (").filter(|it| it.1.contains("from it"));
        Some(format!("{severity} {rule} {}", follows.map_or("", |it| it.1)).trim().to_owned())
    });
    found.collect()
}

#[test]
fn losses_stand_below_the_nodes_that_cause_them() {
    let folder = unreachable();
    assert_eq!(
        lines(&folder),
        [
            "error missing-endpoint 3 other findings follow from it: errors[empty-target, lost-source])"
        ]
    );
    let run = folder.run(&["validate"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "1 error\n"));
    assert_contains(&run.stdout, "east: 2 nodes left out: no endpoint");
    assert_contains(&run.stdout, "--allow-empty");
}

/// Folding is for people: programs get each finding with its own level.
#[test]
fn programs_get_every_finding_with_its_level() {
    let folder = unreachable();
    let report = folder.run(&["validate", "--output", "json"]).json();
    assert_eq!(report["summary"], json!({ "errors": 2, "warnings": 2, "notices": 0 }));
    let findings = report["findings"].as_array().unwrap();
    for finding in findings.iter().filter(|it| it["rule"] != "missing-endpoint") {
        assert_eq!(finding["cause"], json!({ "rule": "missing-endpoint", "cluster": "east" }));
    }
    let log = folder.run(&["validate", "--output", "sarif"]).json();
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    let mut levels: Vec<String> =
        results.map(|it| format!("{} {}", it["ruleId"], it["level"]).replace('"', "")).collect();
    levels.sort();
    assert_eq!(
        levels,
        [
            "empty-target error",
            "lost-source error",
            "missing-endpoint warning",
            "silent-cluster warning"
        ]
    );
}

#[test]
fn a_cause_that_is_not_reported_swallows_nothing() {
    let folder = unreachable();
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    for entry in [
        "rules: { missing-endpoint: { level: off, reason: test } }\n",
        "ignore: [{ rule: missing-endpoint, cluster: east, reason: test }]\n",
    ] {
        folder.write("clustermesh.yaml", format!("{config}{entry}"));
        let mut found = lines(&folder);
        found.sort();
        assert_eq!(
            found,
            [
                "error empty-target",
                "error silent-cluster 1 other finding follows from it: error[lost-source])"
            ],
            "{entry}"
        );
    }
}

/// Below a finding of another rule, a help would look like the help of that one alone.
#[test]
fn findings_of_two_rules_never_share_a_help() {
    let folder = Folder::mesh();
    let [mut keyless, mut wrong] = [1, 2].map(|number| node(1, number));
    keyless["annotations"]["kilo.squat.ai/key"] = json!("");
    wrong["annotations"]["kilo.squat.ai/key"] = json!("nonsense");
    folder.keep("east", &[keyless, wrong, node(1, 3)]);
    let run = folder.run(&["validate"]);
    let rules = run.stdout.lines().filter_map(|it| {
        let is_title = it.starts_with("warning[") || it.starts_with("help: check that the Kilo");
        is_title.then(|| it.split([']', ':']).next().unwrap_or_default())
    });
    assert_eq!(
        rules.collect::<Vec<_>>(),
        ["warning[missing-public-key", "help", "warning[invalid-public-key", "help"],
        "{}",
        run.stdout
    );
}

/// The tree is up to date, so no render helps.
#[test]
fn a_lost_path_names_the_finding_that_takes_its_range_out() {
    let folder = Folder::mesh();
    let line = "      wireguardCIDR: 10.101.0.0/24\n";
    folder.edit("mesh.yaml", line, &format!("{line}      additionalCIDRs: [198.18.113.0/28]\n"));
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(lines(&folder), ["warning looping-endpoint"]);
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(&run.stdout, "error[no-route]: ");
    assert_contains(&run.stdout, ", because of looping-endpoint of east; ");
    assert_contains(
        &run.stdout,
        "help: remove 198.18.113.0/28 from the entry of `east`, or write ranges that do not contain the endpoints of \
         `east`",
    );
    assert!(!run.stdout.contains("clustermesh render"), "{}", run.stdout);
    let report = folder.run(&["verify", "--output", "json"]).json();
    let cause = json!({ "rule": "looping-endpoint", "cluster": "east" });
    assert_eq!(report["findings"][0]["cause"], cause);
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    let off = "rules: { looping-endpoint: { level: off, reason: test } }\n";
    folder.write("clustermesh.yaml", format!("{config}{off}"));
    let report = folder.run(&["verify", "--output", "json"]).json();
    assert_eq!(report["findings"][0]["cause"], json!(null));
}

/// A snapshot that shows another cluster makes all of its ranges and keys wrong.
#[test]
fn a_snapshot_of_another_cluster_is_one_entry() {
    let folder = Folder::rendered();
    let east = folder.read("snapshots/east.json");
    let west = east.replace("\"cluster\":\"east\"", "\"cluster\":\"west\"");
    folder.write("snapshots/west.json", west);
    assert_eq!(
        lines(&folder),
        ["error node-in-two-clusters findings about 4 nodes and 6 other findings follow from it: \
             errors[contradicted-declaration, lost-source])"]
    );
    let run = folder.run(&["validate"]);
    assert!(!run.stdout.contains("correct `podCIDRs`"), "{}", run.stdout);
    // What only the entry has does not follow from nodes.
    let mtu = "    - name: west\n      mtu: { underlay: 1460, pods: 1420 }\n";
    folder.edit("mesh.yaml", "    - name: west\n", mtu);
    assert_eq!(lines(&folder)[1..], ["warning exceeded-mtu"]);
    folder.edit("mesh.yaml", mtu, "    - name: west\n");
    // Of a list with one node of the other cluster, only this node is wrong.
    folder.keep("west", &[node(1, 1), node(3, 2)]);
    assert_eq!(
        lines(&folder),
        ["warning node-in-two-clusters findings about 2 nodes follow from it)"]
    );
}

/// One key in two clusters, and the ranges that move because of it.
#[test]
fn a_key_in_two_clusters_is_one_entry() {
    let folder = Folder::mesh();
    let line = "      wireguardCIDR: 10.101.0.0/24\n";
    folder.edit("mesh.yaml", line, &format!("{line}      serviceCIDR: 10.201.0.0/16\n"));
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    let mut twin = node(1, 1);
    twin["annotations"]["kilo.squat.ai/key"] =
        node(3, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("east", &[twin, node(1, 2)]);
    assert_eq!(
        lines(&folder),
        ["warning key-of-target-node findings about 1 node and 1 other finding follow from it)"]
    );
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap();
    let moved = findings.iter().find(|it| it["rule"] == "moved-anchor").unwrap();
    assert_eq!(moved["help"], json!(null));
    assert_contains(moved["message"].as_str().unwrap(), "because the Peer that carries it now");
}

#[test]
fn a_range_that_is_too_wide_is_one_entry() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "podCIDRs: [10.1.0.0/16]", "podCIDRs: [10.0.0.0/8]");
    assert_eq!(
        lines(&folder),
        ["error overlapping-ranges 3 other findings follow from it)"],
        "{}",
        folder.run(&["validate"]).stdout
    );
}

#[test]
fn a_cluster_that_leaves_is_one_entry() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", "    - name: west\n", "    - name: west\n      state: Leaving\n");
    assert_eq!(lines(&folder), ["notice leaving-cluster 1 other finding follows from it)"]);
    let run = folder.run(&["validate"]);
    for cluster in ["east", "west"] {
        assert_contains(&run.stdout, &format!("--context {cluster} delete peers"));
    }
}

#[test]
fn a_renamed_cluster_is_one_entry() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: west", "- name: paris");
    assert_eq!(lines(&folder), ["error missing-snapshot 1 other finding follows from it)"]);
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "if `west` was renamed to `paris`, run `git mv snapshots/west.json snapshots/paris.json`",
    );
    fs::rename(folder.path("snapshots/west.json"), folder.path("snapshots/paris.json")).unwrap();
    folder.edit("snapshots/paris.json", "\"cluster\":\"west\"", "\"cluster\":\"paris\"");
    let found = lines(&folder);
    assert!(!found.iter().any(|it| it.contains("snapshot")), "{found:?}");
}

/// Only packets to or from an overlapping range fail because of it.
#[test]
fn overlapping_ranges_cause_what_fails_in_them_and_nothing_else() {
    let folder = Folder::mesh();
    assert_eq!(folder.run(&["render"]).code, 0);
    let subnet = "wireguardCIDR: 10.102.0.0/24";
    let range = format!("{subnet}\n      additionalCIDRs: [10.3.0.0/16]");
    folder.edit("mesh.yaml", subnet, &range);
    folder.edit("rendered/west/prod--east.yaml", "10.1.1.0/24", "10.9.1.0/24");
    let report = folder.run(&["verify", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap();
    let cause_of = |text: &str| {
        let mut all = findings.iter();
        let meant = |it: &&Value| it["message"].as_str().unwrap().contains(text);
        let found = all.find(meant).unwrap_or_else(|| panic!("{text}: {findings:#?}"));
        found["cause"]["rule"].clone()
    };
    assert_eq!(cause_of("(east → north)"), "overlapping-ranges");
    assert_eq!(cause_of("(west → east)"), Value::Null);
}

/// A declared range that was mistyped overlaps another cluster's, and no node of its cluster is in it.
#[test]
fn a_mistyped_range_is_one_entry_at_its_line() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.2.0.0/16");
    assert_eq!(lines(&folder).len(), 1, "{:?}", lines(&folder));
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "error[contradicted-declaration]: west: ");
    assert_contains(&run.stdout, "no node has an address in it");
    let report = folder.run(&["validate", "--output", "json"]).json();
    let overlaps: Vec<&Value> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["rule"] == "overlapping-ranges")
        .collect();
    assert_eq!(overlaps.len(), 1, "{report}");
    assert_eq!(overlaps[0]["cause"]["rule"], "contradicted-declaration");
}

#[test]
fn a_misspelled_cluster_in_several_expectations_is_one_entry() {
    let folder = Folder::rendered();
    let spec = "spec:\n- { from: { cluster: east }, to: { cluster: wets }, expect: Reach }\n- { from: { cluster: wets }, to: { cluster: east }, expect: Reach }\n";
    folder.write(
        "expectations.yaml",
        format!("apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\n{spec}"),
    );
    for command in ["validate", "verify"] {
        let run = folder.run(&[command]);
        assert_contains(&run.stdout, "2 expectations: no mesh has a cluster `wets`");
        assert_eq!((run.code, run.stdout.matches("did you mean").count()), (1, 1));
    }
}

/// A mistake that prevents a plan leaves open what external peers have.
#[test]
fn expectations_about_external_peers_follow_from_the_mistake() {
    let folder = rendered("external-peers");
    folder.edit("mesh.yaml", "ranges: [10.200.0.5/32]", "ranges: [10.42.9.5/32]");
    let run = folder.run(&["verify"]);
    assert_eq!(run.stdout.matches("error[").count(), 1, "{}", run.stdout);
    assert!(!run.stdout.contains("outside-peer"), "{}", run.stdout);
}

#[test]
fn ranges_of_one_cluster_that_it_does_not_declare_are_one_entry_for_each_target() {
    let folder = rendered("multi-cloud-location");
    folder.turn_off("outdated-tree");
    folder.edit("mesh.yaml", "        - 10.31.0.0/16 # VPC in us-east-1\n", "");
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.stdout.matches("unpromised-reach").count(), 2, "{}", run.stdout);
}

/// A flat entry that lacks a range has others in which no node is, such as that of the Services.
#[test]
fn a_range_that_a_flat_entry_lacks_is_named() {
    let folder = rendered("hub-and-spokes");
    folder.edit("mesh.yaml", "        - 10.104.0.0/16\n", "");
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "does not contain them");
    assert_contains(
        &run.stdout,
        "otherwise add 10.104.0.0/16 to `allowedNetworks` of `tenant-dijkstra`",
    );
    // Another cluster has the range that was mistyped.
    folder.edit(
        "mesh.yaml",
        "        - 10.114.0.0/16\n",
        "        - 10.103.0.0/16\n        - 10.114.0.0/16\n",
    );
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "write 10.104.0.0/16 instead of 10.103.0.0/16 in `allowedNetworks`",
    );
}
