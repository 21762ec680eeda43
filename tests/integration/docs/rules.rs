//! The documentation of rules: every page is whole, and every example does what its page describes.
//!
//! An example is merged into a valid mesh of two clusters, `east` and `west`, with the nodes `n1`
//! and `n2` each. The first line of a YAML block names its target: `# mesh.yaml` (or any other
//! file) is the whole file, `# mesh.yaml, cluster east` a part of that cluster's entry, and
//! `# snapshots/east.json, node n1` a part of that node's snapshot; a null removes a field. The findings of `validate` must then
//! contain the rule. If there is a block of the language `console`, its lines after `$ ` are run
//! instead, and the findings of the last one must contain the rule. Messages that only a server can
//! cause are shown verbatim in a block of the language `text`; the program's own test
//! `cluster::tests::pages_show_what_is_reported` compares them.
//!
//! Terms that are not rules have a page too; its `console` block must succeed.

use std::fs;

use clustermesh::rules::reach::TERMS;
use clustermesh::rules::{self, Page, Rule};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, assert_contains, clustermesh};

/// The titles of the sections of every page, in order.
const SECTIONS: [&str; 4] = ["What it finds", "Why it matters", "Example", "Remedy"];

/// The mesh over which examples are laid.
const MESH: &str = "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: prod
spec:
  clusters:
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.101.0.0/24
    - name: west
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.102.0.0/24
";

/// A block of code in a page.
struct Block {
    language: &'static str,
    code: String,
}

impl Block {
    /// Returns the blocks of the example of a page.
    fn of_example(page: &Page) -> Vec<Self> {
        let example = page.sections.iter().find(|it| it.title == "Example");
        let mut blocks = Vec::new();
        let mut open: Option<Self> = None;
        for line in example.unwrap().text.lines() {
            match (line.strip_prefix("```"), open.take()) {
                (Some(language), None) => {
                    let code = String::new();
                    open = Some(Self { language, code });
                }
                (Some(_), Some(block)) => blocks.push(block),
                (None, Some(mut block)) => {
                    block.code.push_str(line);
                    block.code.push('\n');
                    open = Some(block);
                }
                (None, None) => {}
            }
        }
        blocks
    }
}

/// A folder in which an example stands.
struct Stage {
    folder: TempDir,
    mesh: Value,
    nodes: Vec<(String, Vec<Value>)>,
}

impl Stage {
    fn sound() -> Self {
        let nodes = [("east", 1), ("west", 2)].map(|(cluster, number)| {
            let nodes = vec![node(number, 1), node(number, 2)];
            (cluster.to_owned(), nodes)
        });
        Self {
            folder: tempfile::tempdir().unwrap(),
            mesh: serde_yaml::from_str(MESH).unwrap(),
            nodes: nodes.to_vec(),
        }
    }

