//! `annotate`: which annotations and labels resolve findings, and that no node chooses them.

use std::process::Command;

use serde::Deserialize as _;

use super::*;
use crate::support::{assert_contains, clustermesh, project};

/// A `kubectl` that prints its words, with a character after each word and one after each command.
const SHIM: &str = "kubectl() { printf '%s\\037' \"$@\"; printf '\\036'; }\n";

/// Returns the words of each command that a shell runs.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-euc", &(SHIM.to_owned() + script)]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let commands = text.split_terminator('\u{1e}');
    let words = commands.map(|it| it.split_terminator('\u{1f}').map(str::to_owned));
    words.map(Iterator::collect).collect()
}

/// Changes the nodes of a snapshot as `kubectl` would.
fn follow(folder: &Folder, cluster: &str, script: &str) {
    let file = format!("snapshots/{cluster}.json");
    let mut snapshot: Value = serde_json::from_str(&folder.read(&file)).unwrap();
    for words in commands(script) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["--context", context, verb, "node", rest @ .., "--overwrite", change] = &words[..]
        else {
            panic!("{words:?}");
        };
        assert_eq!(*context, cluster);
        let field = match *verb {
            "annotate" => "annotations",
            "label" => "labels",
            other => panic!("{other}"),
        };
        for node in snapshot["nodes"].as_array_mut().unwrap() {
            if rest != ["--all"] && !rest.contains(&node["name"].as_str().unwrap()) {
                continue;
            }
            let fields = node[field].as_object_mut().unwrap();
            match change.split_once('=') {
                Some((key, value)) => drop(fields.insert(key.to_owned(), json!(value))),
                None => drop(fields.remove(change.strip_suffix('-').unwrap()).unwrap()),
            }
        }
    }
    folder.write(&file, snapshot.to_string());
}

/// Returns the rules of the findings about a cluster, or about no cluster.
fn rules(folder: &Folder, cluster: &str) -> BTreeSet<String> {
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let own = findings.filter(|it| it["cluster"].is_null() || it["cluster"] == cluster);
    own.map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
}

/// A mesh in which `change` was made to each node of `east`; its first node and its second one are different only in that.
fn changed(fields: &str, change: impl Fn(usize, &mut Value)) -> Folder {
    let folder = Folder::mesh();
    let mut nodes = vec![node(1, 1), node(1, 2)];
    for (index, node) in nodes.iter_mut().enumerate() {
        change(index, node);
    }
    folder.keep("east", &nodes);
    folder.edit("mesh.yaml", NORTH, &format!("{fields}{NORTH}"));
    folder
}

/// Checks that a finding ends if a person follows the commands literally.
fn resolves(rule: &str, folder: &Folder, arguments: &[&str]) -> String {
    assert!(rules(folder, "east").contains(rule), "{rule}: {:?}", rules(folder, "east"));
    let run = folder.run(&[&["annotate", "east"], arguments].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "run `clustermesh snapshot east`");
    // A person removes the comments.
    follow(folder, "east", &run.stdout.replace("# kubectl", "kubectl"));
    let left = rules(folder, "east");
    assert!(!left.contains(rule), "{rule}: {left:?}\n{}", run.stdout);
    run.stdout
}

fn annotation(node: &mut Value, key: &str, value: Value) {
    let annotations = node["annotations"].as_object_mut().unwrap();
    let key = format!("kilo.squat.ai/{key}");
    match value {
        Value::Null => drop(annotations.remove(&key)),
        value => drop(annotations.insert(key, value)),
    }
}

/// Nodes of one location, the first of which leads.
fn located(index: usize, node: &mut Value) {
    annotation(node, "granularity", json!("location"));
    if 0 < index {
        annotation(node, "wireguard-ip", json!(""));
    }
}

