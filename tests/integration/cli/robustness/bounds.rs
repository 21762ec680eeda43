//! Bounds: what is listed of many mistakes of one kind, and what is tried of many losses. The rest is counted.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::{Folder, node};
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

/// A rendered mesh of this many clusters, each with one node.
fn clusters(count: u8) -> Folder {
    let folder = Folder::empty();
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n  clusters:\n".to_owned();
    for number in 1..=count {
        let _ = writeln!(
            mesh,
            "    - {{ name: c{number}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.{}.0.0/24 }}",
            100 + number
        );
        folder.keep(&format!("c{number}"), &[node(number, 1)]);
    }
    folder.write("mesh.yaml", mesh);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

/// A rendered mesh of two clusters with six nodes each in one location. All of them have a WireGuard address, as after many
/// elections.
fn one_location() -> Folder {
    let folder = Folder::empty();
    folder.write(
        "mesh.yaml",
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n  clusters:\n    \
         - { name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24 }\n    \
         - { name: west, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24 }\n",
    );
    for (cluster, number) in [("east", 1), ("west", 2)] {
        let nodes = (1..=6).map(|it| {
            let mut node = node(number, it);
            node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
            node["annotations"]["kilo.squat.ai/location"] = json!("a");
            // Only the leader has one.
            if it != 1 {
                node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
            }
            node
        });
        folder.keep(cluster, &nodes.collect::<Vec<_>>());
    }
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    folder
}

#[test]
fn unknown_names_beyond_those_that_are_listed_are_counted() {
    let folder = Folder::mesh();
    let links: Vec<String> = (0..600).map(|_| "[eats, wets]".to_owned()).collect();
    let topology = format!("spec:\n  topology: {{ mode: Links, links: [{}] }}\n", links.join(", "));
    folder.edit("mesh.yaml", "spec:\n", &topology);
    let run = folder.run(&["validate", "--output", "json"]);
    assert_eq!(run.code, 1);
    let report = run.json();
    let findings = report["findings"].as_array().unwrap();
    let unknown: Vec<&Value> =
        findings.iter().filter(|it| it["rule"] == "unknown-cluster").collect();
    assert_eq!(unknown.len(), 1001);
    let counted = "200 more findings of this rule in this file are not listed";
    assert!(unknown.iter().any(|it| it["message"] == counted), "{}", unknown[0]);
    assert_eq!(unknown.iter().filter(|it| it["help"] == "did you mean `east`?").count(), 500);
}

#[test]
fn a_group_lists_each_cluster_that_is_there_twice() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "spec:\n",
        "spec:\n  groups: { all: [east, west, east, est, east] }\n",
    );
    let text = folder.run(&["validate"]).stdout;
    assert_eq!(text.matches("duplicate cluster `east` in group `all`").count(), 2, "{text}");
    assert_contains(&text, "this mesh has no cluster `est`");
}

#[test]
fn files_of_no_cluster_beyond_those_that_are_listed_are_counted() {
    let folder = Folder::rendered();
    for number in 0..1003 {
        folder.write(&format!("snapshots/x{number}.json"), "{}");
    }
    let run = folder.run(&["validate", "--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = run.json();
    let findings = report["findings"].as_array().unwrap();
    let foreign = findings.iter().filter(|it| it["rule"] == "foreign-snapshot");
    assert_eq!(foreign.count(), 1001);
    let counted = "3 more findings of this rule in this folder are not listed";
    assert!(findings.iter().any(|it| it["message"] == counted), "{}", findings[0]);
}

/// Of the pairs of one cluster that fail alike, the first have failures of their own, and the others share one. The first
/// hundred of a verdict are listed, and the others, each of one path, are counted.
#[test]
fn failures_of_a_broken_mesh_are_bounded_and_complete() {
    let folder = clusters(20);
    for number in 1..=20 {
        let mut moved = node(number, 1);
        let endpoint = &mut moved["annotations"]["kilo.squat.ai/endpoint"];
        *endpoint = json!(endpoint.as_str().unwrap().replace(":51820", ":51999"));
        folder.keep(&format!("c{number}"), &[moved]);
    }
    let run = folder.run(&["verify", "--output", "json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let verification = run.json();
    let failures = verification["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 100);
    let findings = verification["findings"].as_array().unwrap().iter();
    assert_eq!(findings.filter(|it| it["rule"] == "no-initiator").count(), 100);
    let omitted = 20 * 17 - 100;
    assert_eq!(verification["omitted"], json!({ "failures": omitted, "findings": omitted }));
    let number = |it: &Value| it.as_u64().unwrap();
    let total = &verification["total"];
    let failing: u64 = failures.iter().map(|it| number(&it["pairs"])).sum();
    assert_eq!(failing + omitted, number(&total["declared"]) - number(&total["working"]));
    let between: usize = failures.iter().map(|it| it["between"].as_array().unwrap().len()).sum();
    assert_eq!(u64::try_from(between).unwrap() + omitted, 20 * 19);
    let shared = failures.iter().filter(|it| it["between"].as_array().unwrap().len() == 3);
    assert_eq!(shared.count(), 20);
    let schema = schema("kilo-clustermesh.io/verification_v1.json");
    assert_eq!(violations(&schema, &verification), Vec::<String>::new());
}

/// Which of the others is lost makes no difference for a location: its leader stays.
#[test]
fn only_the_loss_of_a_leader_is_proved() {
    let folder = one_location();
    let run = folder.run(&["outage", "--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let single = &run.json()["single"];
    assert_eq!((&single["parts"], &single["proved"]), (&json!(14), &json!(2)));
    let harmful = single["harmful"].as_array().unwrap();
    let parts: Vec<&str> = harmful.iter().map(|it| it["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["east/n1", "west/n1"]);
}

/// Each expectation is compared with every pair of clusters that it selects.
#[test]
fn expectations_take_steps_of_the_proof() {
    let folder = Folder::rendered();
    let expectations = (0..20).map(|it| {
        json!({ "name": format!("e{it}"), "from": { "nodeSelector": {} }, "to": { "nodeSelector": {} }, "expect": "Reach" })
    });
    let expectations = json!({
        "apiVersion": "kilo-clustermesh.io/v1", "kind": "Expectations", "spec": expectations.collect::<Vec<_>>(),
    });
    folder.write("expectations.yaml", expectations.to_string());
    let run = folder.run(&["verify", "--ceiling", "steps=44"]);
    assert_eq!(run.code, 1);
    let report = run.stdout + &run.stderr;
    assert_contains(&report, "45 steps of the proof exceed the ceiling of 44");
}
