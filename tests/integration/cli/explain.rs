//! `explain CLUSTER/NODE`: the gates of a node, against the Peers that are rendered.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Folder, MESH, location, node};
use crate::support::{assert_contains, clustermesh, project};

/// The explanation of a node as JSON, with the exit code.
fn explained(folder: &Path, node: &str) -> (i32, Value) {
    let run = clustermesh(folder, &["explain", node, "-o", "json"]);
    assert_eq!(run.stderr, "", "{node}");
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

/// The gates of a node in its first mesh that it does not pass, each with its rule.
fn failed(explained: &Value) -> Vec<(String, String)> {
    let mesh = &explained["meshes"][0];
    let gates = mesh["gates"].as_array().unwrap().iter();
    let peers = mesh["peers"].as_array().unwrap().iter();
    let gates = gates.map(|it| (it["name"].as_str().unwrap(), it));
    let all = gates.chain(peers.map(|it| ("Peers", it)));
    let failed = all.filter(|(_, it)| it["result"] == "failed");
    let rule = |it: &Value| it["rule"].as_str().unwrap_or_default().to_owned();
    failed.map(|(name, it)| (name.to_owned(), rule(it))).collect()
}

/// The allowed IPs of all Peers of a cluster in a rendered tree.
fn allowed_ips(folder: &Path, cluster: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("rendered").join(cluster)).unwrap();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for document in serde_yaml::Deserializer::from_str(&text) {
            let peer = Value::deserialize(document).unwrap();
            let ranges = peer["spec"]["allowedIPs"].as_array().into_iter().flatten();
            found.extend(ranges.map(|it| it.as_str().unwrap().to_owned()));
        }
    }
    found
}

#[test]
fn a_link_that_a_policy_refuses_is_named() {
    let folder = Folder::mesh();
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedClusters: [north] }\n";
    folder.write("policies/west.yaml", policy);
    let run = folder.run(&["explain", "east/n1"]);
    assert_contains(
        &run.stdout,
        "north; not west, as a policy refuses the link (policies/west.yaml:3:27)\n",
    );
}

#[test]
fn a_node_is_routed_where_a_rendered_peer_has_its_pods() {
    let mut held = BTreeMap::new();
    for example in ["quickstart", "hub-and-spokes", "multi-cloud-location", "external-peers"] {
        let folder = project().join("examples").join(example);
        for file in std::fs::read_dir(folder.join("snapshots")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let snapshot: Value = serde_json::from_str(&text).unwrap();
            let cluster = snapshot["cluster"].as_str().unwrap();
            for node in snapshot["nodes"].as_array().unwrap() {
                let name = format!("{cluster}/{}", node["name"].as_str().unwrap());
                let (code, explained) = explained(&folder, &name);
                let peers = explained["meshes"][0]["peers"].as_array().unwrap();
                let pods = node["podCIDRs"][0].as_str().unwrap_or("none").to_owned();
                for group in peers {
                    for target in group["clusters"].as_array().unwrap() {
                        let given = allowed_ips(&folder, target.as_str().unwrap()).contains(&pods);
                        assert_eq!(group["result"] == "passed", given, "{name} in {target}");
                        *held.entry(given).or_insert(0) += 1;
                    }
                }
                let is_routed = peers.iter().all(|it| it["result"] == "passed");
                let is_routed = is_routed && !peers.is_empty() && node["stale"] != true;
                assert_eq!(explained["routed"], is_routed, "{name}");
                assert_eq!(code == 0, explained["routed"] == true, "{name}");
            }
        }
    }
    assert!(40 < held[&true], "{held:?}");
}

