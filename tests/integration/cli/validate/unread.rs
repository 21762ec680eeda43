//! `validate`: controls in files that are not read.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::{EXPECTATIONS, POLICY, with_control};
use crate::cli::{Folder, MESH};

/// The lines about controls that are not read, and the exit code.
fn unread(folder: &Folder) -> (i32, Vec<String>) {
    let run = folder.run(&["validate", "--output", "concise"]);
    let lines = run.stdout.lines().filter(|it| it.contains("unread-control"));
    (run.code, lines.map(str::to_owned).collect())
}

fn assert_one(folder: &Folder, parts: &[&str], code: i32) {
    let (found, lines) = unread(folder);
    let [line] = lines.as_slice() else { panic!("{parts:?}: {lines:?}") };
    for part in parts {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(found, code, "{line}");
}

#[test]
fn a_control_in_the_file_of_a_mesh_is_reported() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n  - {}",
        POLICY.trim_end().replace('\n', "\n    ")
    );
    for (text, own) in [
        (EXPECTATIONS.to_owned(), "`expectations.yaml`"),
        (POLICY.to_owned(), "`policies/CLUSTER.yaml`"),
        (list, "`policies/CLUSTER.yaml`"),
    ] {
        let folder = Folder::rendered();
        folder.write("mesh.yaml", format!("{MESH}---\n{text}"));
        assert_one(&folder, &["mesh.yaml:", "warning[unread-control]", own], 0);
        let run = folder.run(&["validate", "--output", "concise"]);
        assert!(!run.stdout.contains("skipped-document"), "{}", run.stdout);
    }
}

#[test]
fn a_control_in_the_folder_of_meshes_is_reported() {
    for (path, text, own) in [
        ("meshes/expectations.yaml", EXPECTATIONS, "`expectations.yaml`"),
        ("meshes/expectations.json", EXPECTATIONS, "`expectations.yaml`"),
        ("meshes/east.yaml", POLICY, "`policies/east.yaml`"),
        ("meshes/policies/east.yaml", POLICY, "`policies/east.yaml`"),
    ] {
        let folder = Folder::rendered();
        fs::create_dir_all(folder.path("meshes/policies")).unwrap();
        folder.write("meshes/prod.yaml", MESH);
        fs::remove_file(folder.path("mesh.yaml")).unwrap();
        folder.write(path, text);
        assert_one(&folder, &[path, "error[unread-control]", own], 1);
    }
}

#[test]
fn a_control_in_a_folder_below_is_reported() {
    for path in ["policies/team/east.yaml", "policies/a/b/east.yaml", "policy/team/east.yaml"] {
        let (code, lines) = with_control(path, POLICY);
        let [line] = lines.as_slice() else { panic!("{path}: {lines:?}") };
        assert!(line.contains("error") && line.contains("`policies/east.yaml`"), "{line}");
        assert_eq!(code, 1, "{path}");
    }
    // A policy that is read beside it.
    let folder = Folder::rendered();
    fs::create_dir_all(folder.path("policies/old")).unwrap();
    folder.write("policies/east.yaml", POLICY.replace("west", "west, north"));
    assert_eq!(unread(&folder), (0, Vec::new()));
    folder.write("policies/old/east.yaml", POLICY);
    assert_one(&folder, &["policies/old/east.yaml", "warning"], 0);
}

#[test]
fn links_are_followed() {
    let folder = Folder::rendered();
    fs::create_dir(folder.path("p2")).unwrap();
    folder.write("p2/east.yaml", POLICY);
    assert_eq!(unread(&folder), (0, Vec::new()));
    symlink("p2", folder.path("policy")).unwrap();
    assert_one(&folder, &["policy/east.yaml", "error", "`policies/east.yaml`"], 1);
    // In circles.
    symlink("..", folder.path("p2/up")).unwrap();
    symlink(".", folder.path("p2/here")).unwrap();
    assert_one(&folder, &["policy/east.yaml", "error", "`policies/east.yaml`"], 1);
    // Out of the repository.
    fs::remove_file(folder.path("policy")).unwrap();
    let outside = Folder::empty();
    symlink(outside.path("."), folder.path("policy")).unwrap();
    assert_one(&folder, &["policy", "error", "cannot read the folder"], 1);
}

#[test]
fn every_document_counts() {
    let two = |text: &str| format!("kind: ConfigMap\n---\n{text}");
    for (path, text) in [("expectations.yml", EXPECTATIONS), ("policy/east.yaml", POLICY)] {
        let (code, lines) = with_control(path, &two(text));
        assert!(lines[0].contains("error[unread-control]"), "{lines:?}");
        assert_eq!((lines.len(), code), (1, 1), "{path}");
    }
}

#[test]
fn a_control_that_cannot_be_read_is_an_error() {
    for path in ["expectations.yml", "policy.yaml"] {
        let (code, lines) = with_control(path, "kind: [");
        assert!(lines[0].contains("error[unread-control]"), "{path}: {lines:?}");
        assert_eq!((lines.len(), code), (1, 1), "{path}");
    }
    let (code, lines) = with_control("policy/east.yaml", &format!("{POLICY}  bad: ["));
    assert!(lines[0].contains("error") && lines[0].contains("`policies/east.yaml`"), "{lines:?}");
    assert_eq!((lines.len(), code), (1, 1));
    let (_, lines) = with_control("checks.yaml", &format!("{EXPECTATIONS}  bad: ["));
    assert!(lines[0].contains("warning"), "{lines:?}");
    for path in ["expectations.yml", "policy/east.yaml"] {
        let folder = Folder::rendered();
        fs::create_dir(folder.path("policy")).unwrap();
        fs::write(folder.path(path), b"caf\xe9").unwrap();
        assert_one(&folder, &[path, "error", "not UTF-8"], 1);
        fs::remove_file(folder.path(path)).unwrap();
        symlink("nowhere", folder.path(path)).unwrap();
        assert_one(&folder, &[path, "error", "cannot read"], 1);
    }
}

/// The growth is linear and small, and no control is missed.
#[test]
fn many_large_files_are_looked_at_in_time() {
    let folder = Folder::rendered();
    fs::create_dir(folder.path("policy")).unwrap();
    let names: Vec<String> = (0..2700).map(|it| format!("    - c{it:05}\n")).collect();
    let text = POLICY.replace(" [west]\n", &format!("\n{}", names.concat()));
    for number in 0..300 {
        folder.write(&format!("policy/p{number}.yaml"), &text);
    }
    let start = Instant::now();
    let (code, lines) = unread(&folder);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let [line] = lines.as_slice() else { panic!("{} lines", lines.len()) };
    assert!(line.contains("error") && line.contains("and 299 more files"), "{line}");
    assert_eq!(code, 1);
}
