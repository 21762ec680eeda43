//! Findings about the rendered tree, and about the next render.

use std::fs;

use serde_json::json;

use crate::cli::{Folder, HEADER, NORTH, assert_harmless, node};
use crate::support::assert_contains;

/// A line for each finding of `validate`, and its exit code.
fn validate(folder: &Folder) -> (i32, String) {
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_harmless(&run);
    (run.code, run.stdout)
}

/// The rules that `validate` names.
fn rules(folder: &Folder) -> Vec<String> {
    let run = folder.run(&["validate", "--output", "json"]);
    let report = run.json();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
}

/// The findings that a run prints for a person, as codes.
fn report(text: &str) -> Vec<&str> {
    let mut codes: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once('[')?.1.split_once("]: "))
        .map(|(code, _)| code)
        .collect();
    codes.sort_unstable();
    codes
}

/// Four nodes in `east`, rendered.
fn four() -> Folder {
    let folder = Folder::mesh();
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3), node(1, 4)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

#[test]
fn a_tree_that_is_as_it_shall_be_is_not_told() {
    assert_eq!(validate(&Folder::rendered()), (0, String::new()));
    assert_eq!(validate(&four()), (0, String::new()));
}

#[test]
fn tells_what_would_vanish_and_move() {
    let folder = four();
    let (mut other, mut renamed) = (node(1, 2), node(1, 3));
    other["annotations"]["kilo.squat.ai/key"] =
        node(1, 9)["annotations"]["kilo.squat.ai/key"].clone();
    renamed["name"] = json!("n9");
    folder.keep("east", &[other, renamed]);
    let (code, text) = validate(&folder);
    assert_eq!(code, 0);
    insta::assert_snapshot!(text, @"
    rendered/north/prod--east.yaml:9:9: warning[shrunk-source] east: 2 of 4 Peers would be removed: prod--east--n1, prod--east--n4 (targets north, west)
    rendered/north/prod--east.yaml:45:9: warning[renamed-peer] east/n9: Peer prod--east--n3 would be renamed to prod--east--n9 (targets north, west)
    rendered/north/prod--east.yaml:27:9: notice[changed-key] east/n2: Peer prod--east--n2 would get another key (targets north, west)
    ");
}

#[test]
fn points_to_the_node_that_takes_its_peer_along() {
    let folder = four();
    let mut keyless = node(1, 3);
    keyless["annotations"]["kilo.squat.ai/key"] = json!("");
    folder.keep("east", &[node(1, 1), node(1, 2), keyless]);
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @r#"
    warning[missing-public-key]: east/n3: left out: annotation kilo.squat.ai/key is missing or empty
     --> snapshots/east.json:1:1409
      |
    1 | ...ilo.squat.ai/wireguard-ip":"10.101.0.3/24"},"labels":{},"name":"n3","podCIDRs":["10.1.3.0/24"],"uid":"1-3"}]}
      |                                                                   ^^^^
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[shrunk-source]: east: 2 of 4 Peers would be removed: prod--east--n3, prod--east--n4 (targets north, west)
      --> rendered/north/prod--east.yaml:45:9
       |
    45 |   name: prod--east--n3
       |         ^^^^^^^^^^^^^^ would be removed
       |
      ::: snapshots/east.json:1:1409
       |
     1 | ...quat.ai/wireguard-ip":"10.101.0.3/24"},"labels":{},"name":"n3","podCIDRs":["10.1.3.0/24"],"uid":"1-3"}]}
       |                                                              ---- left out
    help: check why these nodes are left out and whether the snapshot is correct, unless the nodes were removed
    "#);
}

#[test]
fn an_anchor_that_moves_is_reported() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "10.101.0.0/24\n",
        "10.101.0.0/24\n      serviceCIDR: 10.201.0.0/16\n",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let mut first = node(1, 3);
    first["name"] = json!("a");
    folder.keep("east", &[first, node(1, 1), node(1, 2)]);
    insta::assert_snapshot!(validate(&folder).1, @"rendered/north/prod--east.yaml:9:9: warning[moved-anchor] east: 10.201.0.0/16 would move from prod--east--n1 to prod--east--a (targets north, west), which the mesh does not request");
    // Now people ask for it, at first only if another node fails.
    let anchors = |nodes: &str| format!("10.201.0.0/16\n      anchors: [{{ nodes: {nodes} }}]\n");
    folder.edit("mesh.yaml", "10.201.0.0/16\n", &anchors("[n1, a]"));
    folder.keep("east", &[node(1, 2)]);
    let (_, text) = validate(&folder);
    assert_contains(&text, "n1 to prod--east--n2 (targets north, west), because its node is gone");
    folder.edit("mesh.yaml", "[n1, a]", "[n2, n1]");
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    insta::assert_snapshot!(validate(&folder).1, @"rendered/north/prod--east.yaml:9:9: notice[moved-anchor] east: 10.201.0.0/16 would move from prod--east--n1 to prod--east--n2 (targets north, west), as set in `anchors`");
}