#[test]
fn every_gate_shows_the_value_that_decides() {
    let folder = Folder::mesh();
    let run = folder.run(&["explain", "west/n2"]);
    insta::assert_snapshot!(run.stdout, @"
    west/n2 in mesh prod is routed: each of 2 linked clusters gets its pods.

    RESULT      OF    GATE           VALUE
    passed      mesh  state          Joined (mesh.yaml:13:7)
    passed      mesh  links          east, north
    not needed  mesh  nodeSelector   all nodes are selected
    passed      Kilo  heartbeat      the agent sends heartbeats
    passed      Kilo  key            kilo.squat.ai/key: ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICA= (snapshots/west.json:1:829)
    passed      Kilo  Kilo endpoint  kilo.squat.ai/endpoint: 198.18.113.32:51820 (snapshots/west.json:1:707)
    passed      Kilo  granularity    Full (snapshots/west.json:1:757)
    passed      Kilo  leader         the node leads itself
    passed      mesh  pod CIDR       10.3.2.0/24 (snapshots/west.json:1:999, mesh.yaml:14:18)
    passed      mesh  WireGuard IP   kilo.squat.ai/wireguard-ip: 10.103.0.2 (snapshots/west.json:1:947, mesh.yaml:15:22)
    passed      mesh  endpoint       198.18.113.32:51820 (ExternalIP) (snapshots/west.json:1:571, mesh.yaml:13:7)
    passed      mesh  unique         no other node has its name, key or pod CIDR
    passed      plan  Peers          east, north: prod--west--n2 with 10.3.2.0/24, 10.103.0.2/32
    ");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

/// What is wrong with a node of `west`, or with its entry, and the gates that the node does not pass.
#[test]
fn a_gate_that_a_node_does_not_pass_is_named_with_its_rule() {
    type Change = (&'static str, Value);
    type ChangedGates = (String, Change, &'static [(&'static str, &'static str)]);
    let annotation = |key: &str| format!("/annotations/kilo.squat.ai~1{key}");
    let missing = Value::Null;
    let cases: [ChangedGates; 9] = [
        (annotation("key"), ("", json!("")), &[("key", "missing-public-key")]),
        ("/stale".to_owned(), ("", json!(true)), &[("heartbeat", "stale-node")]),
        (
            annotation("granularity"),
            ("granularity: Full", json!("location")),
            &[("granularity", "mixed-granularity")],
        ),
        ("/addresses".to_owned(), ("", json!([])), &[("endpoint", "missing-endpoint")]),
        (
            "/podCIDRs/0".to_owned(),
            ("", json!("10.9.2.0/24")),
            &[("pod CIDR", "undeclared-pod-cidr")],
        ),
        (
            annotation("wireguard-ip"),
            ("", json!("10.9.0.2/24")),
            &[("WireGuard IP", "undeclared-wireguard-ip")],
        ),
        (
            "/podCIDRs/0".to_owned(),
            ("", json!("10.3.1.0/24")),
            &[("unique", "overlapping-node-pod-cidr")],
        ),
        (
            String::new(),
            ("nodeSelector: { zone: a }", missing.clone()),
            &[("nodeSelector", "node-not-selected")],
        ),
        (String::new(), ("state: Joining", missing), &[("state", ""), ("links", "")]),
    ];
    for (pointer, (field, value), expected) in cases {
        let folder = Folder::mesh();
        folder.write("mesh.yaml", format!("{MESH}      {field}\n"));
        let mut changed = node(3, 2);
        if let Some(part) = changed.pointer_mut(&pointer).filter(|_| !pointer.is_empty()) {
            *part = value;
        } else if let Some(key) = pointer.strip_prefix('/') {
            changed[key] = value;
        }
        if field.contains("nodeSelector") {
            let mut selected = node(3, 1);
            selected["labels"]["zone"] = json!("a");
            folder.keep("west", &[selected, changed]);
        } else {
            folder.keep("west", &[node(3, 1), changed]);
        }
        let (code, explained) = explained(folder.0.path(), "west/n2");
        let failed = failed(&explained);
        let gates = failed.iter().filter(|(name, _)| name != "Peers");
        let gates: Vec<(&str, &str)> = gates.map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(gates, expected, "{pointer}{field}");
        assert_eq!((code, explained["routed"].as_bool()), (1, Some(false)));
        // With Kilo's granularity `full`, the Peer of a silent node stays, as the node may be back.
        let has_peer = pointer == "/stale" || field == "granularity: Full";
        assert_eq!(explained["meshes"][0]["doubt"].is_string(), has_peer, "{pointer}{field}");
        let of_peers = failed.iter().find(|(name, _)| name == "Peers").map(|it| it.1.as_str());
        let rule = if has_peer || field == "state: Joining" { None } else { Some(expected[0].1) };
        assert_eq!(of_peers, rule, "{pointer}{field}");
    }
}

/// `verify` proves no path of such a node, so `explain` reports it although each cluster has a Peer for it.
#[test]
fn a_peer_of_a_node_that_kilo_does_not_count_routes_nothing() {
    let folder = Folder::mesh();
    let mut silent = node(3, 2);
    silent["stale"] = json!(true);
    let mut other = node(3, 3);
    other["annotations"]["kilo.squat.ai/granularity"] = json!("location");
    let mut bare = node(3, 4);
    bare["annotations"] = json!({});
    folder.keep("west", &[node(3, 1), node(3, 5), silent, other, bare]);
    let sentences = |node: &str| {
        let run = folder.run(&["explain", node]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        let is_sentence = |it: &&str| it.contains("routed") || it.starts_with("help:");
        let lines = run.stdout.lines().filter(is_sentence).map(str::to_owned);
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(sentences("west/n2"), @"
    west/n2 in mesh prod is not routed reliably (not ready: its Kilo agent stopped sending heartbeats [stale-node]): each of 2 linked clusters gets its pods.
    help: check that Kilo runs on it and that its clock is right
    ");
    insta::assert_snapshot!(sentences("west/n3"), @"
    west/n3 in mesh prod is not routed reliably (its agent has another granularity than most agents [mixed-granularity]): each of 2 linked clusters gets its pods.
    help: start Kilo on `n3` with `--mesh-granularity=full`
    ");
    insta::assert_snapshot!(sentences("west/n4"), @"
    west/n4 in mesh prod is not routed: none of 2 linked clusters gets its pods.
    help: check that the Kilo agent runs there, then run `clustermesh snapshot west`
    ");
    let run = folder.run(&["explain", "west/n4"]);
    for gate in ["heartbeat", "leader   "] {
        assert_contains(
            &run.stdout,
            &format!("not needed  Kilo  {gate}      no Kilo agent has written a key"),
        );
    }
}

#[test]
fn a_cluster_that_does_not_accept_the_pods_is_listed_by_itself() {
    let folder = Folder::mesh();
    folder.write(
        "mesh.yaml",
        MESH.replacen(
            "      wireguardCIDR: 10.101.0.0/24\n",
            "      wireguardCIDR: 10.101.0.0/24\n      acceptedNetworks: [10.2.0.0/16]\n",
            1,
        ),
    );
    let run = folder.run(&["explain", "west/n2"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(
        &run.stdout,
        "west/n2 in mesh prod is partly routed: 1 of 2 linked clusters get its pods.",
    );
    assert_contains(
        &run.stdout,
        "passed      plan  Peers          north: prod--west--n2 with 10.3.2.0/24",
    );
    assert_contains(&run.stdout, "FAILED      plan  Peers          east: 10.3.");
    assert_contains(&run.stdout, "[unaccepted-range]");
    assert_contains(&run.stdout, "to accept");
}

#[test]
fn a_member_of_a_location_needs_its_leader() {
    let folder = Folder::mesh();
    let mut nodes = location(vec![node(3, 1), node(3, 2)]);
    folder.keep("west", &nodes);
    let run = folder.run(&["explain", "west/n2"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_contains(&run.stdout, "passed      Kilo  leader         n1 leads 2 nodes");
    assert_contains(&run.stdout, "not needed  mesh  endpoint       n1 leads the location\n");
    nodes[0]["addresses"] = json!([]);
    folder.keep("west", &nodes);
    let run = folder.run(&["explain", "west/n2"]);
    assert_eq!(run.code, 1);
    assert_contains(
        &run.stdout,
        "FAILED      Kilo  leader         the leader of its location, `n1`, is left out",
    );
    assert_contains(&run.stdout, "help: run `clustermesh explain west/n1`");
}

#[test]
fn names_that_are_not_there_are_reported() {
    let folder = Folder::mesh();
    let refused = |name: &str| {
        let run = folder.run(&["explain", name]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        run.stderr
    };
    insta::assert_snapshot!(refused("west/n3"), @"error: the snapshot of west has no node `n3` (did you mean `n1`?); if the node is new, run `clustermesh snapshot west`");
    insta::assert_snapshot!(refused("wst/n1"), @"error: no rule contains `wst/n1`, and no mesh contains a cluster `wst`; did you mean `west`?");
    insta::assert_snapshot!(refused("west/\u{1b}[2J"), @r"error: the snapshot of west has no node `\u{1b}[2J`; if the node is new, run `clustermesh snapshot west`");
    insta::assert_snapshot!(refused("west/"), @"error: `west/` names no node; write `west/NODE`; the snapshot of west has `n1`, `n2`");
    // The name of a cluster alone means its nodes, and a name with a mistake no page about names.
    insta::assert_snapshot!(refused("west"), @"error: `west` names no node; write `west/NODE`; the snapshot of west has `n1`, `n2`");
    insta::assert_snapshot!(refused("n2"), @"error: `n2` is a node; write `east/n2` or `north/n2` or `west/n2`");
    insta::assert_snapshot!(refused("missing-endpoints"), @"error: unknown rule `missing-endpoints`; did you mean `missing-endpoint`?");
    // A text with a slash is searched for in the rules if no cluster is named like its first word.
    for folder in [&folder, &Folder::empty()] {
        let run = folder.run(&["explain", "address/length"]);
        assert_contains(&run.stdout, "invalid-wireguard-ip");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    }
    insta::assert_snapshot!(refused("and/or"), @"error: no rule contains `and/or`, and no mesh contains a cluster `and`; known clusters: `east`, `north`, `west`");
    folder.write("mesh.yaml", format!("{MESH}      state: Leaving\n"));
    insta::assert_snapshot!(refused("west/n1"), @"error: west leaves (`state: Leaving`), so no other cluster gets its nodes");
    // The name of an annotation is searched for in the rules.
    let run = Folder::empty().run(&["explain", "kilo.squat.ai/persistent-keepalive"]);
    assert_contains(&run.stdout, "missing-keepalive");
    let run = folder.run(&["explain", "missing-endpoint", "-o", "json"]);
    assert_eq!(run.stderr, "error: `--output` works only with CLUSTER/NODE\n");
}
