//! Templates state whether a test runs them, because people copy them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project;

/// Returns the files of a folder of the project, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.is_file());
    files.sort();
    files
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|it| it == extension)
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// Returns whether a comment states whether a test runs the file.
fn states_tests(text: &str) -> bool {
    text.lines().any(|line| {
        let is_comment = line.starts_with('#') || line.starts_with("{#");
        let tests = ["A test of clustermesh ", "Tests of clustermesh ", "No test of clustermesh "];
        is_comment && tests.iter().any(|it| line.contains(it))
    })
}

#[test]
fn files_that_people_copy_state_whether_a_test_runs_them() {
    let jobs = files("templates/init").into_iter().filter(|it| has_extension(it, "yml"));
    let silent = files("templates/gallery").into_iter().chain(jobs);
    let silent = silent.filter(|it| !states_tests(&fs::read_to_string(it).unwrap()));
    assert_eq!(silent.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn readmes_state_whether_a_test_uses_each_file() {
    for folder in ["flux", "argocd", "argocd/plugin"] {
        let readme = fs::read_to_string(project().join(folder).join("README.md")).unwrap();
        for file in files(folder).iter().filter(|it| has_extension(it, "yaml")) {
            let row = format!("| [`{0}`]({0}) |", name(file));
            let row = readme.lines().find(|it| it.starts_with(&row));
            let cells: Vec<&str> = row.unwrap_or_default().split(" | ").collect();
            let is_stated = cells.len() == 3 && !cells[2].trim_matches([' ', '|']).is_empty();
            assert!(is_stated, "{folder}: {}: {cells:?}", name(file));
        }
    }
}

#[test]
fn sees_a_file_that_states_nothing() {
    assert!(states_tests("#!/bin/sh\n# A test of clustermesh runs this script.\n"));
    assert!(states_tests("# a\n{# No test of clustermesh runs it. -#}\n"));
    assert!(!states_tests("# Sends a message.\nkind: A test of clustermesh \n"));
}
