//! `graph`: pictures of a mesh, with the proof of each link.

use serde_json::Value;

use super::diff::Repository;
use super::*;
use crate::support::{assert_contains, clustermesh, copy, project};

/// What the command prints in an example.
fn printed(example: &str, arguments: &[&str]) -> String {
    let folder = project().join("examples").join(example);
    let run = clustermesh(&folder, &[&["graph"], arguments].concat());
    assert_harmless(&run);
    // It draws a mesh with mistakes, and reports them.
    assert_eq!(run.code == 1, run.stderr.contains("error["), "{}", run.stderr);
    run.stdout
}

/// The same without the line about the origin, which depends on the commit.
fn text(example: &str, arguments: &[&str]) -> String {
    let printed = printed(example, arguments);
    let is_origin = |it: &&str| it.starts_with("%% Mesh") || it.starts_with("  label=\"Mesh");
    assert_eq!(printed.lines().filter(is_origin).count(), 1, "{printed}");
    let lines: Vec<&str> = printed.lines().filter(|it| !is_origin(it)).collect();
    lines.join("\n") + "\n"
}

/// The state of each link.
fn states(folder: &Folder) -> Vec<String> {
    let graph = folder.run(&["graph", "-o", "json"]).json();
    let links = graph["links"].as_array().unwrap().iter();
    let states = links.map(|it| {
        let [one, other, state] =
            [&it["clusters"][0], &it["clusters"][1], &it["state"]].map(|it| it.as_str().unwrap());
        format!("{one}-{other} {state}")
    });
    states.collect()
}