    /// Lays a block over what is there.
    fn lay(&mut self, block: &Block) {
        let (first, rest) = block.code.split_once('\n').unwrap();
        let what = first.strip_prefix("# ").expect("a first line that says what it is");
        if let Some(cluster) = what.strip_prefix("mesh.yaml, cluster ") {
            let entries = self.mesh["spec"]["clusters"].as_array_mut().unwrap();
            let entry = entries.iter_mut().find(|it| it["name"] == cluster).unwrap();
            merge(entry, &serde_yaml::from_str(rest).unwrap());
        } else if let Some((cluster, name)) =
            what.strip_prefix("snapshots/").and_then(|it| it.split_once(".json, node "))
        {
            let (_, nodes) = self.nodes.iter_mut().find(|it| it.0 == cluster).unwrap();
            let node = nodes.iter_mut().find(|it| it["name"] == name).unwrap();
            merge(node, &serde_yaml::from_str(rest).unwrap());
        } else {
            self.write(what, rest);
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes what no block has written as a whole.
    fn finish(&self) {
        let is_there = |path: &str| self.folder.path().join(path).exists();
        if !is_there("mesh.yaml") {
            self.write("mesh.yaml", &serde_yaml::to_string(&self.mesh).unwrap());
        }
        for (cluster, nodes) in &self.nodes {
            let path = format!("snapshots/{cluster}.json");
            if !is_there(&path) {
                let snapshot = json!({
                    "apiVersion": "kilo-clustermesh.io/v1",
                    "cluster": cluster,
                    "kind": "NodeSnapshot",
                    "nodes": nodes,
                });
                self.write(&path, &format!("{snapshot:#}\n"));
            }
        }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        clustermesh(self.folder.path(), arguments)
    }

    /// Returns the rules that `validate` reports.
    fn report(&self) -> Vec<String> {
        let run = self.run(&["validate", "--output", "json"]);
        if run.stdout.is_empty() {
            // A mistake in the config is reported before all other checks.
            return codes(&run.stderr);
        }
        let report = run.json();
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns the codes in output for a person.
fn codes(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once('[')?.1.split_once("]: "));
    lines.map(|(code, _)| code.to_owned()).collect()
}

/// Lays a value over another; a null takes away.
fn merge(onto: &mut Value, over: &Value) {
    let Value::Object(fields) = over else {
        *onto = over.clone();
        return;
    };
    if !onto.is_object() {
        *onto = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            onto.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut onto[name], value);
        }
    }
}

fn node(cluster: u8, number: u8) -> Value {
    use base64::Engine as _;
    let key = base64::engine::general_purpose::STANDARD.encode([10 * cluster + number; 32]);
    let address = format!("198.18.113.{}", 10 * cluster + number);
    json!({
        "addresses": [
            { "address": format!("192.168.{cluster}.{number}"), "type": "InternalIP" },
            { "address": address, "type": "ExternalIP" },
        ],
        "annotations": {
            "kilo.squat.ai/endpoint": format!("{address}:51820"),
            "kilo.squat.ai/granularity": "full",
            "kilo.squat.ai/internal-ip": format!("192.168.{cluster}.{number}/24"),
            "kilo.squat.ai/key": key,
            "kilo.squat.ai/persistent-keepalive": "25",
            "kilo.squat.ai/wireguard-ip": format!("10.{}.0.{number}/24", 100 + cluster),
        },
        "labels": {},
        "name": format!("n{number}"),
        "podCIDRs": [format!("10.{cluster}.{number}.0/24")],
        "uid": format!("{cluster}-{number}"),
    })
}

#[test]
fn pages_are_whole() {
    for rule in rules::all() {
        let page = rule.page();
        let titles: Vec<&str> = page.sections.iter().map(|it| it.title).collect();
        assert_eq!(titles, SECTIONS, "{}", rule.name());
        for section in &page.sections {
            assert!(!section.text.is_empty(), "{} of {}", section.title, rule.name());
            let long = section.text.lines().find(|line| 100 < line.chars().count());
            assert_eq!(long, None, "{}", rule.name());
        }
        let summary = page.summary();
        assert!(summary.chars().count() <= 120, "{}: {summary}", rule.name());
    }
}

#[test]
fn a_sound_mesh_has_nothing_to_tell() {
    let stage = Stage::sound();
    stage.finish();
    assert_eq!(stage.report(), Vec::<String>::new());
}

#[test]
fn examples_show_their_rule() {
    let wrong: Vec<String> = rules::all().into_iter().filter_map(wrong_example).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns what is wrong with the example of a rule.
fn wrong_example(rule: &Rule) -> Option<String> {
    let blocks = Block::of_example(&rule.page());
    if blocks.is_empty() {
        return Some(format!("{}: nothing to run", rule.name()));
    }
    if blocks.iter().any(|block| block.language == "text") {
        return None;
    }
    let mut stage = Stage::sound();
    for block in blocks.iter().filter(|block| block.language == "yaml" || block.language == "json")
    {
        stage.lay(block);
    }
    stage.finish();
    let Some(console) = blocks.iter().find(|block| block.language == "console") else {
        let report = stage.report();
        let is_reported = report.iter().any(|it| it == rule.name());
        return (!is_reported).then(|| format!("{}: told {report:?}", rule.name()));
    };
    let mut said = String::new();
    for line in console.code.lines().filter_map(|line| line.strip_prefix("$ clustermesh ")) {
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let run = stage.run(&words);
        said = run.stderr + &run.stdout;
        // A finding may be listed below another one.
        if words == ["verify"] {
            said += &stage.run(&["verify", "--output", "json"]).stdout;
        }
    }
    let is_listed = said.contains(&format!("\"rule\": \"{}\"", rule.name()));
    let is_reported = is_listed || codes(&said).iter().any(|it| it == rule.name());
    (!is_reported).then(|| format!("{}: said {said}", rule.name()))
}

#[test]
fn words_that_are_no_fault_are_explained() {
    for term in TERMS {
        let page = term.page();
        assert!(page.summary().chars().count() <= 120, "{}", term.name);
        let long = |text: &str| text.lines().any(|line| 100 < line.chars().count());
        assert!(!page.sections.iter().any(|it| long(it.text)), "{}", term.name);
        let blocks = Block::of_example(&page);
        let stage = Stage::sound();
        stage.finish();
        let lines = blocks[0].code.lines();
        let mut said = String::new();
        for line in lines.map(|line| line.strip_prefix("$ clustermesh ").unwrap()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let run = stage.run(&words);
            assert_eq!(run.code, 0, "{}", run.stderr);
            said = run.stdout;
        }
        assert_contains(&said, &format!("\n{}", term.name));
    }
}