#[test]
fn validate_and_render_tell_the_same() {
    let folder = four();
    folder.keep("east", &[node(1, 1)]);
    folder.edit("mesh.yaml", NORTH, "");
    fs::write(folder.path("rendered/west/x.yaml"), "kind: Peer\n").unwrap();
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    let expected = report(&run.stdout);
    assert!(
        expected.contains(&"lost-target") && expected.contains(&"shrunk-source"),
        "{expected:?}"
    );
    let check = folder.run(&["render", "--check"]);
    assert_eq!((check.code, report(&check.stderr)), (1, expected.clone()));
    let render = folder.run(&["render"]);
    assert_eq!((render.code, report(&render.stderr)), (1, expected));
    let help = "run `clustermesh render --allow-empty north --allow-empty '*/north'`\n";
    assert!(run.stdout.contains(help) && render.stderr.contains(help), "{}", run.stdout);
    let allowed = ["render", "--allow-empty", "north", "--allow-empty", "*/north"];
    assert_eq!(folder.run(&allowed).code, 0);
    assert_eq!(rules(&folder), ["stray-manifest", "unused-snapshot"]);
}

#[test]
fn a_loss_goes_by_the_limits() {
    let folder = four();
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    assert_eq!(rules(&folder), ["shrunk-source"]);
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    for limit in ["lostPeers: 3", "lostPeersPercent: 50"] {
        folder.write("clustermesh.yaml", format!("{config}limits: {{ {limit} }}\n"));
        assert_eq!(rules(&folder), [""; 0], "{limit}");
    }
}

