//! `trace`: the way of a packet, and what is said of it.

use super::*;
use crate::support::{clustermesh, project};

const WEST_OF_EAST: &str = "rendered/west/prod--east.yaml";

fn traced(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let run = folder.run(&[&["trace"], arguments].concat());
    assert_harmless(&run);
    assert_eq!(run.stderr, "");
    (run.code, run.stdout)
}

/// Returns why it could not be done.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run(&[&["trace"], arguments].concat());
    assert_harmless(&run);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    run.stderr
}

/// Peers as `kubectl get peers -o json` prints them, each with its name, key and ranges.
fn dump(peers: &[(&str, u8, &[&str])]) -> String {
    let items: Vec<Value> = peers
        .iter()
        .map(|(name, key, ranges)| {
            json!({
                "apiVersion": "kilo.squat.ai/v1alpha1",
                "kind": "Peer",
                "metadata": { "name": name, "uid": "0", "resourceVersion": "1" },
                "spec": {
                    "allowedIPs": ranges,
                    "endpoint": { "dnsOrIP": { "ip": format!("198.18.113.{key}") }, "port": 51820 },
                    "publicKey": STANDARD.encode([*key; 32]),
                },
            })
        })
        .collect();
    format!(
        "{:#}\n",
        json!({ "apiVersion": "v1", "items": items, "kind": "List" })
    )
}

#[test]
fn tells_the_way_there_and_back() {
    let (code, text) = traced(&Folder::rendered(), &["west/n1", "east/n2"]);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 0);
}

#[test]
fn tells_who_takes_it() {
    let folder = Folder::rendered();
    folder.edit(
        WEST_OF_EAST,
        "\"10.1.2.0/24\"",
        "\"10.1.2.0/24\"\n  - \"10.1.1.0/25\"",
    );
    let (code, text) = traced(&folder, &["10.3.1.7", "10.1.1.9"]);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
}

#[test]
fn tells_that_nothing_takes_it() {
    let folder = Folder::rendered();
    fs::remove_dir_all(folder.path("rendered/west")).unwrap();
    let (code, text) = traced(&folder, &["west/n1", "east/n1"]);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
}

#[test]
fn tells_that_the_answer_does_not_get_back() {
    let folder = Folder::rendered();
    folder.edit(
        WEST_OF_EAST,
        "\"10.1.2.0/24\"",
        "\"10.1.2.0/24\"\n  - \"10.3.1.0/25\"",
    );
    let (code, text) = traced(&folder, &["west/n1", "east/n1"]);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
}

#[test]
fn takes_what_a_cluster_really_has() {
    let folder = Folder::rendered();
    let peers = dump(&[
        ("mine", 11, &["10.1.1.0/24"]),
        ("other", 12, &["10.1.1.128/25"]),
    ]);
    folder.write("west.json", &peers);
    let arguments = ["west/n1", "east/10.1.1.200", "--peers", "west=west.json"];
    let (code, text) = traced(&folder, &arguments);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
    let arguments = ["trace", "west/n1", "east/n1", "--peers", "west=-"];
    let run = folder.run_with_input(&arguments, &peers);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("     at -:"), "{}", run.stdout);
}

#[test]
fn needs_no_tree_where_all_peers_are_given() {
    let folder = Folder::mesh();
    insta::assert_snapshot!(refused(&folder, &["west/n1", "east/n1"]), @"");
    let (east, west) = (
        ("east", 11, &["10.1.1.0/24"] as &[&str]),
        ("west", 31, &["10.3.1.0/24"] as &[&str]),
    );
    folder.write("east.json", dump(&[west]));
    folder.write("north.json", dump(&[east, west]));
    folder.write("west.json", dump(&[east]));
    let given = ["east", "north", "west"].map(|it| format!("--peers={it}={it}.json"));
    let mut arguments = vec!["west/n1", "east/n1"];
    arguments.extend(given.iter().map(String::as_str));
    let (code, text) = traced(&folder, &arguments);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn is_an_object_for_programs() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "\"198.18.113.11\"", "\"10.1.2.5\"");
    let (code, text) = traced(&folder, &["west/n1", "east/n1", "--output", "json"]);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
}

