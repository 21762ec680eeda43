//! No text of a node or a file controls a terminal.

use serde_json::{Value, json};

use crate::cli::{Folder, MESH, api_node, assert_harmless, node};
use crate::support::assert_contains;

/// A title, a cleared screen, a C1 sequence, reversed text, an invisible one, and a line of its own.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{200b}\u{feff}\r\n\u{0}x";

/// The same without what no file name can hold.
const NAME: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{200b}\r\nx.yaml";

/// Runs with colours on, so that escapes of others are not just stripped.
fn harmless(folder: &Folder, code: i32, arguments: &[&str]) -> String {
    let run = folder.run_with(&[], &[&["--color", "always"], arguments].concat());
    assert_harmless(&run);
    assert_eq!(run.code, code, "{}", run.stderr);
    run.stderr
}

/// Every text of a node, made hostile in turn.
fn hostile_nodes() -> Vec<Value> {
    let mut nodes: Vec<Value> = (1..=9).map(|number| node(1, number)).collect();
    nodes[1]["name"] = json!(format!("a{HOSTILE}"));
    nodes[2]["podCIDRs"] = json!([HOSTILE]);
    nodes[3]["podCIDRs"] = json!(["10.1.4.0/24", format!("10.1.99.0/24{HOSTILE}")]);
    nodes[4]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(HOSTILE);
    nodes[5]["annotations"]["kilo.squat.ai/key"] = json!(HOSTILE);
    nodes[6]["annotations"]["kilo.squat.ai/force-endpoint"] = json!(HOSTILE);
    nodes[7]["annotations"]["kilo.squat.ai/granularity"] = json!(HOSTILE);
    nodes[8]["addresses"] = json!([
        { "address": HOSTILE, "type": "InternalIP" },
        { "address": HOSTILE, "type": "ExternalIP" },
    ]);
    for node in &mut nodes {
        node["uid"] = json!(HOSTILE);
        node["labels"] = json!({ (HOSTILE): HOSTILE, "topology.kubernetes.io/region": HOSTILE });
        node["annotations"]["kilo.squat.ai/location"] = json!(HOSTILE);
    }
    nodes
}

#[test]
fn escapes_what_snapshots_say() {
    let folder = Folder::mesh();
    folder.keep("east", &hostile_nodes());
    let report = harmless(&folder, 0, &["render"]);
    for code in
        ["invalid-pod-cidr", "invalid-wireguard-ip", "invalid-endpoint", "invalid-node-name"]
    {
        assert_contains(&report, code);
    }
    harmless(&folder, 0, &["render", "--target", "west"]);
    folder.edit("mesh.yaml", "- name: east", "- name: east\n      granularity: Location");
    harmless(&folder, 1, &["render", "--fail-on", "warning"]);
}

#[test]
fn renders_nothing_that_is_hostile() {
    let folder = Folder::mesh();
    folder.keep("east", &hostile_nodes());
    assert_eq!(folder.run(&["render"]).code, 0);
    for (path, (_, _, text)) in folder.touches("rendered") {
        assert!(text.chars().all(|it| it == '\n' || !it.is_control()), "{path}");
        assert!(!text.contains("owned"), "{path}");
    }
}

#[test]
fn escapes_what_is_wrong_in_snapshots() {
    let folder = Folder::mesh();
    let header = r#""apiVersion":"kilo-clustermesh.io/v1","cluster":"east","kind":"NodeSnapshot""#;
    let hostile = json!(HOSTILE).to_string();
    for text in [
        format!("{{{header},{hostile}:1}}"),
        format!("{{{header},\"nodes\":[{{\"name\":{hostile}}},{{\"name\":{hostile}}}]}}"),
        format!("{{{header},\"nodes\":[{{\"labels\":{{{hostile}:\"\",{hostile}:\"\"}}}}]}}"),
        format!("{{{header},\"nodes\":[{{\"addresses\":[{{\"type\":{hostile}}}]}}]}}"),
        format!("{{{header},\"nodes\":{hostile}}}"),
        header.replace("v1\"", &hostile[1..]).replacen('"', "{\"nodes\":[],\"", 1) + "}",
        header.replace("\"NodeSnapshot\"", &hostile).replacen('"', "{\"", 1) + "}",
        header.replace("\"east\"", &hostile).replacen('"', "{\"nodes\":[],\"", 1) + "}",
    ] {
        folder.write("snapshots/east.json", text);
        harmless(&folder, 1, &["render"]);
    }
}

