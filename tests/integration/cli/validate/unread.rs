//! `validate`: controls in files that are not read.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::{EXPECTATIONS, POLICY, with_control};
use crate::cli::{Folder, MESH};

const CONFIG: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: { nodes: 50 }\n";

const CACHE: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

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
fn a_control_with_any_other_ending_is_reported() {
    let (expectations, policy) = ("`expectations.yaml`", "`policies/east.yaml`");
    for (path, text, own) in [
        ("policies/east", POLICY, policy),
        ("policies/east.txt", POLICY, policy),
        ("policies/east.yam", POLICY, policy),
        ("policies/east.yaml~", POLICY, policy),
        ("policies/East.yaml.bak", POLICY, policy),
        ("policies.old/east.yaml", POLICY, policy),
        ("snapshots/east.yaml", POLICY, policy),
        ("expectations", EXPECTATIONS, expectations),
        ("expectations.yaml.orig", EXPECTATIONS, expectations),
        (
            "expectations.yaml.j2",
            "kind: Expectations # {{ x }}\napiVersion: kilo-clustermesh.io/v1\nspec: {{ y }}\n",
            expectations,
        ),
        ("snapshots/expectations.yaml", EXPECTATIONS, expectations),
        ("snapshots/expectations.json", EXPECTATIONS, expectations),
        ("policies/expectations.yaml", EXPECTATIONS, expectations),
        ("guards/expectations.yaml", EXPECTATIONS, expectations),
        ("clustermesh.yaml.bak", CONFIG, "`clustermesh.yaml`"),
    ] {
        let folder = Folder::rendered();
        put(&folder, path, text);
        assert_one(&folder, &[path, "error", own], 1);
        let run = folder.run(&["validate", "--output", "concise"]);
        assert!(!run.stdout.contains("unnamed-cluster"), "{path}: {}", run.stdout);
    }
}