/// The entry is the cause, so it is what a person reads first.
#[test]
fn peers_that_an_edited_selector_removes_stand_below_it() {
    let folder = four();
    let nodes = [1, 2, 3, 4].map(|number| {
        let mut node = node(1, number);
        node["labels"] = json!({ "pool": if number == 1 { "a" } else { "b" } });
        node
    });
    folder.keep("east", &nodes);
    let selector = "- name: east\n      nodeSelector: { matchLabels: { pool: a } }";
    folder.edit("mesh.yaml", "- name: east", selector);
    let run = folder.run(&["validate"]);
    let lines: Vec<&str> = run.stdout.lines().filter(|it| it.contains("]: ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"warning[node-not-selected]: east: 3 nodes are not selected by `nodeSelector`: `n2`, `n3`, `n4` (1 other finding follows from it: warning[shrunk-source])");
}

#[test]
fn an_expected_loss_is_silenced_by_cluster_node_and_level() {
    let folder = four();
    let mut rekeyed = node(1, 2);
    rekeyed["annotations"]["kilo.squat.ai/key"] =
        node(1, 9)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("east", &[node(1, 1), rekeyed]);
    assert_eq!(rules(&folder), ["shrunk-source", "changed-key"]);
    let said = |fields: &str| {
        let config = format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\n{fields}\n");
        folder.write("clustermesh.yaml", config);
        (rules(&folder), folder.run(&["render", "--check", "--fail-on", "warning"]).stderr)
    };
    let ignore = |rest: &str| said(&format!("ignore: [{{ {rest}, reason: x }}]")).0;
    assert_eq!(ignore("rule: shrunk-source, cluster: east"), ["changed-key"]);
    assert_eq!(ignore("rule: changed-key, cluster: east, node: n2"), ["shrunk-source"]);
    let other = ["shrunk-source", "unused-ignore", "changed-key"];
    assert_eq!(ignore("rule: shrunk-source, cluster: west").len(), other.len());
    assert_eq!(said("rules: { shrunk-source: { level: notice } }").0.len(), 2);
    fs::remove_file(folder.path("clustermesh.yaml")).unwrap();
    assert_eq!(folder.run(&["render", "--fail-on", "warning"]).code, 1);
    said("rules: { shrunk-source: { level: notice } }");
    assert_eq!(folder.run(&["render", "--fail-on", "warning"]).code, 0);
}

#[test]
fn a_guard_is_silenced_by_its_flag_alone() {
    let folder = Folder::rendered();
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    for field in
        ["rules: { lost-target: { level: notice } }", "ignore: [{ rule: lost-source, reason: x }]"]
    {
        folder.write("clustermesh.yaml", format!("{config}{field}\n"));
        let run = folder.run(&["validate"]);
        assert_eq!(run.code, 1);
        assert_contains(&run.stderr, "it prevents rendering");
    }
}

#[test]
fn an_edit_is_reported_until_it_is_overwritten() {
    let folder = Folder::rendered();
    folder.edit("rendered/west/prod--east.yaml", "51820", "51821 # firewall");
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @"
    warning[edited-file]: west: prod--east.yaml was edited: the Peers differ from what clustermesh writes
      --> rendered/west/prod--east.yaml:17:5
       |
    17 |     port: 51821 # firewall
       |     ^^^^^^^^^^^^^^^^^^^^^^ first difference
    help: make the change in the mesh instead: `clustermesh render` overwrites or removes this file
    ");
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 1);
    let run = folder.run(&["render", "--fail-on", "warning"]);
    assert_eq!((run.code, report(&run.stderr)), (0, vec!["edited-file"]));
    assert_eq!(validate(&folder), (0, String::new()));
}

#[test]
fn what_is_only_out_of_date_is_not_edited() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.1.0.0/16]", "10.1.0.0/16]\n      serviceCIDR: 10.111.0.0/16");
    assert_eq!(validate(&folder), (0, String::new()));
    assert_eq!(folder.run(&["render", "--check"]).code, 1);
}

#[test]
fn tells_what_flux_and_argo_cd_would_choke_on() {
    let folder = Folder::rendered();
    let peers = folder.read("rendered/west/prod--east.yaml");
    folder.write("rendered/east/prod--west.yaml", peers.replace("name: prod", "name: ${X}"));
    folder.write("rendered/north/copy.yaml", folder.read("rendered/north/prod--east.yaml"));
    folder.write("rendered/north/empty.yaml", HEADER);
    folder.write("rendered/north/Kustomization", "resources: []\n");
    folder.write("rendered/west/prod--east.yaml", peers.replace('\n', "\r\n"));
    folder.write("rendered/west/prod--north.yaml", format!("{HEADER}<<<<<<< ours\n"));
    folder.write("rendered/west/deep/more.yaml", "x");
    folder.write("rendered/.gitkeep", "");
    let (code, text) = validate(&folder);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text, @"
    rendered/north/Kustomization: error[rival-kustomization] north: `rendered/north/Kustomization` (a file) is a second kustomization, not written by clustermesh
    rendered/west/deep: warning[stray-manifest] west: `rendered/west/deep` (a folder) was not written by clustermesh and may be applied together with the Peers
    rendered/east/prod--west.yaml:9:3: warning[variable-in-manifest] east: prod--west.yaml contains `${`, which Flux may replace as a variable
    rendered/east/prod--west.yaml:9:3: warning[edited-file] east: prod--west.yaml was edited: the Peers differ from what clustermesh writes (2 other findings follow from it)
    rendered/north/empty.yaml:1:1: warning[empty-manifest] north: empty.yaml contains no Peer
    rendered/west/prod--east.yaml:1:1: warning[edited-file] west: lines of prod--east.yaml end with a carriage return
    rendered/west/prod--north.yaml:2:1: warning[unreadable-manifest] west: prod--north.yaml cannot be read: git's conflict markers: two versions of the file were not merged
    rendered/north/kustomization.yaml:1:1: warning[mismatched-kustomization] north: kustomization.yaml does not list copy.yaml, empty.yaml
    rendered/north/copy.yaml:9:9: warning[clashing-peers] north: duplicate Peers `prod--east--n1`, `prod--east--n2`, also in prod--east.yaml
    rendered/.gitkeep: notice[foreign-file] `rendered/.gitkeep` (a file) was not written by clustermesh
    ");
}

