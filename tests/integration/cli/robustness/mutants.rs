//! Sound input, damaged at random: no panic, no hang, nothing raw, and all is written or nothing.
//!
//! The cases are the same in every run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::{Value, json};

use crate::cli::{Folder, HEADER, MESH, api_node, assert_harmless, node, walk};
use crate::support::Run;

mod mutation;

use mutation::Mutation;

/// How many mutants there are of each kind of file.
const CASES: u32 = 120;

const FORMATS: [&str; 7] = ["human", "concise", "json", "sarif", "github", "gitlab", "markdown"];

const CONFIG: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [mesh.yaml]
snapshots: snapshots
rendered: rendered
clusters:
  east:
    kubeconfig: east.yaml
    context: admin@east
limits:
  nodes: 500
  lostPercent: 25
rules:
  host-bits: { level: error }
  node-not-ready: { level: off, reason: edge nodes sleep, until: 2037-01-31 }
ignore:
  - { rule: missing-endpoint, cluster: east, node: n1, reason: lab node }
";

/// Mutants of a text, each with the number of its case.
fn each_mutant(text: &str, one: impl Strategy<Value = Mutation>, check: impl Fn(usize, &[u8])) {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 100,
        rng_seed: RngSeed::Fixed(0x6b69_6c6f),
        ..ProptestConfig::default()
    };
    let mutants = (any::<usize>(), vec(one, 1..4)).prop_map(|(number, mutations)| {
        let mut bytes = text.as_bytes().to_vec();
        for mutation in mutations {
            mutation.apply(&mut bytes);
        }
        (number, bytes)
    });
    let outcome = TestRunner::new(config).run(&mutants, |(number, bytes)| {
        check(number, &bytes);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Runs, with colours on so that escapes of others are not just stripped.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let run = folder.run_with(&[], &[arguments, &["--color=always"]].concat());
    assert!((0..=2).contains(&run.code), "{arguments:?}: {run:?}");
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert_harmless(&run);
    run
}

/// Validates in the format of this number; what is for programs can be read by them.
fn validate(folder: &Folder, number: usize) -> Run {
    let format = FORMATS[number % FORMATS.len()];
    let run = run(folder, &["validate", "--output", format]);
    if matches!(format, "json" | "sarif" | "gitlab") && !run.stdout.is_empty() {
        run.json();
    }
    run
}

/// Renders into a folder without a tree, and checks that all is there or nothing.
fn render_anew(folder: &Folder) -> Run {
    let render = run(folder, &["render"]);
    let rendered = folder.path("rendered");
    if render.code == 0 {
        let check = run(folder, &["render", "--check"]);
        assert_eq!((check.code, check.stdout.as_str()), (0, ""));
        fs::remove_dir_all(rendered).unwrap();
    } else {
        assert!(!rendered.exists(), "{}", render.stderr);
    }
    render
}

/// The tree, of which not all need be text.
fn tree(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walk(&folder.path("rendered")).into_iter();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    files.map(read).collect()
}

/// Fails if one of the two takes what the other refuses, guards apart.
fn assert_agreed(validate: &Run, render: &Run) {
    let is_guarded = render.stderr.contains("lost-peers");
    assert!(is_guarded || (validate.code == 0) == (render.code == 0), "{validate:?}\n{render:?}");
}

#[test]
fn meshes() {
    let folder = Folder::mesh();
    each_mutant(MESH, mutation::of_text(), |number, bytes| {
        folder.write("mesh.yaml", bytes);
        let validate = validate(&folder, number);
        assert_agreed(&validate, &render_anew(&folder));
        let mut entries: Vec<_> = fs::read_dir(folder.path("."))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        entries.sort();
        assert_eq!(entries, ["mesh.yaml", "snapshots"]);
    });
}

#[test]
fn meshes_in_json() {
    let folder = Folder::mesh();
    let mesh: Value = serde_yaml::from_str(MESH).unwrap();
    each_mutant(&mesh.to_string(), mutation::of_json(), |number, bytes| {
        folder.write("mesh.yaml", bytes);
        let validate = validate(&folder, number);
        assert_agreed(&validate, &render_anew(&folder));
    });
}

#[test]
fn configs() {
    let folder = Folder::rendered();
    let tree = folder.touches("rendered");
    each_mutant(CONFIG, mutation::of_text(), |number, bytes| {
        folder.write("clustermesh.yaml", bytes);
        validate(&folder, number);
        run(&folder, &["config"]);
        run(&folder, &["config", "--output", "json"]);
        // A mutant may have found another place for the tree: nothing is written.
        run(&folder, &["render", "--check"]);
    });
    assert_eq!(folder.touches("rendered"), tree);
}

#[test]
fn snapshots() {
    let folder = Folder::mesh();
    let text = folder.read("snapshots/east.json");
    each_mutant(&text, mutation::of_json(), |number, bytes| {
        folder.write("snapshots/east.json", bytes);
        let validate = validate(&folder, number);
        assert_agreed(&validate, &render_anew(&folder));
    });
}

#[test]
fn snapshots_beside_a_tree() {
    let folder = Folder::rendered();
    let text = folder.read("snapshots/east.json");
    each_mutant(&text, mutation::of_json(), |number, bytes| {
        folder.write("snapshots/east.json", bytes);
        let before = folder.touches("rendered");
        validate(&folder, number);
        let render = run(&folder, &["render"]);
        if render.code == 0 {
            assert_eq!(run(&folder, &["render", "--check"]).code, 0);
        } else {
            assert_eq!(folder.touches("rendered"), before);
        }
    });
}

#[test]
fn dumps() {
    let folder = Folder::mesh();
    let kept = folder.read("snapshots/east.json");
    let items = json!([api_node(1, 1), api_node(1, 2)]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    each_mutant(&list, mutation::of_json(), |number, bytes| {
        folder.write("dump", bytes);
        folder.write("snapshots/east.json", &kept);
        let arguments = ["snapshot", "east", "--from", "dump", "--accept", "east"];
        let run = run(&folder, &arguments);
        let written = folder.read("snapshots/east.json");
        if run.code == 0 {
            // What is written can be read, and shows nothing raw.
            crate::cli::assert_plain(&written);
            let validate = validate(&folder, number);
            assert_ne!(validate.code, 2, "{validate:?}\n{written}");
        } else {
            assert_eq!(written, kept);
        }
    });
}

#[test]
fn files_of_the_tree() {
    let folder = Folder::rendered();
    let path = "rendered/east/prod--west.yaml";
    let sound = folder.read(path);
    let west = format!("{}\n", node(3, 1));
    for text in [sound.clone(), format!("{HEADER}{west}")] {
        each_mutant(&text, mutation::of_text(), |number, bytes| {
            folder.write(path, bytes);
            // This one is not requested, so its Peers are counted.
            folder.write("rendered/east/prod--south.yaml", bytes);
            let before = tree(&folder);
            validate(&folder, number);
            run(&folder, &["render", "--check"]);
            let render = run(&folder, &["render"]);
            if render.code == 0 {
                assert_eq!(folder.read(path), sound);
            } else {
                assert!(tree(&folder) == before, "{}", render.stderr);
            }
        });
    }
}
