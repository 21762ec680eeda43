//! `snapshot --from`: what `kubectl get nodes` prints, kept.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{Folder, api_node};
use crate::support::assert_contains;

mod guard;
#[cfg(feature = "snapshot")]
mod live;
mod services;

const FROM_INPUT: [&str; 4] = ["snapshot", "east", "--from", "-"];

fn list(kind: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "items": [api_node(1, 2), api_node(1, 1)] })
}

/// The messages about a dump that it refuses; it writes nothing.
fn refusal(dump: &str) -> String {
    Folder::mesh().refusal(2, |it| it.run_with_input(&FROM_INPUT, dump))
}

#[test]
fn writes_one_way_to_say_it() {
    let folder = Folder::empty();
    folder.write("dump.json", json!({ "kind": "NodeList", "items": [api_node(1, 1)] }).to_string());
    let run = folder.run(&["snapshot", "east", "--from", "dump.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"snapshots/east.json: 1 node, written");
    insta::assert_snapshot!(folder.read("snapshots/east.json"), @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "cluster": "east",
      "kind": "NodeSnapshot",
      "nodes": [
        {
          "addresses": [
            {
              "address": "192.168.1.1",
              "type": "InternalIP"
            },
            {
              "address": "198.18.113.11",
              "type": "ExternalIP"
            }
          ],
          "annotations": {
            "kilo.squat.ai/endpoint": "198.18.113.11:51820",
            "kilo.squat.ai/granularity": "full",
            "kilo.squat.ai/internal-ip": "192.168.1.1/24",
            "kilo.squat.ai/key": "CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws=",
            "kilo.squat.ai/persistent-keepalive": "25",
            "kilo.squat.ai/wireguard-ip": "10.101.0.1/24"
          },
          "labels": {},
          "name": "n1",
          "podCIDRs": [
            "10.1.1.0/24"
          ],
          "uid": "1-1"
        }
      ]
    }
    "#);
}

/// Returns the plugin in the snapshot of a node with these annotations besides those of Kilo.
fn plugin(annotations: &Value) -> Value {
    let mut node = api_node(1, 1);
    for (key, value) in annotations.as_object().unwrap() {
        node["metadata"]["annotations"][key] = value.clone();
    }
    let folder = Folder::empty();
    let dump = json!({ "kind": "NodeList", "items": [node] }).to_string();
    assert_eq!(folder.run_with_input(&FROM_INPUT, &dump).code, 0);
    let snapshot: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    let kept = snapshot["nodes"][0]["annotations"].as_object().unwrap();
    assert!(kept.keys().all(|key| key.starts_with("kilo.squat.ai/")), "{kept:?}");
    assert_eq!(folder.run_with_input(&[&FROM_INPUT[..], &["--check"]].concat(), &dump).code, 0);
    snapshot["nodes"][0]["plugin"].clone()
}

#[test]
fn the_network_plugin_that_a_node_shows_is_kept() {
    let cidr = "network.cilium.io/ipv4-pod-cidr";
    let with_others =
        |value: &str| json!({ cidr: value, "network.cilium.io/ipv4-cilium-host": "x" });
    assert_eq!(
        plugin(&with_others("10.0.11.0/24")),
        json!({ "name": "Cilium", "podAddresses": ["10.0.11.0/24"] })
    );
    assert_eq!(plugin(&with_others("10.1.1.0/24")), json!({ "name": "Cilium" }));
    assert_eq!(plugin(&with_others("\u{1b}[31m/24")), json!({ "name": "Cilium" }));
    assert_eq!(plugin(&with_others(&"9".repeat(100_000))), json!({ "name": "Cilium" }));
    assert_eq!(
        plugin(&json!({ "flannel.alpha.coreos.com/backend-type": "wireguard" })),
        json!({ "name": "Flannel", "wireguard": true })
    );
    assert_eq!(plugin(&json!({ "example.org/plugin": "Cilium" })), Value::Null);
    let many = (0..2000).map(|it| (format!("projectcalico.org/{it}"), json!("x")));
    assert_eq!(plugin(&Value::Object(many.collect())), json!({ "name": "Calico" }));
}

/// A dump of `east` in which each node has two labels of Node Feature Discovery.
fn featured() -> String {
    let nodes = [1, 2].map(|number| {
        let mut node = api_node(1, number);
        node["metadata"]["labels"] = json!({
            "example.org/zone": "a",
            "feature.node.kubernetes.io/cpu-cpuid.AVX2": "true",
            "feature.node.kubernetes.io/network-sriov.capable": "true",
        });
        node
    });
    json!({ "kind": "NodeList", "items": nodes }).to_string()
}

#[test]
fn leaves_out_labels_that_change_nothing() {
    let folder = Folder::mesh();
    let read = || serde_json::from_str::<Value>(&folder.read("snapshots/east.json")).unwrap();
    let run = folder.run_with_input(&FROM_INPUT, featured());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let snapshot = read();
    assert_eq!(snapshot["droppedLabels"], json!(["feature.node.kubernetes.io/"]));
    assert_eq!(snapshot["nodes"][0]["labels"], json!({ "example.org/zone": "a" }));
    let dropped = folder.read("snapshots/east.json");

    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    let set = |labels: &str| {
        folder
            .write("clustermesh.yaml", format!("{config}snapshot: {{ dropLabels: [{labels}] }}\n"));
    };
    set("");
    let check = [&FROM_INPUT[..], &["--check"]].concat();
    let run = folder.run_with_input(&check, featured());
    insta::assert_snapshot!(run.stdout, @"
    snapshots/east.json: droppedLabels removed: `feature.node.kubernetes.io/`
    snapshots/east.json: `n1`: labels[feature.node.kubernetes.io/cpu-cpuid.AVX2] added: `true`
    snapshots/east.json: `n1`: labels[feature.node.kubernetes.io/network-sriov.capable] added: `true`
    snapshots/east.json: `n2`: labels[feature.node.kubernetes.io/cpu-cpuid.AVX2] added: `true`
    snapshots/east.json: `n2`: labels[feature.node.kubernetes.io/network-sriov.capable] added: `true`
    ");
    assert_eq!(folder.run_with_input(&FROM_INPUT, featured()).code, 0);
    let snapshot = read();
    assert_eq!(snapshot["droppedLabels"], Value::Null);
    assert_eq!(snapshot["nodes"][1]["labels"].as_object().unwrap().len(), 3);

    set("feature.node.kubernetes.io/, example.org/, absent/");
    let run = folder.run_with_input(&check, featured());
    insta::assert_snapshot!(run.stdout, @"snapshots/east.json: droppedLabels added: `example.org/, feature.node.kubernetes.io/`");
    assert_eq!(folder.run_with_input(&FROM_INPUT, featured()).code, 0);
    let both = json!(["example.org/", "feature.node.kubernetes.io/"]);
    assert_eq!(read()["droppedLabels"], both);
    folder.write("snapshots/east.json", dropped);
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["config"]);
    assert_contains(&run.stdout, "snapshot.dropLabels ");
}

/// A hostile node must not decide whether the mesh renders.
#[test]
fn keeps_the_labels_that_a_mesh_uses() {
    let folder = Folder::mesh();
    let key = "feature.node.kubernetes.io/cpu-cpuid.AVX2";
    let entry = "    - name: east\n";
    let selector = format!(
        "{entry}      nodeSelector: {{ matchExpressions: [{{ key: {key}, operator: Exists }}, \
         {{ key: feature.node.kubernetes.io/absent, operator: DoesNotExist }}] }}\n"
    );
    assert_eq!(folder.run_with_input(&FROM_INPUT, featured()).code, 0);
    folder.edit("mesh.yaml", entry, &selector);
    assert_eq!(folder.run(&["render"]).code, 1);
    let check = [&FROM_INPUT[..], &["--check"]].concat();
    let run = folder.run_with_input(&check, featured());
    insta::assert_snapshot!(run.stdout, @"
    snapshots/east.json: keptLabels added: `feature.node.kubernetes.io/absent, feature.node.kubernetes.io/cpu-cpuid.AVX2`
    snapshots/east.json: `n1`: labels[feature.node.kubernetes.io/cpu-cpuid.AVX2] added: `true`
    snapshots/east.json: `n2`: labels[feature.node.kubernetes.io/cpu-cpuid.AVX2] added: `true`
    ");
    assert_eq!(folder.run_with_input(&FROM_INPUT, featured()).code, 0);
    let snapshot: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    assert_eq!(snapshot["nodes"][0]["labels"], json!({ "example.org/zone": "a", key: "true" }));
    let dropped = json!(["feature.node.kubernetes.io/"]);
    assert_eq!(snapshot["droppedLabels"], dropped);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_topology_label_counts_only_where_there_are_locations() {
    for (granularity, code) in [("Full", 0), ("Location", 1), ("Cross", 1)] {
        let folder = Folder::mesh();
        let entry = "    - name: east\n";
        let with = format!("{entry}      granularity: {granularity}\n");
        folder.edit("mesh.yaml", entry, &with);
        let text = folder.read("snapshots/east.json");
        let mut snapshot: Value = serde_json::from_str(&text).unwrap();
        snapshot["droppedLabels"] = json!(["topology.kubernetes.io/"]);
        folder.write("snapshots/east.json", snapshot.to_string());
        let run = folder.run(&["validate", "--output", "concise"]);
        assert_eq!(
            run.stdout.contains("dropped-label"),
            code == 1,
            "{granularity}: {}",
            run.stdout
        );
    }
}

#[test]
fn a_selector_on_a_label_that_was_left_out_is_a_mistake() {
    let folder = Folder::mesh();
    assert_eq!(folder.run_with_input(&FROM_INPUT, featured()).code, 0);
    let selector = "      nodeSelector: { matchExpressions: [{ key: feature.node.kubernetes.io/x, operator: DoesNotExist }] }\n";
    let entry = "    - name: east\n";
    folder.edit("mesh.yaml", entry, &format!("{entry}{selector}"));
    for command in ["render", "validate"] {
        let run = folder.run(&[command]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(!folder.path("rendered").exists());
    }
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout, @"mesh.yaml:8:21: error[dropped-label] east: `nodeSelector` uses the label `feature.node.kubernetes.io/x`, but the snapshot leaves out the labels under `feature.node.kubernetes.io/`");
    let report = folder.run(&["validate", "-o", "json"]).json();
    insta::assert_snapshot!(report["findings"][0]["help"].as_str().unwrap(), @"run `clustermesh snapshot east`");
    // A config cannot make less of it.
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules: { dropped-label: { level: \"off\", reason: x } }\n");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "invalid-level");
}

#[test]
fn takes_every_form_of_a_dump() {
    let folder = Folder::empty();
    let (nodes, list) = (list("NodeList"), list("List"));
    folder.write("nodes.json", nodes.to_string());
    folder.write("list.json", serde_json::to_string_pretty(&list).unwrap());
    folder.write("nodes.yaml", serde_yaml::to_string(&nodes).unwrap());
    folder.write("list.yaml", format!("---\n{}", serde_yaml::to_string(&list).unwrap()));
    folder.write("bom.json", format!("\u{feff}{nodes}"));
    let said: Vec<String> = ["nodes.json", "list.json", "nodes.yaml", "list.yaml", "bom.json"]
        .iter()
        .map(|file| folder.run(&["snapshot", "east", "--from", file]).stderr)
        .collect();
    insta::assert_snapshot!(said.concat(), @"
    snapshots/east.json: 2 nodes, written
    snapshots/east.json: 2 nodes, unchanged
    snapshots/east.json: 2 nodes, unchanged
    snapshots/east.json: 2 nodes, unchanged
    snapshots/east.json: 2 nodes, unchanged
    ");
}

#[test]
fn takes_a_single_node() {
    let folder = Folder::empty();
    let node = serde_yaml::to_string(&api_node(1, 1)).unwrap();
    let run = folder.run_with_input(&FROM_INPUT, &node);
    assert_eq!((run.code, run.stderr.as_str()), (0, "snapshots/east.json: 1 node, written\n"));
}

#[test]
fn touches_nothing_that_is_the_same() {
    let folder = Folder::empty();
    let dump = list("List").to_string();
    folder.run_with_input(&FROM_INPUT, &dump);
    let before = folder.touches(".");
    let run = folder.run_with_input(&FROM_INPUT, &dump);
    assert_eq!((run.code, run.stderr.as_str()), (0, "snapshots/east.json: 2 nodes, unchanged\n"));
    assert_eq!(folder.touches("."), before);
}

#[test]
fn does_not_mind_what_changes_all_the_time() {
    let folder = Folder::empty();
    let mut dump = list("List");
    for (version, seen) in [("1", "1763600000"), ("2", "1763600030")] {
        for item in dump["items"].as_array_mut().unwrap() {
            item["metadata"]["resourceVersion"] = json!(version);
            item["metadata"]["annotations"]["kilo.squat.ai/last-seen"] = json!(seen);
            item["metadata"]["annotations"]["volumes.kubernetes.io/attached"] = json!(seen);
        }
        let run = folder.run_with_input(&FROM_INPUT, dump.to_string());
        assert_eq!(run.stderr.contains("unchanged"), version == "2", "{}", run.stderr);
    }
}

/// A dump of nodes that were last seen at these times.
fn seen_at(times: &[&str]) -> String {
    let nodes = (1..).zip(times).map(|(number, time)| {
        let mut node = api_node(1, number);
        node["metadata"]["annotations"]["kilo.squat.ai/last-seen"] = json!(time);
        node
    });
    json!({ "kind": "List", "items": nodes.collect::<Vec<_>>() }).to_string()
}

#[test]
fn counts_who_is_stale() {
    let folder = Folder::empty();
    let dump = seen_at(&["1763600301", "1763600000", "1763600302"]);
    let run = folder.run_with_input(&FROM_INPUT, &dump);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 3 nodes, 1 stale, written
    notice[stale-node]: east/n2: marked stale: its Kilo agent was last seen 5 minutes before the others
    help: check that Kilo runs on it and that its clock is right
    ");
}

/// The age of a dump is not known, and a clock that is an hour ahead is not rare.
#[test]
fn lets_no_node_of_an_old_dump_make_the_others_stale() {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let at = |age: u64| (now - age).to_string();
    let hour = [at(3600), at(3610), at(3620)];
    let hour: Vec<&str> = hour.iter().map(String::as_str).collect();
    for claim in [now, now - 60, now - 3200, now + 86_400, u64::MAX] {
        let claim = claim.to_string();
        let folder = Folder::empty();
        let dump = seen_at(&[hour.as_slice(), &[&claim]].concat());
        let run = folder.run_with_input(&FROM_INPUT, &dump);
        assert!(!folder.read("snapshots/east.json").contains("stale") || claim.len() == 20);
        assert!(!run.stderr.contains("east/n1"), "{}", run.stderr);
        assert_eq!(run.code, 0);
    }
    let long = at(360_000);
    let folder = Folder::empty();
    let dump = seen_at(&[hour.as_slice(), &[&long]].concat());
    let run = folder.run_with_input(&FROM_INPUT, &dump);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 4 nodes, 1 stale, written
    notice[stale-node]: east/n4: marked stale: its Kilo agent was last seen 4 days before the others
    help: check that Kilo runs on it and that its clock is right
    ");
}

/// Problems that stop a render do not affect the nodes of one cluster.
#[test]
fn needs_no_clusters_that_go_together() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.2.0.0/16", "10.1.128.0/17");
    assert_eq!(folder.run(&["render"]).code, 1);
    let dump = list("List").to_string();
    let run = folder.run_with_input(&FROM_INPUT, &dump);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    warning[overlapping-ranges]: 10.1.128.0/17 of `north` overlaps 10.1.0.0/16 of `east`
      --> mesh.yaml:11:18
       |
     8 |       podCIDRs: [10.1.0.0/16]
       |                  ----------- of `east`
    ...
    11 |       podCIDRs: [10.1.128.0/17]
       |                  ^^^^^^^^^^^^^ of `north`
    help: correct the range that is wrong or too wide; clusters whose nodes really use the same pod CIDR cannot be joined: create one of them again with another `--cluster-cidr`

    snapshots/east.json: 2 nodes, 2 usable, written
    ");
    let strict = [&FROM_INPUT[..], &["--fail-on", "warning"]].concat();
    assert_eq!(folder.run_with_input(&strict, &dump).code, 1);
    // Of a cluster that is called by no name, nothing can be judged.
    folder.edit("mesh.yaml", "name: north", "name: NORTH");
    let stderr = folder.refusal(1, |it| it.run_with_input(&FROM_INPUT, &dump));
    assert_contains(&stderr, "invalid-value");
}

#[test]
fn makes_what_a_render_reads() {
    let folder = Folder::rendered();
    folder.run_with_input(&FROM_INPUT, list("List").to_string());
    let run = folder.run(&["render", "--check"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
}

#[test]
fn leaves_nothing_else_behind() {
    let folder = Folder::empty();
    folder.run_with_input(&FROM_INPUT, list("List").to_string());
    folder.run_with_input(&FROM_INPUT, api_node(1, 1).to_string());
    let files: Vec<String> = folder.touches(".").into_keys().collect();
    assert_eq!(files, ["snapshots/east.json"]);
}

#[test]
fn refuses_what_is_no_list_of_nodes() {
    insta::assert_snapshot!(refusal("kind: Pod\n"), @"error: the standard input is not a usable node list: expected a NodeList, a List of Nodes or a Node, as printed by `kubectl get nodes -o json`, found the kind `Pod`");
    insta::assert_snapshot!(refusal("[]"), @"error: the standard input is not a usable node list: not the JSON or YAML that `kubectl get -o json` prints: error at line 1, column 1");
    insta::assert_snapshot!(refusal("{}"), @"error: the standard input is not a usable node list: expected a NodeList, a List of Nodes or a Node, as printed by `kubectl get nodes -o json`, found an object without a kind");
    insta::assert_snapshot!(refusal(r#"{"kind":"List","items":[{"kind":"Peer"}]}"#), @"error: the standard input is not a usable node list: item 0 of the list has kind `Peer`, expected Node");
}

#[test]
fn refuses_an_empty_list() {
    let folder = Folder::mesh();
    let before = folder.touches(".");
    let empty = r#"{"kind":"NodeList","items":[]}"#;
    let run = folder.run_with_input(&FROM_INPUT, empty);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 0 nodes, 0 usable, not written
    error[empty-snapshot]: east: the node list is empty; snapshots/east.json was kept
    help: the list is probably incomplete: run the command again with a new list; if the cluster has no node any more, add `--accept east`
    ");
    assert_eq!(folder.touches("."), before);
    let accepted = [FROM_INPUT.as_slice(), &["--accept", "east"]].concat();
    let run = folder.run_with_input(&accepted, empty);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, "snapshots/east.json: 0 nodes, 0 usable, written (+0 ~0 -2 nodes)\n")
    );
}

#[test]
fn refuses_nothing_at_all() {
    insta::assert_snapshot!(refusal(""), @"error: the standard input is empty; did the command that wrote it fail?");
}

#[test]
fn refuses_what_is_cut_off() {
    let dump = list("List").to_string();
    let report = refusal(&dump[..dump.len() / 2]);
    assert!(
        report.starts_with(
            "error: the standard input is not a usable node list: the file ends too early"
        ),
        "{report}"
    );
}

#[test]
fn refuses_what_kubectl_says_when_it_fails() {
    let report = refusal("error: You must be logged in to the server (Unauthorized)\n");
    assert_contains(&report, "is not a usable node list");
}

#[test]
fn refuses_a_page_of_a_list() {
    let mut dump = list("List");
    dump["metadata"] = json!({ "continue": "more" });
    insta::assert_snapshot!(refusal(&dump.to_string()), @"error: the standard input is not a usable node list: the list is incomplete (it has a continue token); list all nodes with `kubectl get nodes -o json`");
}

#[test]
fn refuses_two_nodes_of_one_name() {
    let dump = json!({ "kind": "List", "items": [api_node(1, 1), api_node(1, 1)] });
    insta::assert_snapshot!(refusal(&dump.to_string()), @"error: the standard input is not a usable node list: duplicate node name `n1`");
}

#[test]
fn refuses_a_node_without_a_name() {
    let mut dump = list("List");
    dump["items"][1]["metadata"]["name"] = json!("");
    insta::assert_snapshot!(refusal(&dump.to_string()), @"error: the standard input is not a usable node list: item 1 of the list has no name");
}

#[test]
fn writes_through_no_link() {
    let folder = Folder::mesh();
    folder.write("elsewhere.json", "mine");
    let path = folder.path("snapshots/east.json");
    fs::remove_file(&path).unwrap();
    symlink("../elsewhere.json", &path).unwrap();
    let accepted = [FROM_INPUT.as_slice(), &["--accept", "east"]].concat();
    let run = folder.run_with_input(&accepted, list("List").to_string());
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.ends_with("`snapshots/east.json`: a symbolic link exists in its place\n"),
        "{}",
        run.stderr
    );
    assert_eq!(folder.read("elsewhere.json"), "mine");
}

#[test]
fn keeps_the_old_one_if_it_cannot_write() {
    let folder = Folder::empty();
    folder.write("snapshots", "a file");
    let run = folder.run_with_input(&FROM_INPUT, list("List").to_string());
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error: cannot write `snapshots/east.json`"), "{}", run.stderr);
    assert_eq!(folder.read("snapshots"), "a file");
}

/// Several dumps are read in one run, written as for `init`.
#[test]
fn several_dumps_are_named_as_for_init() {
    let folder = Folder::mesh();
    for (number, name) in (1..).zip(["east", "north"]) {
        let items = [api_node(number, 1), api_node(number, 2)];
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        folder.write(&format!("{name}.json"), list.to_string());
    }
    let run = folder.run(&["snapshot", "--from=east=east.json", "--from=north=north.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 2 nodes, 2 usable, written
    snapshots/north.json: 2 nodes, 2 usable, written
    ");
    let one = folder.run(&["snapshot", "east", "--from=east.json", "--check"]);
    assert_eq!(one.code, 0, "{}{}", one.stdout, one.stderr);
}

/// Names and files are checked before anything is written.
#[test]
fn a_mistake_in_one_dump_writes_nothing() {
    let folder = Folder::mesh();
    let dump = |nodes: &[u8]| {
        let items: Vec<Value> = nodes.iter().map(|it| api_node(1, *it)).collect();
        json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
    };
    folder.write("east.json", dump(&[1, 2, 3]));
    folder.write("none.json", "{}");
    let failure = |arguments: &[&str]| {
        folder
            .refusal(2, |it| it.run(&[&["snapshot", "--from=east=east.json"], arguments].concat()))
    };
    let failures = [
        failure(&["--from=wset=east.json"]),
        failure(&["--from=unlike=none.json"]),
        failure(&["--from=west=none.json"]),
        failure(&["--from=west=absent.json"]),
        folder.refusal(2, |it| it.run(&["snapshot", "esat", "--from=east.json"])),
    ];
    insta::assert_snapshot!(failures.concat(), @"
    error: --from: `wset` is not a cluster of any mesh; did you mean `west`?
    error: --from: `unlike` is not a cluster of any mesh; `clustermesh init --from` adds a cluster
    error: `none.json` is not a usable node list: expected a NodeList, a List of Nodes or a Node, as printed by `kubectl get nodes -o json`, found an object without a kind
    error: cannot read `absent.json`: No such file or directory (os error 2)
    error: --from: `esat` is not a cluster of any mesh; did you mean `east`?
    ");
}