#[test]
fn a_part_of_a_commit_is_reported() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("rendered/west/prod--east.yaml")).unwrap();
    fs::write(
        folder.path("rendered/east/kustomization.yaml"),
        format!("{HEADER}resources:\n- prod--west.yaml\n"),
    )
    .unwrap();
    insta::assert_snapshot!(validate(&folder).1, @"
    rendered/east/kustomization.yaml:1:1: warning[mismatched-kustomization] east: kustomization.yaml does not list prod--north.yaml
    rendered/west/kustomization.yaml:1:1: warning[mismatched-kustomization] west: kustomization.yaml lists missing files: prod--east.yaml
    ");
}

#[test]
fn hostile_files_are_reported_and_harm_nobody() {
    let folder = Folder::rendered();
    let mut laughs = format!("{HEADER}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..9 {
        let alias = format!("*a{}, ", i - 1).repeat(10);
        laughs.push_str(&[&format!("a{i}: &a{i} "), "[", alias.as_str(), "]\n"].concat());
    }
    folder.write("rendered/east/laughs.yaml", &laughs);
    folder.write("rendered/east/deep.yaml", format!("{HEADER}{}", "[".repeat(200_000)));
    folder.write("rendered/east/many.yaml", format!("{HEADER}{}", "---\n".repeat(300_000)));
    folder.write("rendered/east/bytes.yaml", [HEADER.as_bytes(), b"\xff\x00\x1b[2J"].concat());
    let name = "  name: \"a\\e[2J\\u202e\"\n  labels: { kilo-clustermesh.io/source-cluster: \"\\e]0;x\" }\n";
    folder.write("rendered/east/escape.yaml", format!("{HEADER}kind: Peer\nmetadata:\n{name}"));
    folder.write("rendered/a\u{1b}[2J/b.yaml", format!("{HEADER}kind: Peer\nmetadata:\n{name}"));
    let run = folder.run(&["validate"]);
    assert_harmless(&run);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let (_, text) = validate(&folder);
    for file in ["laughs", "deep", "many", "bytes"] {
        let problem = format!("unreadable-manifest] east: {file}.yaml cannot be read: ");
        assert_contains(&text, &problem);
    }
    folder.turn_off("edited-file");
    assert_contains(&validate(&folder).1, "refused-peer");
    assert_harmless(&folder.run(&["render"]));
}