#[test]
fn a_control_whose_name_differs_otherwise_is_a_warning() {
    for (path, text) in [
        ("checks.txt", EXPECTATIONS),
        ("policies/old", POLICY),
        ("policies/checks.yaml", EXPECTATIONS),
        ("snapshots/checks.yaml", EXPECTATIONS),
    ] {
        let folder = Folder::rendered();
        put(&folder, path, text);
        assert_one(&folder, &[path, "warning"], 0);
    }
    // Beside one that is read.
    let folder = Folder::rendered();
    folder.write("expectations.yaml", EXPECTATIONS);
    folder.write("expectations.yaml~", EXPECTATIONS);
    assert_one(&folder, &["expectations.yaml~", "warning"], 0);
    // Texts, templates and large files of others.
    let folder = Folder::rendered();
    let text = format!("# Controls\n\n```yaml\n{EXPECTATIONS}```\n");
    put(&folder, "README.md", &text);
    for path in ["policies/README.md", "policies/east.md", "expectations.md", "docs/policies.md"] {
        put(&folder, path, &text);
    }
    put(&folder, "large.txt", &format!("{EXPECTATIONS}{}", "# x\n".repeat(1 << 16)));
    for path in ["policy.rego", "expectations.rb", "policies/x.rego", "clustermesh.schema.json"] {
        put(&folder, path, "{ [");
    }
    assert_eq!(unread(&folder), (0, Vec::new()));
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

/// A rendered mesh in a repository.
fn repository() -> Folder {
    let folder = Folder::rendered();
    fs::create_dir(folder.path(".git")).unwrap();
    folder
}

fn put(folder: &Folder, path: &str, text: &str) {
    fs::create_dir_all(folder.path(path).parent().unwrap()).unwrap();
    folder.write(path, text);
}

#[test]
fn a_control_elsewhere_in_the_repository_is_reported() {
    for (path, text, severity, own) in [
        ("other/rules.yaml", EXPECTATIONS, "warning", "`expectations.yaml`"),
        ("other/expectations.yaml", EXPECTATIONS, "error", "`expectations.yaml`"),
        ("a/b/c/Expectation.json", EXPECTATIONS, "error", "`expectations.yaml`"),
        ("team/policies/east.yaml", POLICY, "error", "`policies/east.yaml`"),
        ("team/rules.yaml", POLICY, "warning", "`policies/CLUSTER.yaml`"),
        (".hidden/rules.yml", POLICY, "warning", "`policies/CLUSTER.yaml`"),
        ("node_modules/x/rules.yml", POLICY, "warning", "`policies/CLUSTER.yaml`"),
        ("other/clustermesh.yaml.d/clustermesh.yml", CONFIG, "error", "`clustermesh.yaml`"),
        ("other/expectations.yaml.bak", EXPECTATIONS, "error", "`expectations.yaml`"),
        ("other/East", POLICY, "error", "`policies/east.yaml`"),
        ("other/rules.yaml.j2", POLICY, "warning", "`policies/CLUSTER.yaml`"),
        ("snapshots/x/rules.yaml", POLICY, "warning", "`policies/CLUSTER.yaml`"),
    ] {
        let folder = repository();
        put(&folder, path, text);
        assert_one(&folder, &[path, severity, own], i32::from(severity == "error"));
        // Without a repository, the folders around may be anything.
        fs::remove_dir(folder.path(".git")).unwrap();
        assert_eq!(unread(&folder), (0, Vec::new()), "{path}");
    }
}

#[test]
fn a_control_around_the_folder_of_the_mesh_is_reported() {
    let outer = Folder::empty();
    fs::create_dir(outer.path(".git")).unwrap();
    fs::create_dir_all(outer.path("infra/mesh")).unwrap();
    let folder = Folder::rendered();
    for name in ["mesh.yaml", "snapshots", "rendered"] {
        fs::rename(folder.path(name), outer.path("infra/mesh").join(name)).unwrap();
    }
    put(&outer, "infra/expectations.yaml", EXPECTATIONS);
    put(&outer, "infra/mesh/x/rules.yaml", EXPECTATIONS);
    // These can be those of other meshes.
    put(&outer, "infra/other/mesh.yaml", MESH);
    put(&outer, "infra/other/policies/east.yaml", POLICY);
    let run = outer.run(&["-C", "infra/mesh", "validate", "--output", "concise"]);
    let lines: Vec<&str> = run.stdout.lines().filter(|it| it.contains("unread-control")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(run.stdout.contains("../../infra/expectations.yaml"), "{}", run.stdout);
    assert!(run.stdout.contains("x/rules.yaml"), "{}", run.stdout);
    assert!(lines.iter().all(|it| it.contains("warning")), "{lines:?}");
    assert_eq!(run.code, 0);
}

#[test]
fn files_of_others_are_no_controls() {
    let folder = repository();
    put(&folder, "chart/policy.yaml", "{{ if .Values.x }}\n");
    put(&folder, "iam/policy.json", "{}");
    put(&folder, "iam/policies/expectations.yaml", "kind: [");
    let config =
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [../mesh.yaml/mesh.yaml]\n";
    for (mark, text) in [
        ("mesh.yaml", MESH),
        ("clustermesh.yaml", config),
        ("CACHEDIR.TAG", CACHE),
        (".git", "gitdir: x"),
    ] {
        put(&folder, &format!("examples/{mark}/{mark}"), text);
        put(&folder, &format!("examples/{mark}/expectations.yaml"), EXPECTATIONS);
        put(&folder, &format!("examples/{mark}/policies/east.yaml"), POLICY);
    }
    put(&folder, "examples/meshes/meshes/prod.yaml", MESH);
    put(&folder, "examples/meshes/expectations.yaml", EXPECTATIONS);
    put(&folder, "submodule/.git/HEAD", "ref: refs/heads/main");
    put(&folder, "submodule/rules.yaml", EXPECTATIONS);
    // Links lead to what is looked at where it is, or out of the repository.
    let outside = Folder::empty();
    outside.write("rules.yaml", EXPECTATIONS);
    symlink(outside.path("."), folder.path("linked")).unwrap();
    symlink(outside.path("rules.yaml"), folder.path("chart/rules.yaml")).unwrap();
    symlink("..", folder.path("chart/up")).unwrap();
    assert_eq!(unread(&folder), (0, Vec::new()));
    put(&folder, "chart/templates/rules.yaml", EXPECTATIONS);
    assert_one(&folder, &["chart/templates/rules.yaml", "warning"], 0);
}

/// An empty file would be enough to hide all controls in a folder.
#[test]
fn a_folder_that_only_looks_foreign_is_searched() {
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [nowhere.yaml]\n";
    for (mark, text) in [
        ("mesh.yaml", ""),
        ("mesh.yaml", "kind: ClusterMesh"),
        ("mesh.yaml", EXPECTATIONS),
        ("meshes/x.yaml", ""),
        ("CACHEDIR.TAG", ""),
        (".git", ""),
        (".git/x", ""),
    ] {
        let folder = repository();
        put(&folder, &format!("conf/{mark}"), text);
        put(&folder, "conf/expectations.yaml", EXPECTATIONS);
        let (code, lines) = unread(&folder);
        assert!(lines.iter().any(|it| it.contains("conf/expectations.yaml")), "{mark}: {lines:?}");
        assert_eq!(code, 1, "{mark}");
    }
    let folder = repository();
    put(&folder, "conf/clustermesh.yaml", config);
    put(&folder, "conf/expectations.yaml", EXPECTATIONS);
    assert_eq!(unread(&folder).1.len(), 2);
}

#[test]
fn the_end_of_the_search_is_reported() {
    let folder = repository();
    let deep = "d/".repeat(40);
    put(&folder, &format!("{deep}rules.yaml"), EXPECTATIONS);
    assert_one(&folder, &["d/d/", "warning", "more than 32 folders"], 0);
    let folder = repository();
    for number in 0..101 {
        fs::create_dir_all(folder.path(&format!("f{number}"))).unwrap();
        for entry in 0..1000 {
            fs::File::create(folder.path(&format!("f{number}/{entry}"))).unwrap();
        }
    }
    put(&folder, "a/b/rules.yaml", EXPECTATIONS);
    assert_one(&folder, &["f9", "warning", "too large"], 0);
}

#[test]
fn a_config_under_another_name_is_an_error() {
    for path in ["clustermesh.yml", "ClusterMesh.yaml", "clustermesh.json"] {
        let folder = Folder::rendered();
        folder.write(path, CONFIG);
        assert_one(&folder, &[path, "error", "`clustermesh.yaml`"], 1);
        // Another config is for other runs.
        folder.write("clustermesh.yaml", CONFIG);
        assert_eq!(unread(&folder), (0, Vec::new()), "{path}");
    }
    let folder = Folder::rendered();
    folder.write("settings.yaml", CONFIG);
    assert_one(&folder, &["settings.yaml", "warning", "a config must be in"], 0);
    assert_eq!(folder.run(&["validate", "--config", "settings.yaml"]).code, 0);
}
