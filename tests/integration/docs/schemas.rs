//! The files in `schemas/`: they are the output of the program, agree with the gates, and have the
//! names that other programs look for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clustermesh::diagnostic::Severity;
use clustermesh::document::Source;
use clustermesh::kilo::peer::{self, Translation};
use clustermesh::place::Place;
use clustermesh::snapshot::services::ServiceSnapshot;
use clustermesh::snapshot::{Snapshot, SnapshotError};
use clustermesh::{config, expectations, mesh, policy};
use jsonschema::Validator;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::support::json_schema::{schema, validator, violations, violations_of};
use crate::support::{clustermesh, project};

mod agreement;
mod examples;
mod operator;
mod peers;

/// What `clustermesh schema` is asked for, and where the answer is kept: as `kubeconform` and the
/// catalogues of CRDs name schemas, `<group>/<kind>[-strict]_<version>.json`.
const FILES: [(&[&str], &str); 23] = [
    (&["capacity"], "kilo-clustermesh.io/capacity_v1.json"),
    (&["config"], "kilo-clustermesh.io/config_v1.json"),
    (&["diff"], "kilo-clustermesh.io/diff_v1.json"),
    (&["expectations"], "kilo-clustermesh.io/expectations_v1.json"),
    (&["firewall"], "kilo-clustermesh.io/firewall_v1.json"),
    (&["graph"], "kilo-clustermesh.io/graph_v1.json"),
    (&["annotate"], "kilo-clustermesh.io/nodechanges_v1.json"),
    (&["explanation"], "kilo-clustermesh.io/nodeexplanation_v1.json"),
    (&["mesh"], "kilo.squat.ai/clustermesh_v1alpha1.json"),
    (&["outage"], "kilo-clustermesh.io/outage_v1.json"),
    (&["peer"], "kilo.squat.ai/peer_v1alpha1.json"),
    (&["peer", "--strict"], "kilo.squat.ai/peer-strict_v1alpha1.json"),
    (&["dns"], "kilo-clustermesh.io/dnsconfiguration_v1.json"),
    (&["policy"], "kilo-clustermesh.io/clusterpolicy_v1.json"),
    (&["report"], "kilo-clustermesh.io/report_v1.json"),
    (&["services-snapshot"], "kilo-clustermesh.io/servicesnapshot_v1.json"),
    (&["snapshot"], "kilo-clustermesh.io/nodesnapshot_v1.json"),
    (&["status"], "kilo-clustermesh.io/status_v1.json"),
    (&["template-context"], "kilo-clustermesh.io/templatecontext_v1.json"),
    (&["trace"], "kilo-clustermesh.io/trace_v1.json"),
    (&["trace-mistake"], "kilo-clustermesh.io/tracemistake_v1.json"),
    (&["verification"], "kilo-clustermesh.io/verification_v1.json"),
    (&["wireguard"], "kilo-clustermesh.io/wireguardconfiguration_v1.json"),
];

fn folder() -> PathBuf {
    project().join("schemas")
}

