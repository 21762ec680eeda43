//! Every printer escapes everything: with any content of nodes, files, names and settings, no
//! output of any command controls a terminal, hides or reorders text, or commands the runner of a
//! CI job.

use clustermesh::diagnostic::{is_command, is_deceptive};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::cli::{Folder, HEADER, MESH, node};
use crate::support::{Run, assert_contains};

pub(in crate::cli) mod differences;

/// Pieces of text that mean something to a program that shows or reads them.
const PIECES: &[&str] = &[
    "\u{1b}[2J",
    "\u{1b}]0;owned\u{7}",
    "\u{9b}2J",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{ad}",
    "\u{e0041}",
    "\r",
    "\n",
    "\u{2028}",
    "\u{0}",
    "::error::x",
    "::add-mask::x",
    "\n::stop-commands::x\n",
    "##[group]x",
    "##vso[task.setvariable variable=a]b",
    "%0A::error::",
    "`",
    "```",
    "|",
    "</details><img src=x>",
    "\\",
    "\"",
    "'",
    "east",
    "a",
    " ",
];

/// The formats of findings.
const FORMATS: [&str; 7] = ["human", "concise", "json", "sarif", "github", "gitlab", "markdown"];

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES), 1..5).prop_map(|pieces| pieces.concat())
}

/// Returns a text as YAML and JSON write it, with nothing raw in it.
fn quoted(text: &str) -> String {
    let units = text.encode_utf16();
    let codes: Vec<String> = units.map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{}\"", codes.concat())
}

/// Returns what of a text can be the name of a file.
fn file_name(text: &str) -> String {
    let allowed = |it: &char| !matches!(it, '/' | '\0');
    text.chars().filter(allowed).take(60).collect()
}

/// Nodes with this text in each of their fields, in turn and in all that decide nothing.
fn nodes(text: &str) -> Vec<Value> {
    let mut nodes: Vec<Value> = (1..=9).map(|number| node(1, number)).collect();
    nodes[1]["name"] = json!(format!("a{text}"));
    nodes[2]["podCIDRs"] = json!([text]);
    nodes[3]["podCIDRs"] = json!(["10.1.4.0/24", format!("10.1.99.0/24{text}")]);
    nodes[4]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(text);
    nodes[5]["annotations"]["kilo.squat.ai/key"] = json!(text);
    nodes[6]["annotations"]["kilo.squat.ai/force-endpoint"] = json!(text);
    nodes[7]["annotations"]["kilo.squat.ai/granularity"] = json!(text);
    nodes[8]["addresses"] = json!([
        { "address": text, "type": "InternalIP" },
        { "address": text, "type": "ExternalIP" },
    ]);
    for node in &mut nodes[1..] {
        node["uid"] = json!(text);
        node["labels"] = json!({ (text): text, "topology.kubernetes.io/region": text });
        node["annotations"]["kilo.squat.ai/location"] = json!(text);
        node["annotations"][format!("kilo.squat.ai/{text}")] = json!(text);
    }
    nodes
}

/// A mesh that is sound, of which everything else is hostile.
fn hostile_world(text: &str) -> Folder {
    let folder = Folder::rendered();
    let name = file_name(text);
    folder.keep("east", &nodes(text));
    let stray = json!({
        "apiVersion": "kilo-clustermesh.io/v1", "cluster": text, "kind": "NodeSnapshot", "nodes": [],
    });
    folder.write(&format!("snapshots/x{name}.json"), stray.to_string());
    folder.write(&format!("snapshots/{name}y.json"), text);
    folder.write(&format!("rendered/west/{name}z"), text);
    folder.write(&format!("rendered/west/z{name}.yaml"), HEADER);
    let peer = json!({
        "apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": { "name": text },
        "spec": { "allowedIPs": [text], "publicKey": text },
    });
    folder.write("rendered/west/own.yaml", format!("{HEADER}{peer}\n"));
    let (text, head) = (quoted(text), "apiVersion: kilo-clustermesh.io/v1\nkind: ");
    let from = "from: { cluster: east }, to: { cluster: west }";
    folder.write(
        "expectations.yaml",
        format!(
            "{head}Expectations\nspec:\n  expectations:\n    - {{ name: {text}, {from}, expect: Reach }}\n"
        ),
    );
    folder.write(
        "clustermesh.yaml",
        format!(
            "{head}Config\nignore: [{{ rule: missing-endpoint, node: {text}, reason: {text} }}]\n"
        ),
    );
    folder
}

