//! What is printed, in every format.

use super::*;
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

fn changed() -> Repository {
    let repository = Repository::committed();
    repository.remove_node();
    repository
}

/// Fails unless a text has these lines, in this order.
fn assert_lines(text: &str, lines: &[&str]) {
    let mut rest = text.lines();
    for line in lines {
        assert!(rest.any(|it| it == *line), "no {line} in its place in\n{text}");
    }
}

#[test]
fn lists_causes_targets_and_peers() {
    let run = changed().diff(&[]);
    assert_eq!(run.code, 0);
    assert_lines(
        &run.stdout,
        &[
            "node west/n2 was removed",
            "    east +0 ~0 -1, north +0 ~0 -1",
            "",
            "    - prod--west--n2 with 10.3.2.0/24, 10.103.0.2/32",
            "2 of 3 targets changed compared with HEAD: +0 ~0 -2 Peers.",
        ],
    );
    let run = Repository::committed().diff(&[]);
    assert_eq!(run.stdout, "No Peer changes compared with HEAD (3 clusters).\n");
}

#[test]
fn the_delivery_of_a_renamed_cluster_must_follow() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "name: west", "name: orient");
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    folder.keep("orient", &[node(3, 1), node(3, 2)]);
    let help = "let the Flux Kustomization or Argo CD Application of west apply the folder `orient`; until then the \
                cluster keeps its old Peers";
    let run = repository.diff(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_lines(
        &run.stdout,
        &[
            "cluster west is now called orient",
            "    east +2 ~0 -2, north +2 ~0 -2",
            &format!("    help: {help}"),
        ],
    );
    let page = repository.diff(&["--output", "markdown"]).stdout;
    assert_contains(&page, &format!("\nhelp: {help}\n"));
    let changes = repository.diff(&["--output", "json"]).json();
    assert_eq!(changes["causes"][0]["help"], help);
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &changes), Vec::<String>::new());
}