/// The hostile text as YAML and JSON write it, so that no excerpt has it raw.
fn quoted() -> String {
    let units = HOSTILE.encode_utf16();
    let codes: Vec<String> = units.map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{}\"", codes.concat())
}

#[test]
fn escapes_keys_that_are_there_twice() {
    let folder = Folder::mesh();
    let key = quoted();
    folder.write("mesh.yaml", format!("apiVersion: kilo.squat.ai/v1alpha1\n{key}: 1\n{key}: 2\n"));
    let report = harmless(&folder, 2, &["render"]);
    assert_contains(&report, "duplicate key ");
}

#[test]
fn escapes_what_meshes_say() {
    let folder = Folder::mesh();
    let hostile = quoted();
    for (from, to) in [
        ("10.1.0.0/16", hostile.as_str()),
        ("10.101.0.0/24", &hostile),
        ("name: east", &format!("name: {hostile}")),
        ("name: prod", &format!("name: {hostile}")),
        ("kind: ClusterMesh", &format!("kind: {hostile}")),
        ("v1alpha1", &hostile[1..hostile.len() - 1]),
        ("- name: east", &format!("- {hostile}: 1")),
        ("spec:\n", &format!("spec:\n  topology: {{ mode: Hub, hubs: [{hostile}] }}\n")),
        (
            "- name: east",
            &format!(
                "- nodeSelector: {{ matchLabels: {{ {hostile}: {hostile} }} }}\n      name: east"
            ),
        ),
        ("- name: east", &format!("- endpointDomains: [{hostile}]\n      name: east")),
        ("- name: east", &format!("- wireguardPort: {hostile}\n      name: east")),
    ] {
        let text = MESH.replacen(from, to, 1);
        assert_ne!(text, MESH);
        folder.write("mesh.yaml", text);
        harmless(&folder, 1, &["render"]);
    }
}

#[test]
fn escapes_what_excerpts_show() {
    let folder = Folder::mesh();
    for character in [
        "\u{202e}",
        "\u{200b}",
        "\u{2066}",
        "\u{ad}",
        "\u{e0041}",
        "\u{fe0f}",
        "\u{85}",
        "\u{feff}",
    ] {
        let field =
            format!("- name: east # a{character}b\n      nmae: 'x{character}y' # {character}");
        folder.write("mesh.yaml", MESH.replace("- name: east", &field));
        harmless(&folder, 1, &["render"]);
    }
}

#[test]
fn escapes_what_is_no_yaml() {
    let folder = Folder::mesh();
    for text in [
        "a: \u{1b}]0;owned\u{7}",
        "\u{1b}[2J",
        "a: [\u{202e}\u{200b}",
        "*\u{202e}",
        "a: !\u{202e} [",
        "a: \"\\\u{1b}\"",
    ] {
        folder.write("mesh.yaml", text);
        harmless(&folder, 2, &["render"]);
        folder.write("dump.yaml", text);
        harmless(&folder, 2, &["snapshot", "east", "--from", "dump.yaml"]);
    }
}

#[test]
fn escapes_values_of_flags() {
    let folder = Folder::rendered();
    let hostile = HOSTILE.replace('\0', "");
    for value in [format!("east.{hostile}=1"), format!("east.mtu={hostile}[")] {
        harmless(&folder, 2, &["capacity", "--with", &value]);
    }
    for arguments in [["report", &format!("{hostile}.html")], ["verify", &format!("--{hostile}")]] {
        harmless(&folder, 2, &arguments);
    }
}