/// A mesh with mistakes of this text, and snapshots of clusters that are called almost as in it.
fn hostile_mesh(text: &str) -> Folder {
    let folder = Folder::mesh();
    let name = file_name(text);
    for (cluster, file) in [(format!("east{text}"), "a"), (format!("eas{text}"), "b")] {
        let stray = json!({
            "apiVersion": "kilo-clustermesh.io/v1", "cluster": cluster, "kind": "NodeSnapshot",
            "nodes": [],
        });
        folder.write(&format!("snapshots/{file}.json"), stray.to_string());
    }
    let field = quoted(text);
    let east = format!("- {field}: {field}\n      wireguardPort: {field}\n      name: east");
    let mesh = MESH.replacen("- name: east", &east, 1).replacen(
        "- name: north",
        &format!(
            "- name: {}\n      nodeSelector: {{ matchLabels: {{ {field}: {field} }} }}",
            quoted(&format!("east{text}"))
        ),
        1,
    );
    folder.write(&format!("meshes/{name}.yaml"), mesh);
    std::fs::remove_file(folder.path("mesh.yaml")).unwrap();
    folder
}

/// A config with mistakes of this text.
fn hostile_config(text: &str) -> Folder {
    let folder = Folder::mesh();
    let text = quoted(text);
    folder.write(
        "clustermesh.yaml",
        format!(
            "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules: {{ {text}: warning }}\n\
             clusters: {{ {text}: {{ kubeconfig: {text} }} }}\n{text}: {text}\n"
        ),
    );
    folder
}

/// Fails if a text steers a terminal, hides or reorders text, or commands a runner.
fn check_plain(text: &str) -> Result<(), TestCaseError> {
    let bad = text.chars().find(|&it| it != '\n' && is_deceptive(it));
    prop_assert_eq!(bad, None, "{:?}", text);
    for (start, _) in text.match_indices('[') {
        prop_assert!(!is_command(&text[..start]), "{:?}", text);
    }
    Ok(())
}

/// Fails if a line begins with a workflow command, which whitespace may precede.
fn check_lines(text: &str) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let command = line.trim_start().strip_prefix("::").and_then(|it| it.split_once("::"));
        prop_assert_eq!(command, None, "{:?}", line);
    }
    Ok(())
}