/// A file that looks like a generated one, beside it: the operator's anchors had Peers of their
/// own.
#[test]
fn peers_of_one_key_are_reported() {
    let folder = Folder::rendered();
    let peers = folder.read("rendered/west/prod--east.yaml");
    let anchors = peers.replace("prod--east--n", "prod--east--anchor-n");
    folder.write("rendered/west/prod--anchors.yaml", anchors);
    let twins = |text: &str| {
        let lines = text.lines().filter(|it| it.contains("twin-peers"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(twins(&validate(&folder).1), @"
    rendered/west/prod--anchors.yaml:9:9: warning[twin-peers] west: the Peers prod--east--anchor-n1, prod--east--n1 have the same key: deleting one of them removes the tunnel until the agents' next resync (8 minutes measured)
    rendered/west/prod--anchors.yaml:27:9: warning[twin-peers] west: the Peers prod--east--anchor-n2, prod--east--n2 have the same key: deleting one of them removes the tunnel until the agents' next resync (8 minutes measured)
    ");
    // What cuts the tunnel is that one of them is deleted.
    let run = folder.run(&["render"]);
    assert_eq!(run.stderr.matches("warning[twin-peers]").count(), 2);
    assert_eq!(twins(&validate(&folder).1), "");
}

/// Kilo reads `PublicKey` too, but an API server drops what it does not know.
#[test]
fn a_peer_that_no_api_server_takes_is_reported() {
    let folder = Folder::rendered();
    folder.turn_off("edited-file");
    folder.edit("rendered/north/prod--east.yaml", "publicKey:", "PublicKey:");
    folder.edit("rendered/west/prod--east.yaml", "port: 51820", "port: 2147483648");
    let (_, text) = validate(&folder);
    let refused = text.lines().filter(|it| it.contains("refused-peer"));
    insta::assert_snapshot!(refused.collect::<Vec<_>>().join("\n"), @"
    rendered/north/prod--east.yaml:9:9: warning[refused-peer] north: the API server refuses prod--east--n1: spec.publicKey is missing
    rendered/north/prod--east.yaml:27:9: warning[refused-peer] north: the API server refuses prod--east--n2: spec.publicKey is missing
    rendered/west/prod--east.yaml:9:9: warning[refused-peer] west: the API server refuses prod--east--n1: spec.endpoint.port is not a 32-bit integer
    rendered/west/prod--east.yaml:27:9: warning[refused-peer] west: the API server refuses prod--east--n2: spec.endpoint.port is not a 32-bit integer
    ");
}

#[test]
fn files_that_change_what_is_delivered_are_errors() {
    for (path, report) in [
        (
            "rendered/west/.argocd-source.yaml",
            "error[override-file] west: `rendered/west/.argocd-source.yaml` (a file) overrides the source of every Argo CD Application with this path",
        ),
        (
            "rendered/west/.argocd-source-mesh-west.yaml",
            "error[override-file] west: `rendered/west/.argocd-source-mesh-west.yaml` (a file) overrides the source of the Argo CD Application `mesh-west`",
        ),
        (
            "rendered/west/.sourceignore",
            "error[override-file] west: `rendered/west/.sourceignore` (a file) makes Flux ignore the files that match it",
        ),
        (
            "rendered/.hidden/deep/.sourceignore",
            "error[override-file] `rendered/.hidden/deep/.sourceignore` (a file) makes Flux ignore the files that match it",
        ),
        (
            ".sourceignore",
            "error[override-file] `.sourceignore` (a file) makes Flux ignore the files that match it",
        ),
    ] {
        let folder = Folder::rendered();
        fs::create_dir(folder.path(".git")).unwrap();
        folder.write(path, "*--east.yaml\n");
        let (code, text) = validate(&folder);
        assert_eq!(code, 1, "{text}");
        assert!(
            text.contains(&format!("{path}:1:1: {report}\n"))
                || text.contains(&format!("{path}: {report}\n")),
            "{text}"
        );
        let before = folder.touches(".");
        for arguments in [&["render"][..], &["render", "--check"], &["render", "--target", "west"]]
        {
            let run = folder.run(arguments);
            assert_eq!(run.code, 1, "{arguments:?}");
            assert!(run.stderr.starts_with("error[override-file]: "), "{}", run.stderr);
            assert!(!run.stdout.contains("Peer"), "{}", run.stdout);
        }
        assert_eq!(folder.touches("."), before);
    }
}

#[test]
fn patterns_for_flux_outside_of_the_way_to_the_tree_are_fine() {
    let folder = Folder::rendered();
    fs::create_dir(folder.path(".git")).unwrap();
    folder.write("docs/.sourceignore", "*\n");
    assert_eq!(validate(&folder), (0, String::new()));
    let above = Folder::empty();
    above.write("repository/.git/HEAD", "");
    above.write("repository/mesh.yaml", folder.read("mesh.yaml"));
    for cluster in ["east", "north", "west"] {
        let path = format!("snapshots/{cluster}.json");
        above.write(&format!("repository/{path}"), folder.read(&path));
    }
    above.write(".sourceignore", "*\n");
    let run = above.run(&["-C", "repository", "validate", "-o", "concise"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
}
