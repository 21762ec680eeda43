//! Every folder in `examples/`: same input, same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;

use crate::support::{clustermesh, copy, project};

/// What `validate` tells of an example that is wrong on purpose.
const FINDINGS: &str = "findings.txt";

/// The examples that can be rendered.
fn examples() -> Vec<PathBuf> {
    let (wrong, sound): (Vec<PathBuf>, _) = folders()
        .into_iter()
        .partition(|folder| folder.join(FINDINGS).exists());
    assert!(!wrong.is_empty());
    sound
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join("examples")).unwrap();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(3 <= folders.len());
    folders
}

fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path.clone(), fs::read_to_string(path).unwrap());
        }
    }
    files
}

/// The files of a copy, under the names they have in the original.
fn files_of_copy(folder: &Path, original: &Path) -> BTreeMap<PathBuf, String> {
    files(folder)
        .into_iter()
        .map(|(path, text)| (original.join(path.strip_prefix(folder).unwrap()), text))
        .collect()
}

#[test]
fn renders_what_is_committed() {
    for example in examples() {
        let scratch = tempfile::tempdir().unwrap();
        copy(&example, scratch.path());
        fs::remove_dir_all(scratch.path().join("rendered")).unwrap();
        let run = clustermesh(scratch.path(), &["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(files_of_copy(scratch.path(), &example), files(&example));
    }
}

#[test]
fn tells_the_mistakes_that_are_committed() {
    let wrong = folders()
        .into_iter()
        .filter(|it| it.join(FINDINGS).exists());
    for example in wrong {
        let run = clustermesh(&example, &["validate", "--output", "concise"]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let expected = fs::read_to_string(example.join(FINDINGS)).unwrap();
        assert_eq!(run.stdout, expected);
        let rules: BTreeSet<&str> = expected
            .lines()
            .filter_map(|line| line.split_once('[')?.1.split_once(']'))
            .map(|(rule, _)| rule)
            .collect();
        assert!(30 <= rules.len(), "{rules:?}");
        // Nothing comes of it.
        let before = files(&example);
        assert_eq!(clustermesh(&example, &["render"]).code, 1);
        assert_eq!(files(&example), before);
    }
}

#[test]
fn is_up_to_date_by_its_own_check() {
    for example in examples() {
        let run = clustermesh(&example, &["render", "--check"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    }
}

#[test]
fn makes_the_snapshots_from_the_dumps() {
    for example in examples() {
        let scratch = tempfile::tempdir().unwrap();
        copy(&example, scratch.path());
        let snapshots = scratch.path().join("snapshots");
        let committed = files(&snapshots);
        fs::remove_dir_all(&snapshots).unwrap();
        for path in committed.keys() {
            let cluster = path.file_stem().unwrap().to_str().unwrap();
            let dump = format!("nodes/{cluster}.json");
            let run = clustermesh(scratch.path(), &["snapshot", cluster, "--from", &dump]);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        assert_eq!(files(&snapshots), committed);
    }
}

/// What the roles of a file of manifests grant, a line each.
fn granted(file: &str) -> Vec<String> {
    let text = fs::read_to_string(project().join("examples").join(file)).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    let documents = documents.map(|it| serde_yaml::Value::deserialize(it).unwrap());
    let mut granted = Vec::new();
    for document in documents {
        for rule in document["rules"].as_sequence().into_iter().flatten() {
            let words = |field: &str| {
                let words = rule[field].as_sequence().into_iter().flatten();
                let words: Vec<&str> = words.map(|it| it.as_str().unwrap()).collect();
                words.join(",")
            };
            let (verbs, groups) = (words("verbs"), words("apiGroups"));
            let (resources, names) = (words("resources"), words("resourceNames"));
            let kind = document["kind"].as_str().unwrap();
            granted.push(format!("{kind}: {verbs} {groups}/{resources} {names}"));
        }
    }
    granted
}

#[test]
fn rights_are_to_list_nodes_and_to_read_named_secrets() {
    assert_eq!(granted("rbac.yaml"), ["ClusterRole: list /nodes "]);
    assert_eq!(
        granted("rbac-secrets.yaml"),
        ["Role: get /secrets west-kubeconfig"]
    );
}