#[test]
fn is_a_diagram() {
    let folder = Folder::rendered();
    let arguments = ["west/n1", "east/n2", "--output", "mermaid"];
    let (code, text) = traced(&folder, &arguments);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 0);
    fs::remove_file(folder.path("rendered/east/prod--west.yaml")).unwrap();
    let (code, text) = traced(&folder, &arguments);
    insta::assert_snapshot!(text, @"");
    assert_eq!(code, 1);
}

#[test]
fn says_what_may_have_been_meant() {
    let folder = Folder::rendered();
    let told: Vec<String> = [
        ["wst/n1", "east/n1"],
        ["west/n11", "east/n1"],
        ["west/n1", "moon"],
        ["west/n1", "east"],
        ["west/n1", "10.1.1.1/24"],
        ["west/n1", "203.0.113.1"],
        ["west/n1", "west/n2"],
        ["west/n1", "east/\u{1b}[2J"],
    ]
    .iter()
    .map(|ends| refused(&folder, ends))
    .collect();
    insta::assert_snapshot!(told.concat(), @"");
}

#[test]
fn says_what_is_missing() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let told = [
        refused(&folder, &["west/n1", "north/n1"]),
        refused(&folder, &["west/n1", "east", "--class", "service"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "wset=a.yaml"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "west=a.yaml"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "west"]),
    ];
    insta::assert_snapshot!(told.concat(), @"");
    // What is not asked for may be missing.
    assert_eq!(traced(&folder, &["west/n1", "east/n1"]).0, 0);
    folder.write("mesh.yaml", "");
    insta::assert_snapshot!(refused(&folder, &["west/n1", "east/n1"]), @"");
    folder.write("mesh.yaml", "a: [");
    assert!(refused(&folder, &["west/n1", "east/n1"]).contains("[syntax-error]"));
}

#[test]
fn tells_what_cannot_be_read_and_goes_on() {
    let folder = Folder::rendered();
    folder.write("rendered/west/broken.yaml", "kind: [");
    folder.write("rendered/west/bytes.yaml", b"\xff");
    folder.write(
        "rendered/west/refused.yaml",
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: mine }\nspec: { allowedIPs: [x], publicKey: y }\n",
    );
    folder.write("rendered/west/README.md", "kind: Peer");
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        folder.path("mesh.yaml"),
        folder.path("rendered/west/link.yaml"),
    )
    .unwrap();
    let run = folder.run(&["trace", "west/n1", "east/n1"]);
    assert_harmless(&run);
    insta::assert_snapshot!(run.stderr, @"");
    assert_eq!(run.code, 0);
}

#[test]
fn nothing_foreign_steers_terminals_or_diagrams() {
    let folder = Folder::mesh();
    let name = "n1;\u{1b}[2J\n##[add-mask]x end <b>`%%\"";
    let mut hostile = node(1, 1);
    hostile["name"] = json!(name);
    folder.keep("east", &[hostile]);
    assert_eq!(folder.run(&["render"]).code, 0);
    for format in ["human", "json", "mermaid"] {
        let (_, text) = traced(&folder, &["10.1.1.2", "west/n1", "--output", format]);
        assert!(!text.contains("##["), "{text}");
        if format == "mermaid" {
            assert!(text.contains("participant n0 as east/n1#59;"), "{text}");
            assert!(!text.contains(['`', '<', '%', '"']), "{text}");
        }
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let (_, shown) = readme.split_once("$ clustermesh trace ").unwrap();
    let (arguments, shown) = shown.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let run = clustermesh(
        &project().join("examples/quickstart"),
        &[&["trace"], arguments.as_slice()].concat(),
    );
    assert_eq!(run.stdout, shown);
}