fn check_strings(value: &Value) -> Result<(), TestCaseError> {
    match value {
        Value::String(text) => {
            let bad = text.chars().find(|&it| it != '\n' && is_deceptive(it));
            prop_assert_eq!(bad, None, "{:?}", text);
        }
        Value::Array(items) => items.iter().try_for_each(check_strings)?,
        Value::Object(fields) => {
            // Where something is called or stands so, a program looks it up: it gets it as it is.
            let is_shown = |field: &str| !matches!(field, "node" | "pointer");
            let shown = fields.iter().filter(|(field, _)| is_shown(field));
            shown.map(|(_, it)| it).try_for_each(check_strings)?;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

pub(in crate::cli) fn check(format: &str, run: &Run) -> Result<(), TestCaseError> {
    prop_assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    check_plain(&run.stdout)?;
    check_plain(&run.stderr)?;
    check_lines(&run.stderr)?;
    match format {
        "github" => {
            for line in run.stdout.lines() {
                let severities = ["::error file=", "::warning file=", "::notice file="];
                prop_assert!(severities.iter().any(|it| line.starts_with(it)), "{:?}", line);
            }
        }
        _ => check_lines(&run.stdout)?,
    }
    if matches!(format, "json" | "sarif" | "gitlab") && !run.stdout.is_empty() {
        check_strings(&run.json())?;
    }
    Ok(())
}

/// Runs everything that prints what is in a folder.
fn check_all(folder: &Folder) -> Result<(), TestCaseError> {
    for format in FORMATS {
        for command in ["validate", "verify"] {
            let run = folder.run(&["--color=never", command, "--output", format]);
            check(format, &run)?;
        }
    }
    let [west, east] = ["west/n1", "east/n1"];
    for (arguments, format) in [
        (["trace", west, east, "--output", "human"].as_slice(), "human"),
        (&["trace", west, east, "--output", "json"], "json"),
        (&["capacity", "--output", "human"], "human"),
        (&["capacity", "--output", "json"], "json"),
        (&["capacity", "west"], "human"),
        (&["render", "--check"], "human"),
        (&["config"], "human"),
        (&["render"], "human"),
    ] {
        check(format, &folder.run(&[&["--color=never"], arguments].concat()))?;
    }
    Ok(())
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// A mesh that is proposed from hostile nodes has none of their texts.
fn check_proposal(text: &str) -> Result<(), TestCaseError> {
    let folder = Folder::empty();
    let object = |node: &Value| {
        json!({
            "kind": "Node",
            "metadata": {
                "annotations": node["annotations"], "labels": node["labels"],
                "name": node["name"], "uid": node["uid"],
            },
            "spec": { "podCIDRs": node["podCIDRs"] },
            "status": { "addresses": node["addresses"] },
        })
    };
    let mut east = nodes(text);
    east.extend((10..=20).map(|number| node(1, number)));
    for (cluster, nodes) in [("east", east), ("west", vec![node(4, 1), node(4, 2)])] {
        let items: Vec<Value> = nodes.iter().map(object).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        folder.write(&format!("{cluster}.json"), list.to_string());
    }
    let from = ["--from=east=east.json", "--from=west=west.json"];
    let run = folder.run(&["--color=never", "init", from[0], from[1]]);
    check("human", &run)?;
    let mesh = folder.read("mesh.yaml");
    check_plain(&mesh)?;
    for line in mesh.lines() {
        prop_assert!(!line.trim_start_matches(['#', ' ']).starts_with("::"), "{}", mesh);
        prop_assert!(line.is_ascii(), "{}", mesh);
    }
    let run = folder.run(&["--color=never", "render"]);
    prop_assert_eq!(run.code, 0, "{}", run.stderr);
    Ok(())
}

#[test]
fn a_proposed_mesh_has_no_text_of_a_node() {
    let check = |text: String| check_proposal(&text);
    runner(2).run(&texts(), check).unwrap();
}

#[test]
fn what_nodes_files_and_names_hold_is_escaped_in_every_format() {
    let check = |text: String| check_all(&hostile_world(&text));
    runner(4).run(&texts(), check).unwrap();
}

#[test]
fn what_meshes_hold_is_escaped_in_every_format() {
    let check = |text: String| check_all(&hostile_mesh(&text));
    runner(4).run(&texts(), check).unwrap();
}

#[test]
fn what_configs_hold_is_escaped_in_every_format() {
    let check = |text: String| check_all(&hostile_config(&text));
    runner(2).run(&texts(), check).unwrap();
}

#[test]
fn a_name_that_was_perhaps_meant_is_escaped() {
    // With the dot, no valid name is like it.
    let folder = hostile_mesh("\u{202e}::error::.");
    let run = folder.run(&["validate", "--output", "json"]);
    assert_contains(&run.stdout, "a mesh calls `east");
    check("json", &run).unwrap();
}

/// Half of a pair of UTF-16, which JSON can write and nothing can hold.
#[test]
fn half_a_character_is_a_mistake_of_its_file() {
    let folder = Folder::mesh();
    folder.edit("snapshots/east.json", r#""n1""#, r#""n\ud800""#);
    for format in FORMATS {
        let run = folder.run(&["--color=never", "validate", "--output", format]);
        assert_ne!(run.code, 0);
        assert_contains(&run.stdout, "snapshots/east.json");
        check(format, &run).unwrap();
    }
}