#[test]
fn draws_segments_anchors_nat_and_left_out_nodes() {
    insta::assert_snapshot!(text("multi-cloud-location", &["-o", "mermaid"]), @r#"
    flowchart LR
    subgraph c0["aws: 5 nodes, 2 segments"]
    c0s0["ip-10-30-4-23.eu-west-1.compute.internal<br/>location eu-west-1<br/>198.18.113.64:51820<br/>anchor of 10.30.0.0/16<br/>anchor of 10.33.0.0/16<br/>ip-10-30-9-140.eu-west-1.compute.internal"]
    c0s1["ip-10-31-21-5.ec2.internal<br/>location us-east-1<br/>198.18.100.90:51820<br/>anchor of 10.31.0.0/16<br/>ip-10-31-16-31.ec2.internal<br/>ip-10-31-30-112.ec2.internal"]
    end
    subgraph c1["gcp: 3 nodes, 1 segment"]
    c1s0["pool-1-m9wt<br/>location gcp-eu<br/>198.18.2.122:51820<br/>anchor of 10.37.0.0/20<br/>anchor of 10.38.0.0/20<br/>pool-1-h3kd<br/>pool-1-x2pf"]
    end
    subgraph c2["onprem: 3 nodes, 1 segment"]
    c2s0["rack1-node1<br/>behind NAT<br/>rack1-node2<br/>rack2-node1"]
    end
    c0 ---|119 paths work| c1
    c0 ---|72 paths work| c2
    c1 ---|39 paths work| c2
    linkStyle 0,1,2 stroke:#009e73
    "#);
    insta::assert_snapshot!(text("hub-and-spokes", &["tenant-curie", "-o", "dot", "--level", "segments"]), @r##"
    graph mesh {
      compound=true;
      rankdir=LR;
      node [shape=box];
      c0 [label="management\nhub, 6 nodes, 3 segments, 3 left out", penwidth=3];
      subgraph cluster_1 {
        label="tenant-curie\n3 nodes, 2 segments, 1 left out";
        penwidth=1;
        c1n0 [label="curie-md0-zt5hn-2lqgv\n198.18.2.51:51820\nanchor of 10.113.0.0/16"];
        c1n1 [label="curie-md0-zt5hn-jx8s6\n198.18.2.52:51820"];
      }
      c0 -- c1n0 [label="29 paths work", color="#009e73", lhead=cluster_1];
    }
    "##);
}

#[test]
fn joining_and_leaving_clusters_are_named() {
    let drawn = text("joining", &["-o", "mermaid", "--level", "clusters"]);
    insta::assert_snapshot!(drawn, @r#"
    flowchart LR
    c0["east<br/>2 nodes"]
    c1["legacy<br/>leaving"]
    c2["north<br/>joining, 2 nodes"]
    c3["south<br/>joining"]
    c4["west<br/>2 nodes"]
    c0 ---|8 paths work| c4
    linkStyle 0 stroke:#009e73
    "#);
}

#[test]
fn links_are_what_verify_proves() {
    for example in ["hub-and-spokes", "external-peers", "multi-cloud-location", "thirty-mistakes"] {
        let folder = project().join("examples").join(example);
        let graph = clustermesh(&folder, &["graph", "-o", "json"]).json();
        let total = clustermesh(&folder, &["verify", "-o", "json"]).json()["total"].clone();
        for field in ["declared", "working", "assumed"] {
            let links = graph["links"].as_array().unwrap().iter();
            let paths = links.flat_map(|it| [&it["there"], &it["back"]]);
            let sum: u64 = paths.map(|it| it[field].as_u64().unwrap()).sum();
            assert_eq!(Value::from(sum), total[field], "{field} of {example}");
        }
    }
}

#[test]
fn a_stolen_range_a_lost_peer_and_a_missing_snapshot_are_seen() {
    let folder = Folder::rendered();
    assert_eq!(states(&folder), ["east-north works", "east-west works", "north-west works"]);
    folder.write("rendered/west/prod--east.yaml", "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(states(&folder), ["east-north unproved", "east-west fails", "north-west unproved"]);
    let run = folder.run(&["graph", "-o", "mermaid"]);
    assert_contains(&run.stdout, "no snapshot");
    assert_eq!(run.code, 0);
}

#[test]
fn an_outdated_tree_is_noted() {
    let folder = Folder::rendered();
    folder.keep("east", &[node(1, 1)]);
    let run = folder.run(&["graph"]);
    assert_contains(&run.stderr, "the graph shows the Peers in rendered");
    assert_eq!(run.code, 0);
}

#[test]
fn an_svg_is_whole_and_refers_to_nothing() {
    for example in ["quickstart", "hub-and-spokes", "external-peers", "thirty-mistakes"] {
        let svg = printed(example, &[]);
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("http").count(), 1);
        assert!(!svg.contains("href") && !svg.contains("url("));
        for element in ["g", "text", "title", "style"] {
            let opened = svg.matches(&format!("<{element} ")).count()
                + svg.matches(&format!("<{element}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
        }
    }
}

#[test]
fn hostile_texts_of_nodes_do_nothing() {
    let folder = Folder::rendered();
    let hostile = "<script>alert(1)</script>\"'`\u{202e}\u{1b}[2J";
    let mut nodes = vec![node(1, 1), node(1, 2)];
    nodes[1]["name"] = json!(hostile);
    nodes[0]["podCIDRs"] = json!(["10.1.1.0/24", hostile]);
    nodes[0]["annotations"]["kilo.squat.ai/location"] = json!(hostile);
    folder.keep("east", &nodes);
    for format in ["svg", "mermaid", "dot", "json"] {
        let run = folder.run(&["graph", "-o", format]);
        assert_harmless(&run);
        assert_eq!(run.code, 0, "{}", run.stderr);
        if format != "json" && format != "dot" {
            assert!(!run.stdout.contains("<script"), "{format}");
        }
    }
}

#[test]
fn wrong_arguments_and_missing_files_have_clear_errors() {
    let folder = Folder::mesh();
    let missing = folder.refusal(2, |it| it.run(&["graph"]));
    assert_contains(&missing, "run `clustermesh render`");
    assert_eq!(folder.run(&["render"]).code, 0);
    let unknown = folder.refusal(2, |it| it.run(&["graph", "eats"]));
    insta::assert_snapshot!(unknown, @"error: no mesh contains a cluster `eats`; did you mean `east`?");
}

#[test]
fn only_clusters_have_snapshots() {
    let folder = Folder::empty();
    copy(&project().join("examples/external-peers"), &folder.path(""));
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let graph = folder.run(&["graph", "-o", "json"]).json();
    let clusters = graph["clusters"].as_array().unwrap().iter();
    let unread = clusters.filter(|it| it["isUnread"] == true);
    let unread: Vec<&str> = unread.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(unread, ["west"]);
}

#[test]
fn the_origin_has_the_commit_and_the_days_of_the_snapshots() {
    let repository = Repository::committed();
    let commit = repository.git(&["rev-parse", "HEAD"]);
    let commit = commit.trim().get(..10).unwrap();
    let time = repository.git(&["log", "-1", "--format=%ct"]);
    let day = clustermesh::config::Date::from_unix_seconds(time.trim().parse().unwrap());
    repository.folder.write("note", "a");
    repository.commit();
    let head = repository.git(&["rev-parse", "HEAD"]);
    let head = head.trim().get(..10).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let snapshots = format!("3 snapshots last changed on {day}");
    let graph = repository.folder.run(&["graph"]).stdout;
    let origin = format!(">Mesh prod; commit {head}; {snapshots}; clustermesh {version}</text>");
    assert_contains(&graph, &origin);
    let origin = format!("Mesh prod; commit {head}; {snapshots}; clustermesh {version}");
    let text = repository.folder.run(&["graph", "-o", "mermaid"]).stdout;
    assert_contains(&text, &format!("\n%% {origin}\n"));
    let text = repository.folder.run(&["graph", "-o", "dot"]).stdout;
    assert_contains(&text, &format!("label=\"{origin}\""));
    // Equal files give equal JSON.
    let json = repository.folder.run(&["graph", "-o", "json"]);
    let outside = Folder::rendered().run(&["graph", "-o", "json"]);
    assert_eq!(json.stdout, outside.stdout);
    let page = repository.folder.run(&["report", "--against", "HEAD~1"]).stdout;
    let origin = format!(
        "Mesh prod; commit {head}; compared with commit {commit} (HEAD~1); {snapshots}; clustermesh {version}."
    );
    assert_contains(&page, &origin);
    assert_contains(&page, &format!("Snapshot last changed by a commit on {day}"));
    // Without git, nothing is known of commits.
    let graph = Folder::rendered().run(&["graph"]).stdout;
    assert_contains(&graph, &format!(">Mesh prod; clustermesh {version}</text>"));
}

/// The day of each snapshot on the page of a mesh, by its cluster.
fn days(folder: &Folder) -> BTreeMap<String, String> {
    let page = folder.run(&["report"]).stdout;
    let cards = page.split("id=\"cluster-").skip(1).filter_map(|card| {
        let (cluster, card) = card.split_once('"')?;
        let day = card.split_once("Snapshot last changed by a commit on ")?.1.get(..10)?;
        Some((cluster.to_owned(), day.to_owned()))
    });
    cards.collect()
}

/// Histories in which one walk for all files could find other commits than one for each file.
#[test]
fn the_day_of_a_snapshot_is_the_one_of_the_last_commit_that_changed_it() {
    let repository = Repository::committed();
    let edit = |cluster: &str, text: &str| {
        let path = format!("snapshots/{cluster}.json");
        let old = repository.folder.read(&path);
        repository.folder.write(&path, format!("{old}{text}"));
    };
    let mut day = 1;
    let mut commit = || {
        day += 1;
        repository.commit_at(&format!("2030-01-{day:02}T12:00:00Z"));
    };
    // A branch changes `west` and takes it back; the merge keeps the `east` of one side and the `north` of the other.
    repository.git(&["switch", "--quiet", "--create=side"]);
    edit("west", " ");
    edit("north", " ");
    commit();
    let west = repository.folder.read("snapshots/west.json");
    repository.folder.write("snapshots/west.json", west.trim_end_matches(' '));
    commit();
    repository.git(&["switch", "--quiet", "main"]);
    edit("east", " ");
    commit();
    repository.git(&["merge", "--quiet", "--no-edit", "side"]);
    commit();
    edit("east", " ");
    commit();
    repository.folder.write("rendered/note", "a");
    commit();
    let expected = ["east", "north", "west"].map(|cluster| {
        let path = format!("snapshots/{cluster}.json");
        let time = repository.git(&["log", "-1", "--format=%ct", "--", &path]);
        let day = clustermesh::config::Date::from_unix_seconds(time.trim().parse().unwrap());
        (cluster.to_owned(), day.to_string())
    });
    assert_eq!(days(&repository.folder), BTreeMap::from(expected));
}