fn schemas() -> Vec<(&'static str, Value)> {
    FILES.iter().map(|(_, file)| (*file, schema(file))).collect()
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_under(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The documents of a text of YAML or JSON, as another program reads them.
fn documents(text: &str) -> Vec<Value> {
    let documents =
        serde_yaml::Deserializer::from_str(text).map(|it| Value::deserialize(it).unwrap());
    documents.filter(|it| !it.is_null()).collect()
}

/// Fails if the published schema has something against a mesh that the gate takes.
pub(crate) fn assert_fits(yaml: &str) {
    static SCHEMA: LazyLock<Validator> =
        LazyLock::new(|| validator(&schema("kilo.squat.ai/clustermesh_v1alpha1.json")));
    for document in documents(yaml) {
        assert_eq!(violations_of(&SCHEMA, &document), [""; 0], "{yaml}");
    }
}

/// The findings of a gate about a document, by the names of the rules.
fn refusals(kind: &str, document: &Value) -> BTreeSet<String> {
    let text = document.to_string();
    let diagnostics = match kind {
        "ClusterMesh" => mesh::read(&[Source::parse("mesh.yaml", text).unwrap()]).diagnostics,
        "Config" => {
            let source = Source::parse("clustermesh.yaml", text).unwrap();
            config::read(&source).err().unwrap_or_default()
        }
        "Expectations" => {
            let source = Source::parse("expectations.yaml", text).unwrap();
            let tenants = mesh::Group {
                name: "tenants".to_owned(),
                clusters: ["east", "west"].map(|it| it.parse().unwrap()).to_vec(),
                place: Place::document(&"mesh.yaml".into(), 0),
            };
            let (groups, _) = mesh::KnownGroups::new([&tenants]);
            let read = expectations::read(&source, &groups);
            read.err().unwrap_or_default()
        }
        "ClusterPolicy" => {
            let source = Source::parse("east.yaml", text).unwrap();
            let read = policy::read(&"east".parse().unwrap(), &source);
            read.err().unwrap_or_default()
        }
        "NodeSnapshot" => {
            let cluster = "east".parse().unwrap();
            let refusal = match Snapshot::read(&cluster, &text).err() {
                None => return BTreeSet::new(),
                Some(SnapshotError::Cluster { .. }) => "another cluster",
                Some(SnapshotError::DuplicateNode(_)) => "duplicate node",
                Some(_) => "structure",
            };
            return BTreeSet::from([refusal.to_owned()]);
        }
        "ServiceSnapshot" => {
            let refusal = ServiceSnapshot::read(&"west".parse().unwrap(), &text).err();
            return refusal.iter().map(ToString::to_string).collect();
        }
        "Peer" => {
            let spec = peer::decode(&document["spec"]);
            let refusal = spec.and_then(|it| Translation::from_spec(&it)).err();
            return refusal.iter().map(ToString::to_string).collect();
        }
        other => panic!("{other}"),
    };
    let refusals = diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error || it.rule.name() == "skipped-document");
    refusals.map(|it| it.rule.name().to_owned()).collect()
}

/// Whether the gate of a kind takes a document.
fn is_taken(kind: &str, document: &Value) -> bool {
    refusals(kind, document).is_empty()
}

#[test]
fn every_file_is_what_is_printed() {
    let found = files_under(&folder());
    let mut known: Vec<PathBuf> = FILES.iter().map(|(_, it)| folder().join(it)).collect();
    known.sort();
    assert_eq!(found, known);
    for (arguments, file) in FILES {
        if !cfg!(feature = "snapshot") && arguments.contains(&"status") {
            continue;
        }
        let arguments = [&["schema"], arguments].concat();
        let run = clustermesh(project(), &arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(
            fs::read_to_string(folder().join(file)).unwrap() == run.stdout,
            "write it anew: clustermesh {} > schemas/{file}",
            arguments.join(" ")
        );
    }
}

#[test]
fn every_file_is_named_after_what_it_describes() {
    for (file, schema) in schemas() {
        let example = &schema["examples"][0];
        let api_version = example["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap();
        let kind = example["kind"].as_str().unwrap().to_lowercase();
        let name = format!("{group}/{kind}_{version}.json");
        assert_eq!(file.replace("-strict", ""), name);
    }
}

/// Every schema in a schema, with its pointer.
fn parts<'a>(schema: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(at.to_owned(), schema)];
    for keyword in ["$defs", "properties"] {
        for (name, part) in schema[keyword].as_object().into_iter().flatten() {
            found.extend(parts(part, &format!("{at}/{keyword}/{name}")));
        }
    }
    for part in schema["oneOf"].as_array().into_iter().flatten() {
        if part.get("const").is_some() {
            found.push((format!("{at}/{}", part["const"]), part));
        }
    }
    found
}

#[test]
fn everything_is_described() {
    for (file, schema) in schemas() {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        for (at, part) in parts(&schema, "") {
            let description = part["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{file} {at}: {description}");
        }
    }
}

#[test]
fn every_example_and_default_is_right() {
    let mut held = 0;
    for (file, schema) in schemas() {
        for (at, part) in parts(&schema, "") {
            // The definitions are there for references from the part.
            let mut whole = part.clone();
            if let Some(definitions) = schema.get("$defs") {
                whole["$defs"] = definitions.clone();
            }
            let examples = part["examples"].as_array().into_iter().flatten();
            for value in examples.chain(part.get("default")) {
                assert_eq!(violations(&whole, value), [""; 0], "{file} {at}: {value}");
                held += 1;
            }
        }
        let example = &schema["examples"][0];
        let kind = example["kind"].as_str().unwrap();
        let is_output = [
            "Report",
            "Trace",
            "TraceMistake",
            "Verification",
            "Outage",
            "Diff",
            "Capacity",
            "Firewall",
            "Graph",
            "NodeChanges",
            "NodeExplanation",
            "Status",
            "TemplateContext",
            "DnsConfiguration",
            "WireGuardConfiguration",
        ]
        .contains(&kind);
        assert!(is_output || is_taken(kind, example), "{file}");
    }
    assert!(40 < held, "{held}");
}