#[test]
fn keepalives_end_the_pause_after_a_change() {
    let silent = |_: usize, node: &mut Value| annotation(node, "persistent-keepalive", Value::Null);
    insta::assert_snapshot!(resolves("pause-after-change", &changed("", silent), &[]), @"
    # pause-after-change
    kubectl --context east annotate node n1 n2 --overwrite kilo.squat.ai/persistent-keepalive=25
    ");
    let nat = |_: usize, node: &mut Value| {
        annotation(node, "persistent-keepalive", Value::Null);
        node["addresses"] = json!([]);
    };
    let fields = "      persistentKeepalive: 25\n";
    insta::assert_snapshot!(resolves("roaming-node", &changed(fields, nat), &["--keepalive", "10"]), @"
    # roaming-node
    kubectl --context east annotate node n1 n2 --overwrite kilo.squat.ai/persistent-keepalive=10
    ");
    // Only leaders need it now, but each node may lead.
    let silent = |index: usize, node: &mut Value| {
        located(index, node);
        annotation(node, "persistent-keepalive", Value::Null);
    };
    insta::assert_snapshot!(resolves("pause-after-change", &changed("", silent), &[]), @"
    # pause-after-change
    kubectl --context east annotate node n1 n2 --overwrite kilo.squat.ai/persistent-keepalive=25
    ");
}

#[test]
fn endpoints_come_from_a_person() {
    let hidden = |_: usize, node: &mut Value| node["addresses"] = json!([]);
    let folder = changed("", hidden);
    insta::assert_snapshot!(folder.run(&["annotate", "east"]).stdout, @"
    # missing-endpoint (check, complete, and remove the #)
    # kubectl --context east annotate node n1 --overwrite kilo.squat.ai/clustermesh-endpoint=ADDRESS:51820
    # kubectl --context east annotate node n2 --overwrite kilo.squat.ai/clustermesh-endpoint=ADDRESS:51820
    ");
    let given = ["--endpoint", "n1=198.18.7.1:51820", "--endpoint", "n2=[2a00::7]:4500"];
    insta::assert_snapshot!(resolves("missing-endpoint", &folder, &given), @"
    # missing-endpoint
    kubectl --context east annotate node n1 --overwrite kilo.squat.ai/clustermesh-endpoint=198.18.7.1:51820
    kubectl --context east annotate node n2 --overwrite kilo.squat.ai/clustermesh-endpoint='[2a00::7]:4500'
    ");
    let malformed =
        |_: usize, node: &mut Value| annotation(node, "clustermesh-endpoint", json!("$(x):1"));
    let given = ["--endpoint", "n1=198.18.7.1:51820", "--endpoint", "n2=198.18.7.2:51820"];
    resolves("invalid-endpoint", &changed("", malformed), &given);
    let private = |index: usize, node: &mut Value| {
        annotation(node, "clustermesh-endpoint", json!(format!("10.77.0.{index}:51820")));
    };
    resolves("private-endpoint", &changed("", private), &given);
    let shared =
        |_: usize, node: &mut Value| annotation(node, "force-endpoint", json!("198.18.7.7:51820"));
    resolves("shared-endpoint", &changed("", shared), &given);
}

#[test]
fn locations_and_leaders_are_mended() {
    let regions = |index: usize, node: &mut Value| {
        located(0, node);
        if index == 0 {
            annotation(node, "location", json!("oslo"));
        }
    };
    let given = ["--location", "n2=bergen"];
    insta::assert_snapshot!(resolves("missing-location", &changed("", regions), &given), @"
    # missing-location
    kubectl --context east annotate node n2 --overwrite kilo.squat.ai/location=bergen
    ");
    let labelled = |index: usize, node: &mut Value| {
        located(0, node);
        if index == 0 {
            node["labels"]["example.org/rack"] = json!("oslo");
        }
    };
    let fields = "      topologyLabel: example.org/rack\n";
    insta::assert_snapshot!(resolves("missing-location", &changed(fields, labelled), &given), @"
    # missing-location
    kubectl --context east label node n2 --overwrite example.org/rack=bergen
    ");
    let hidden = |index: usize, node: &mut Value| {
        located(0, node);
        node["labels"]["topology.kubernetes.io/region"] = json!(format!("r{index}"));
        if index == 1 {
            annotation(node, "location", json!(""));
        }
    };
    insta::assert_snapshot!(resolves("empty-location", &changed("", hidden), &[]), @"
    # empty-location
    kubectl --context east annotate node n2 --overwrite kilo.squat.ai/location-
    ");
    let volunteers = |index: usize, node: &mut Value| {
        located(index, node);
        annotation(node, "leader", json!("yes"));
    };
    insta::assert_snapshot!(resolves("several-leaders", &changed("", volunteers), &[]), @"
    # several-leaders (check, complete, and remove the #)
    # kubectl --context east annotate node n2 --overwrite kilo.squat.ai/leader-
    ");
    let denied = |index: usize, node: &mut Value| {
        located(index, node);
        if index == 1 {
            annotation(node, "leader", json!("false"));
        }
    };
    resolves("misread-leader", &changed("", denied), &[]);
}

#[test]
fn labels_are_those_that_the_selector_asks_for() {
    let fields = "      nodeSelector: { matchLabels: { example.org/mesh: it-is }, matchExpressions: [{ key: role, operator: In, values: [gateway, edge] }, { key: old, operator: DoesNotExist }] }\n";
    insta::assert_snapshot!(resolves("contradicted-declaration", &changed(fields, |_, _| {}), &[]), @"
    # contradicted-declaration (check, complete, and remove the #)
    # kubectl --context east label node n1 n2 --overwrite example.org/mesh=it-is
    # kubectl --context east label node n1 n2 --overwrite role=gateway
    ");
}

/// Returns the annotations and labels of each node in the patches.
fn patched(talos: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(talos);
    documents.map(|it| Value::deserialize(it).unwrap()).collect()
}

#[test]
fn patches_of_talos_have_the_same_values() {
    let silent = |index: usize, node: &mut Value| {
        annotation(node, "persistent-keepalive", Value::Null);
        if index == 1 {
            node["addresses"] = json!([]);
            annotation(node, "leader", json!("no"));
        }
        located(0, node);
    };
    let folder = changed("      nodeSelector: { mesh: 'true' }\n", silent);
    let run =
        folder.run(&["annotate", "east", "--output", "talos", "--endpoint", "n2=198.18.7.1:51820"]);
    insta::assert_snapshot!(run.stdout, @r#"
    # n1 (contradicted-declaration, pause-after-change)
    machine:
      nodeAnnotations:
        kilo.squat.ai/persistent-keepalive: "25"
    #   nodeLabels:
    #     mesh: "true"
    ---
    # n2 (contradicted-declaration, misread-leader, pause-after-change)
    # Remove kilo.squat.ai/leader from nodeAnnotations.
    machine:
      nodeAnnotations:
        kilo.squat.ai/clustermesh-endpoint: "198.18.7.1:51820"
        kilo.squat.ai/persistent-keepalive: "25"
    #   nodeLabels:
    #     mesh: "true"
    "#);
    assert_eq!(patched(&run.stdout).len(), 2);
    // Without the address, that line is a comment.
    let run = folder.run(&["annotate", "east", "--output", "talos", "--node", "n2"]);
    insta::assert_snapshot!(run.stdout, @r#"
    # n2 (contradicted-declaration, misread-leader, pause-after-change)
    # Remove kilo.squat.ai/leader from nodeAnnotations.
    machine:
      nodeAnnotations:
        kilo.squat.ai/persistent-keepalive: "25"
    #   nodeLabels:
    #     mesh: "true"
    "#);
}

/// Each text of a node is hostile, and each finding that it causes is reported.
#[test]
fn no_node_chooses_a_word_of_a_command() {
    const HOSTILE: &str = "evil$(touch x)`id`;'\"\n- \u{1b}[2J";
    let folder = changed("", |index, node| {
        located(0, node);
        for key in [
            "force-endpoint",
            "clustermesh-endpoint",
            "force-internal-ip",
            "persistent-keepalive",
            "leader",
            "location",
        ] {
            annotation(node, key, json!(format!("{HOSTILE}{index}")));
        }
        for key in ["location", "leader", "allowed-location-ips", "force-endpoint"] {
            node["labels"][format!("kilo.squat.ai/{key}")] = json!(HOSTILE);
        }
        annotation(node, HOSTILE, json!(HOSTILE));
    });
    let mut nodes: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    let mut named = node(1, 3);
    named["name"] = json!(HOSTILE);
    annotation(&mut named, "persistent-keepalive", Value::Null);
    let mut dashed = node(1, 4);
    dashed["name"] = json!("--all");
    annotation(&mut dashed, "persistent-keepalive", Value::Null);
    nodes["nodes"].as_array_mut().unwrap().extend([named, dashed]);
    folder.write("snapshots/east.json", nodes.to_string());
    for output in ["kubectl", "talos", "json"] {
        let run = folder.run(&["annotate", "east", "--output", output, "--keepalive", "25"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains("n2"), "{}", run.stdout);
        assert!(!run.stdout.contains("evil"), "{}", run.stdout);
        assert!(!run.stdout.contains("--all"), "{}", run.stdout);
        assert_harmless(&run);
        if output == "kubectl" {
            assert_eq!(
                commands(&run.stdout).len(),
                run.stdout.lines().filter(|it| !it.starts_with('#')).count()
            );
        }
    }
}

#[test]
fn many_nodes_are_all_nodes() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (1..=24)
        .map(|it| {
            let mut node = node(1, it);
            annotation(&mut node, "persistent-keepalive", Value::Null);
            node
        })
        .collect();
    folder.keep("east", &nodes);
    let all = resolves("pause-after-change", &folder, &[]);
    assert_contains(&all, " annotate node --all --overwrite ");
    folder.keep("east", &nodes);
    let one = folder.run(&["annotate", "east", "--node", "n7"]).stdout;
    assert_contains(&one, " annotate node n7 --overwrite ");
    let talos = folder.run(&["annotate", "east", "--output", "talos"]).stdout;
    assert_contains(&talos, "# all nodes of east (pause-after-change)\nmachine:\n");
    // The others have the same value already, so the command changes nothing else.
    let mut most = nodes.clone();
    most[3..6].fill_with({
        let mut number = 3;
        move || {
            number += 1;
            node(1, number)
        }
    });
    folder.keep("east", &most);
    let all = resolves("pause-after-change", &folder, &[]);
    assert_contains(&all, " annotate node --all --overwrite ");
    annotation(&mut most[4], "persistent-keepalive", json!("10"));
    folder.keep("east", &most);
    let named = resolves("pause-after-change", &folder, &[]);
    assert_contains(&named, " annotate node n1 n10 ");
}

#[test]
fn new_nodes_get_a_policy() {
    let folder = Folder::mesh();
    // It depends on no node.
    fs::remove_dir_all(folder.path("snapshots")).unwrap();
    let run = folder.run(&["annotate", "east", "--new-nodes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(&run.stdout)
        .map(|it| Value::deserialize(it).unwrap())
        .collect();
    let [policy, binding] = &documents[..] else { panic!("{documents:?}") };
    assert_eq!(policy["kind"], "MutatingAdmissionPolicy");
    assert_eq!(binding["kind"], "MutatingAdmissionPolicyBinding");
    assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    let annotation = r#""kilo.squat.ai/persistent-keepalive": "25"}"#;
    assert_contains(&run.stdout, annotation);
    let given = folder.run(&["annotate", "east", "--new-nodes", "--keepalive", "10"]);
    assert_eq!(given.stdout, run.stdout.replace(annotation, &annotation.replace("25", "10")));
    for (arguments, says) in [
        (&["eats", "--new-nodes"][..], "did you mean `east`?"),
        (&["east", "--new-nodes", "--node", "n1"], "cannot be used with"),
        (&["east", "--new-nodes", "--output", "talos"], "cannot be used with"),
    ] {
        let run = folder.run(&[&["annotate"], arguments].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert_contains(&run.stderr, says);
    }
}

#[test]
fn what_is_ignored_or_unknown_changes_nothing() {
    let folder = changed("", |_, node| {
        annotation(node, "persistent-keepalive", Value::Null);
    });
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules: { pause-after-change: { level: \"off\", reason: rare } }\n");
    let run = folder.run(&["annotate", "east"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_contains(
        &run.stderr,
        "nothing to annotate: no annotation or label resolves a finding about east",
    );
    for (arguments, says) in [
        (&["eats"][..], "did you mean `east`?"),
        (&["east", "--node", "m1"], "the snapshot of east has no node `m1`; did you mean `n1`?"),
        (&["east", "--endpoint", "m1=1.2.3.4:5"], "did you mean `n1`?"),
        (&["east", "--endpoint", "n1=1.2.3.4"], "expected NODE=ADDRESS:PORT"),
        (&["east", "--endpoint", "n1=$(x):5"], "expected NODE=ADDRESS:PORT"),
        (&["east", "--location", "n1=a b"], "expected NODE=LOCATION"),
        (&["east", "--keepalive", "0"], "--keepalive"),
        (&["east", "--keepalive", "99999"], "99999 is not in 1..=65535"),
        (&["external.laptop"], "no mesh contains"),
    ] {
        let run = folder.run(&[&["annotate"], arguments].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert_contains(&run.stderr, says);
    }
}

#[test]
fn a_cluster_that_leaves_has_no_nodes() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "name: east\n", "name: east\n      state: Leaving\n");
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = folder.run(&["annotate", "east"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_contains(&run.stderr, "east leaves its meshes");
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.3.0.0/33");
    let run = folder.run(&["annotate", "west"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_contains(&run.stderr, "error[invalid-range]");
}

/// With another label, every node may have a location.
#[test]
fn what_follows_from_a_wrong_line_changes_no_node() {
    let folder = changed("      topologyLabel: rack\n", |index, node| {
        located(0, node);
        node["labels"]["topology.kubernetes.io/region"] = json!(format!("r{index}"));
        if index == 0 {
            node["labels"]["rack"] = json!("a");
        }
    });
    let snapshot: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    let mut nodes = snapshot["nodes"].as_array().unwrap().clone();
    let mut same = node(1, 3);
    located(0, &mut same);
    same["labels"] = json!({ "rack": "a", "topology.kubernetes.io/region": "r3" });
    nodes.push(same);
    folder.keep("east", &nodes);
    let found = rules(&folder, "east");
    assert!(found.contains("contradicted-declaration"), "{found:?}");
    assert_eq!(folder.run(&["annotate", "east"]).stdout, "");
}

#[test]
fn the_example_of_the_schema_is_what_is_printed() {
    let example = include_str!("../../../src/node_changes/example.json");
    let folder = project().join("examples/multi-cloud-location");
    let arguments = ["--keepalive", "20", "--node", "rack1-node1", "--output", "json"];
    let run = clustermesh(&folder, &[&["annotate", "onprem"][..], &arguments].concat());
    assert_eq!(run.stdout, example);
}