#[test]
fn a_comment_has_the_summary_first_and_the_rest_folded() {
    let run = changed().diff(&["--output", "markdown"]);
    assert_eq!(run.code, 0);
    assert_lines(
        &run.stdout,
        &[
            "| cause | changes of Peers |",
            "| --- | --- |",
            "| node `west/n2` was removed | `east +0 ~0 -1, north +0 ~0 -1` |",
            "",
            "| target | grade | Peers | why |",
            "<details>",
            "- `- prod--west--n2 with 10.3.2.0/24, 10.103.0.2/32`",
            "</details>",
        ],
    );
    let run = Repository::committed().diff(&["--output", "markdown"]);
    insta::assert_snapshot!(run.stdout, @"
    ### clustermesh diff: none

    No Peer changes compared with `HEAD` (3 clusters).
    ");
}

/// Also if its name is a word of the sentence.
#[test]
fn what_was_compared_with_stands_in_its_place() {
    let repository = changed();
    repository.git(&["branch", "of"]);
    let run = repository.diff(&["--against", "of", "--output", "markdown"]);
    let line = "2 of 3 targets changed compared with `of`: +0 ~0 -2 Peers.\n";
    assert_contains(&run.stdout, line);
}

#[test]
fn programs_get_an_object() {
    let run = changed().diff(&["--output", "json"]);
    let changes = run.json();
    assert_eq!(changes["causes"][0]["kind"], "nodeLeft");
    assert_eq!(changes["causes"][0]["node"], "n2");
    let removed = changes["targets"][0]["peers"][0].clone();
    assert_eq!(removed["name"], "prod--west--n2");
    assert_eq!(removed["change"], "removed");
    assert_eq!(removed["lost"], json!(["10.3.2.0/24", "10.103.0.2/32"]));
    assert_eq!(removed["causes"], json!([0]));
}

#[test]
fn a_job_gets_its_summary() {
    let repository = changed();
    repository.folder.write("summary", "before\n");
    let summary = repository.folder.path("summary");
    let variables = [("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    let run = repository.diff_with(&variables, &["--output", "github"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, repository.diff(&[]).stdout);
    let markdown = repository.diff(&["--output", "markdown"]).stdout;
    assert_eq!(repository.folder.read("summary"), format!("before\n\n\n{markdown}"));
}

#[test]
fn fails_from_a_grade_on() {
    let repository = changed();
    let codes = |repository: &Repository| {
        ["additive", "cleanup", "brief", "disruptive", "destructive"].map(|grade| {
            let code = repository.diff(&["--fail-on", grade]).code;
            // In any case.
            let upper = grade.to_uppercase();
            assert_eq!(repository.diff(&["--fail-on", &upper]).code, code);
            code
        })
    };
    assert_eq!(repository.grade(&[]), "cleanup");
    assert_eq!(codes(&repository), [1, 1, 0, 0, 0]);
    assert_eq!(codes(&Repository::committed()), [0, 0, 0, 0, 0]);
}

#[test]
fn a_mesh_that_cannot_be_rendered_has_no_differences() {
    let repository = Repository::committed();
    repository.folder.edit("mesh.yaml", "10.3.0.0/16", "10.2.0.0/16");
    let run = repository.diff(&["--output", "markdown"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_contains(&run.stderr, "contradicted-declaration");
}

#[test]
fn an_old_mesh_with_errors_has_no_causes() {
    let repository = Repository::committed();
    let mesh = repository.folder.read("mesh.yaml");
    for wrong in ["spec: [", &mesh.replace("10.3.0.0/16", "10.2.0.0/16")] {
        repository.folder.write("mesh.yaml", wrong);
        repository.commit();
        repository.folder.write("mesh.yaml", &mesh);
        let run = repository.diff(&[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let note =
            "note: the meshes or snapshots of `HEAD` contain errors, so no causes are listed";
        assert_contains(&run.stderr, note);
        let controls = "HEAD (3 clusters). 1 control of the old version cannot be read.";
        assert_contains(&run.stdout, controls);
        assert!(!run.stdout.contains("joined"), "{}", run.stdout);
    }
}

#[test]
fn names_of_nodes_stay_in_their_place() {
    let repository = Repository::committed();
    let hostile = "n|`[a](//b)<img src=x>@all\u{1b}[31m\u{202e}\n::error::x";
    let mut node = node(3, 3);
    node["name"] = json!(hostile);
    let kept = [self::node_of(3, 1), self::node_of(3, 2), node];
    repository.folder.keep("west", &kept);
    for format in ["human", "markdown", "json", "github"] {
        let run = repository.diff(&["--output", format]);
        assert!(run.code == 0 || run.code == 2, "{}", run.stderr);
        let lines = run.stdout.lines().chain(run.stderr.lines());
        for line in lines {
            assert!(!line.trim_start().starts_with("::"), "{line}");
        }
        if format == "markdown" {
            assert!(!run.stdout.replace('`', "").contains("\n<img"), "{}", run.stdout);
        }
    }
}

fn node_of(cluster: u8, number: u8) -> Value {
    super::node(cluster, number)
}

/// 40 clusters that change in every target: far more than fits a comment.
#[test]
fn a_comment_is_never_too_long_and_counts_what_is_cut() {
    const CLUSTERS: u8 = 40;
    let folder = Folder::empty();
    let entry = |number: u8| {
        format!(
            "    - name: cluster-with-a-rather-long-name-{number}\n      podCIDRs: [10.{number}.0.0/16]\n      \
             wireguardCIDR: 10.{}.0.0/24\n",
            100 + number
        )
    };
    let entries: String = (1..=CLUSTERS).map(entry).collect();
    let head = MESH.split("    - name: east").next().unwrap();
    folder.write("mesh.yaml", format!("{head}{entries}"));
    for number in 1..=CLUSTERS {
        let name = format!("cluster-with-a-rather-long-name-{number}");
        folder.keep(&name, &[wide(number, 1, 0), wide(number, 2, 0)]);
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    for number in 1..=CLUSTERS {
        let name = format!("cluster-with-a-rather-long-name-{number}");
        repository.folder.keep(&name, &[wide(number, 1, 1), wide(number, 2, 1)]);
    }
    let run = repository.diff(&["--output", "markdown"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = run.stdout;
    assert!(text.len() <= 60_000, "{}", text.len());
    assert!(55_000 < text.len(), "{}", text.len());
    // Every target has a part.
    assert_eq!(text.matches("<details>").count(), usize::from(CLUSTERS));
    assert_eq!(text.matches("</details>").count(), usize::from(CLUSTERS));
    let more = text.lines().filter_map(|line| line.strip_prefix("- … and "));
    let more = more.filter_map(|line| line.strip_suffix(" more lines")?.parse::<usize>().ok());
    let shown = text.matches("- `~ prod--").count();
    let all = usize::from(CLUSTERS) * usize::from(CLUSTERS - 1) * 2;
    assert_eq!(shown + more.sum::<usize>(), all);
}

#[test]
fn the_schema_describes_the_output() {
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    for repository in [changed(), Repository::committed()] {
        let run = repository.diff(&["--output", "json"]);
        let value = run.json();
        assert_eq!(violations(&schema, &value), Vec::<String>::new());
    }
}

/// Compares two versions, and returns the kinds of causes, after a look at the schema.
fn kinds(before: &dyn Fn(&Folder), after: &dyn Fn(&Folder)) -> Vec<String> {
    let folder = Folder::mesh();
    before(&folder);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let repository = Repository::of(folder);
    repository.commit();
    after(&repository.folder);
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    let mut kinds = Vec::new();
    for against in ["HEAD", "rendered"] {
        let run = repository.diff(&["--against", against, "--output", "json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let changes: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(violations(&schema, &changes), Vec::<String>::new());
        let causes = changes["causes"].as_array().unwrap().iter();
        kinds.extend(causes.map(|it| it["kind"].as_str().unwrap().to_owned()));
        // Every change of a Peer has a cause, or none is known.
        let targets = changes["targets"].as_array().unwrap().iter();
        let mut peers = targets.flat_map(|it| it["peers"].as_array().unwrap());
        let is_explained = peers.all(|it| it["causes"] != json!([]));
        assert_eq!(is_explained, against == "HEAD" || changes["targets"] == json!([]));
        for format in ["human", "markdown", "github"] {
            let run = repository.diff(&["--against", against, "--output", format]);
            let is_known = |it: &str| {
                it == "note: the rendered tree is not up to date, so this is about what `clustermesh render` would write"
            };
            assert!(run.code == 0 && run.stderr.lines().all(is_known), "{format}: {}", run.stderr);
        }
    }
    kinds
}

#[test]
fn every_kind_of_cause_fits_every_format() {
    let same = |_: &Folder| {};
    let without_north = |folder: &Folder| folder.edit("mesh.yaml", NORTH, "");
    let with_north = |folder: &Folder| folder.write("mesh.yaml", MESH);
    assert_eq!(kinds(&same, &without_north), ["clusterLeft"]);
    assert_eq!(kinds(&without_north, &with_north), ["clusterJoined"]);
    let nodes = |nodes: Vec<Value>| move |folder: &Folder| folder.keep("west", &nodes);
    let two = nodes(vec![node(3, 1), node(3, 2)]);
    let three = nodes(vec![node(3, 1), node(3, 2), node(3, 3)]);
    assert_eq!(kinds(&same, &three), ["nodeJoined"]);
    assert_eq!(kinds(&three, &two), ["nodeLeft"]);
    let edited = |pointer: &str, value: Value| {
        let mut other = node(3, 2);
        *other.pointer_mut(pointer).unwrap() = value;
        nodes(vec![node(3, 1), other])
    };
    let outside = edited("/podCIDRs", json!(["172.16.0.0/24"]));
    assert_eq!(kinds(&same, &outside), ["nodeExcluded"]);
    assert_eq!(kinds(&outside, &two), ["nodeBack"]);
    let key = edited("/annotations/kilo.squat.ai~1key", json!(STANDARD.encode([99; 32])));
    assert_eq!(kinds(&same, &key), ["newKey"]);
    let address = edited("/addresses/1/address", json!("198.18.113.99"));
    assert_eq!(kinds(&same, &address), ["newEndpoint"]);
    let address = edited("/annotations/kilo.squat.ai~1wireguard-ip", json!("10.103.0.9/24"));
    assert_eq!(kinds(&same, &address), ["newAddress"]);
    let services = |folder: &Folder| {
        let field = "wireguardCIDR: 10.103.0.0/24\n";
        folder.edit("mesh.yaml", field, &format!("{field}      serviceCIDR: 10.96.0.0/16\n"));
    };
    assert_eq!(kinds(&same, &services), ["setting"]);
    let second = nodes(vec![node(3, 2)]);
    assert_eq!(kinds(&services, &second), ["nodeLeft", "anchorMoved"]);
}

/// No engine prunes Peers that belong to no mesh, so they are not removed.
#[test]
fn foreign_peers_of_a_cluster_stay() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let rendered = folder.run(&["render", "--target", "east"]).stdout;
    let foreign = "apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: { name: laptop }
spec:
  allowedIPs: [192.0.2.128/32]
  publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=
";
    folder.write("east-has.yaml", format!("{rendered}---\n{foreign}"));
    let run = repository.diff(&["--peers", "east=east-has.yaml", "--output", "json"]);
    let changes = run.json();
    assert_eq!(changes["grade"], "none");
    assert_eq!(changes["causes"][0]["kind"], "foreignPeer", "{}", run.stdout);
    assert!(run.stdout.contains("laptop"));
    // One that was rendered for a mesh that is not there any more is pruned.
    let labels =
        "{ app.kubernetes.io/managed-by: clustermesh, kilo-clustermesh.io/source-cluster: south }";
    let rendered_before =
        foreign.replace("name: laptop", &format!("name: old--south--n1, labels: {labels}"));
    folder.write("east-has.yaml", format!("{rendered}---\n{rendered_before}"));
    let run = repository.diff(&["--peers", "east=east-has.yaml", "--output", "json"]);
    let changes = run.json();
    assert_eq!(changes["grade"], "destructive", "{}", run.stdout);
    assert_eq!(changes["causes"], json!([]));
}

#[test]
fn a_cluster_that_leaves_by_its_state_is_the_cause() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "- name: west", "- name: west\n      state: Leaving");
    let run = repository.diff(&["--output", "json"]);
    let changes = run.json();
    assert_eq!(changes["causes"][0]["kind"], "setting", "{}", run.stdout);
    let message = "cluster west leaves (`state: Leaving`, mesh.yaml:14)";
    assert_eq!(changes["causes"][0]["message"], message, "{}", run.stdout);
    assert_eq!(changes["causes"].as_array().unwrap().len(), 1);
    assert_eq!(changes["grade"], "destructive");
}

/// Colours are for people at a terminal.
#[test]
fn differences_have_colours_where_they_are_wanted() {
    let repository = Repository::committed();
    let peers = "rendered/east/prod--west.yaml";
    let text = repository.folder.read(peers).replace("10.3.1.0/24", "10.3.9.0/24");
    repository.folder.write(peers, text);
    repository.commit();
    let coloured = repository.diff(&["--color", "always"]).stdout;
    assert_contains(&coloured, "\u{1b}[33m~ prod--west--n1");
    assert_contains(&coloured, "\u{1b}[1meast\u{1b}[0m: ");
    let plain = repository.diff(&[]).stdout;
    assert!(!plain.contains('\u{1b}'), "{plain}");
    for format in ["json", "markdown", "github"] {
        let text = repository.diff(&["--color", "always", "--output", format]).stdout;
        assert!(!text.contains('\u{1b}'), "{format}: {text}");
    }
}

/// An edit changes Peers, and clusters get them only from a tree that has them.
#[test]
fn a_forgotten_render_is_noted() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.keep("west", &[node(3, 1), node(3, 2), node(3, 3)]);
    let note = "note: the rendered tree is not up to date, so this is about what `clustermesh render` would write\n";
    assert_eq!(repository.diff(&[]).stderr, note);
    let checked = "No problems found (3 clusters, 7 nodes, 14 Peers).\nnote: the rendered tree is not up to date: run `clustermesh render`\n";
    let run = folder.run(&["validate"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, checked));
    assert_eq!(folder.run(&["validate", "--output", "concise"]).stderr, "");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(repository.diff(&[]).stderr, "");
    assert!(!folder.run(&["validate"]).stderr.contains("note"));
}

/// Both versions mean the same Peers, and the files that engines apply are gone.
#[test]
fn a_tree_without_its_files_is_noted_although_nothing_changes() {
    let repository = Repository::committed();
    assert_eq!(repository.diff(&[]).stderr, "");
    fs::remove_dir_all(repository.folder.path("rendered/west")).unwrap();
    let run = repository.diff(&[]);
    assert_contains(&run.stdout, "No Peer changes compared with HEAD");
    let note = "note: the rendered tree is not up to date, so this is about what `clustermesh render` would write\n";
    assert_eq!(run.stderr, note);
    fs::remove_dir_all(repository.folder.path("rendered")).unwrap();
    assert_eq!(repository.diff(&[]).stderr, note);
    // Where a plugin renders, no version has a tree.
    repository.commit();
    assert_eq!(repository.diff(&[]).stderr, "");
}
