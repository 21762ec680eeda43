//! Clusters that join: what `verify` would find with them.

use std::fs;

use serde_json::{Value, json};

use super::verified;
use crate::cli::{Folder, node};
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

/// A rendered mesh that `north` joins.
fn joining() -> Folder {
    let folder = Folder::mesh();
    let name = "    - name: north\n";
    folder.edit("mesh.yaml", name, &format!("{name}      state: Joining\n"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

/// Adds an expectation about pods of `north` and `east`.
fn expect(folder: &Folder, expected: &str) {
    folder.write(
        "expectations.yaml",
        format!(
            "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - {{ name: talk, from: {{ cluster: north }}, to: {{ cluster: east }}, class: Pod, expect: {expected} }}
"
        ),
    );
}

/// The object of `verify --output json`, which must fit its schema.
fn object(folder: &Folder) -> Value {
    let (code, text) = verified(folder, &["--output", "json"]);
    assert_eq!(code, 0, "{text}");
    let object = serde_json::from_str(&text).unwrap();
    let schema = schema("kilo-clustermesh.io/verification_v1.json");
    assert_eq!(violations(&schema, &object), [""; 0], "{object:#}");
    object
}

#[test]
fn the_paths_of_a_cluster_that_joins_are_proved() {
    let folder = joining();
    let (code, text) = verified(&folder, &[]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM  TO    pod → pod
    east  west  4/4
    west  east  4/4

    All 8 declared paths work in both directions.

    With north joined:

    FROM   TO     pod → pod
    east   north  4/4
    north  east   4/4
    north  west   4/4
    west   north  4/4
    All declared paths work between 2 other pairs of clusters.

    All 24 declared paths work in both directions.
    ");
    assert_eq!(code, 0);
    let (_, text) = verified(&folder, &["--output", "markdown"]);
    assert_contains(&text, "\n#### With north joined\n\n| FROM | TO |");
    let object = object(&folder);
    assert_eq!(object["total"]["declared"], 8);
    let joining = &object["joining"];
    assert_eq!(joining["clusters"], json!([{ "mesh": "prod", "cluster": "north" }]));
    assert_eq!(joining["total"]["working"], 24);
    assert_eq!((&joining["holds"], &joining["findings"]), (&json!(true), &json!([])));
    assert_eq!(object["waiting"], Value::Null);
}

#[test]
fn what_a_cluster_would_break_is_shown_and_does_not_fail() {
    let folder = joining();
    expect(&folder, "Deny");
    let (code, text) = verified(&folder, &["--fail-on", "warning"]);
    assert_eq!(code, 0, "{text}");
    let (now, then) = text.split_once("With north joined:\n").unwrap();
    assert_contains(now, "The expectation is met.");
    insta::assert_snapshot!(then, @"

    FROM   TO     pod → pod
    east   north  4/4
    north  east   4/4
    north  west   4/4
    west   north  4/4
    All declared paths work between 2 other pairs of clusters.

    error[failed-expectation]: expectation `talk`: expected Deny, but 10.2.1.0 (a pod on north/n1) reaches 10.1.1.0 (a pod on east/n1) (4 of 4 pairs)
    help: remove the link, the node or the range from the mesh: Kilo has no firewall, and clustermesh does not read NetworkPolicies

    Problems were found. All 24 declared paths work in both directions. 0 of 1 expectation is met.
    ");
    let object = object(&folder);
    assert_eq!(object["holds"], true);
    assert_eq!(object["findings"], json!([]));
    assert_eq!(object["joining"]["holds"], false);
    assert_eq!(object["joining"]["expectations"][0]["holds"], false);
    assert_eq!(object["joining"]["findings"][0]["rule"], "failed-expectation");
    let (_, text) = verified(&folder, &["--output", "markdown"]);
    let (_, then) = text.split_once("#### With north joined\n").unwrap();
    assert!(then.starts_with("\n**1 error**\n"), "{then}");
}

#[test]
fn what_a_node_would_not_keep_is_shown() {
    let folder = joining();
    let mut strange = node(2, 1);
    strange["addresses"][1]["address"] = json!("2001:db8::1");
    folder.keep("north", &[strange, node(2, 2)]);
    let object = object(&folder);
    assert_eq!(object["joining"]["total"]["assumed"], 8);
    assert_eq!(object["joining"]["assumptions"][0]["premise"], "ipv6");
    let findings = object["joining"]["findings"].as_array().unwrap();
    let rules: Vec<&Value> = findings.iter().map(|it| &it["rule"]).collect();
    assert_eq!(rules, ["assumed-reach"; 2]);
    assert_eq!(findings[0]["places"], json!([]), "its files are not written yet");
}

#[test]
fn an_expectation_can_wait_for_a_cluster_that_joins() {
    let folder = joining();
    expect(&folder, "Reach");
    let (code, text) = verified(&folder, &[]);
    assert_eq!(code, 1, "{text}");
    let (now, then) = text.split_once("With north joined:\n").unwrap();
    assert_contains(now, "0 of 1 expectation is met");
    assert_contains(then, "The expectation is met.");
}

#[test]
fn a_cluster_without_a_snapshot_is_named() {
    let folder = joining();
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let (code, text) = verified(&folder, &[]);
    assert_eq!(code, 0);
    assert!(text.ends_with("\nNot verified, because a snapshot is missing: north.\n"), "{text}");
    let object = object(&folder);
    assert_eq!(object["waiting"], json!([{ "mesh": "prod", "cluster": "north" }]));
    assert_eq!(object["joining"], Value::Null);
}

/// The cause is named as in the proof after the cluster has joined, because `validate` does not report it before.
#[test]
fn a_cluster_that_nobody_can_dial_is_named_as_the_cause() {
    let folder = joining();
    for (number, cluster) in [(2, "north"), (3, "west")] {
        let wireguard = format!("wireguardCIDR: 10.10{number}.0.0/24\n");
        folder.edit(
            "mesh.yaml",
            &wireguard,
            &format!("{wireguard}      persistentKeepalive: 25\n"),
        );
        let nodes = [1, 2].map(|node_number| {
            let mut node = node(number, node_number);
            node["addresses"] = json!([]);
            node
        });
        folder.keep(cluster, &nodes);
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, before) = verified(&folder, &[]);
    let (_, then) = before.split_once("With north joined:").unwrap();
    let cause = "because of no-initiator of north";
    assert_contains(then, cause);
    folder.edit("mesh.yaml", "      state: Joining\n", "");
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, after) = verified(&folder, &[]);
    assert_contains(&after, cause);
}