#[test]
fn escapes_what_dumps_say() {
    let folder = Folder::mesh();
    let mut twice = json!({ "kind": "List", "items": [api_node(1, 1), api_node(1, 1)] });
    twice["items"][0]["metadata"]["name"] = json!(HOSTILE);
    twice["items"][1]["metadata"]["name"] = json!(HOSTILE);
    for dump in [
        twice,
        json!({ "kind": HOSTILE }),
        json!({ "kind": "List", "items": [{ "kind": HOSTILE }] }),
        json!({ "kind": "List", "items": HOSTILE }),
        json!({ "kind": "Node", "metadata": { "labels": { "a": [HOSTILE] } } }),
    ] {
        folder.write("dump", dump.to_string());
        harmless(&folder, 2, &["snapshot", "east", "--from", "dump"]);
        folder.write("dump", format!("---\n{dump}"));
        harmless(&folder, 2, &["snapshot", "east", "--from", "dump"]);
    }
}

#[test]
fn keeps_hostile_nodes_as_what_they_are() {
    let folder = Folder::mesh();
    let mut dump = api_node(1, 1);
    dump["metadata"]["name"] = json!(HOSTILE);
    folder.write("dump", dump.to_string());
    let dump = ["snapshot", "east", "--from", "dump"];
    harmless(&folder, 1, &dump);
    harmless(&folder, 0, &[dump.as_slice(), &["--accept", "east"]].concat());
    let kept: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    assert_eq!(kept["nodes"][0]["name"], HOSTILE);
}

#[test]
fn escapes_names_of_files() {
    let folder = Folder::mesh();
    for path in [NAME, &format!("folder/{NAME}")] {
        harmless(&folder, 2, &["render", "--mesh", path]);
        harmless(&folder, 2, &["render", "--config", path]);
        harmless(&folder, 2, &["snapshot", "east", "--from", path]);
        harmless(&folder, 2, &["-C", path, "render"]);
        harmless(&folder, 1, &["render", "--snapshots", path]);
        harmless(&folder, 1, &["render", "--check", "--rendered", path]);
    }
    folder.write(NAME, "kind: Peer");
    harmless(&folder, 1, &["render", "--mesh", NAME]);
    harmless(&folder, 2, &["snapshot", "east", "--from", NAME]);
    harmless(&folder, 2, &["render", "--rendered", NAME]);
    folder.write(NAME, "kind: [");
    harmless(&folder, 2, &["render", "--mesh", NAME]);
    folder.write(NAME, "# nothing");
    harmless(&folder, 1, &["render", "--mesh", NAME]);
}

#[test]
fn escapes_names_in_the_tree() {
    let folder = Folder::rendered();
    folder.write(&format!("rendered/west/{NAME}"), "foreign");
    folder.write(&format!("rendered/west/stale{NAME}"), crate::cli::HEADER);
    folder.write(&format!("rendered/{NAME}/kustomization.yaml"), crate::cli::HEADER);
    harmless(&folder, 1, &["render", "--check"]);
    harmless(&folder, 1, &["render"]);
    let label = json!({ "kilo-clustermesh.io/source-cluster": HOSTILE });
    let peer = format!(
        "{}{}\n",
        crate::cli::HEADER,
        json!({ "kind": "Peer", "metadata": { "labels": label } })
    );
    folder.write("rendered/west/prod--south.yaml", peer);
    harmless(&folder, 1, &["render"]);
}

/// Words of a command line can come from a pull request, through a script of a job.
#[test]
fn escapes_wrong_words() {
    let folder = Folder::mesh();
    for line in [
        &[NAME][..],
        &["render", NAME],
        &["render", &format!("--{NAME}")],
        &["render", &format!("--{NAME}=x")],
        &["render", "--fail-on", NAME],
        &["render", "--allow-empty", NAME],
        &["render", "--ceiling", NAME],
        &["render", "--ceiling", &format!("{NAME}=1")],
        &["verify", "--output", NAME],
        &["verify", "--peers", NAME],
        &["trace", NAME],
        &["explain", NAME],
        &["schema", NAME],
        &["completions", NAME],
        &["snapshot", "east", "--from", "x", "--accept", NAME],
        &["init", "--from", NAME],
        &["outage", "--lose", NAME],
    ] {
        harmless(&folder, 2, line);
    }
}
