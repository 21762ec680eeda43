//! Nodes of which no path is proved.

use super::*;

/// A rendered mesh with other nodes of `west`.
fn with(west: &[Value]) -> Folder {
    let folder = Folder::mesh();
    folder.keep("west", west);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

fn nodes(count: u8) -> Vec<Value> {
    (1..=count).map(|it| node(3, it)).collect()
}

fn annotate(nodes: &mut [Value], key: &str, value: &str) {
    for node in nodes {
        node["annotations"][format!("kilo.squat.ai/{key}")] = json!(value);
    }
}

/// Returns the exit codes of `verify` and `verify --fail-on warning`, and the findings.
fn judged(folder: &Folder) -> ([i32; 2], String) {
    let (code, text) = verified(folder, &["--output", "concise"]);
    let (strict, _) = verified(folder, &["--fail-on", "warning"]);
    ([code, strict], text)
}

#[test]
fn most_nodes_of_a_cluster_that_are_left_out_are_an_error() {
    let mut west = nodes(9);
    annotate(&mut west[2..6], "key", "");
    annotate(&mut west[6..], "endpoint", "x");
    for node in &mut west[6..] {
        node["addresses"] = json!([]);
    }
    let folder = with(&west);
    let (codes, text) = judged(&folder);
    insta::assert_snapshot!(text, @"snapshots/west.json:1:1409: error[unproved-nodes] west: `render` leaves out 7 of 9 nodes: n3, n4, n5, n6 (annotation kilo.squat.ai/key is missing or empty), n7, n8, n9 (no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address)");
    assert_eq!(codes, [1, 1]);
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: { lostPercent: 80 }\n";
    folder.write("clustermesh.yaml", config);
    assert_eq!(judged(&folder).0, [0, 1], "the limit");
}

#[test]
fn a_few_nodes_that_are_left_out_are_a_warning() {
    // A third, but only one; then two, but not more than a quarter.
    for (count, lost) in [(3, 1), (8, 2)] {
        let mut west = nodes(count);
        annotate(&mut west[..lost], "key", "");
        let (codes, text) = judged(&with(&west));
        assert_contains(&text, "warning[unproved-nodes] west: ");
        assert_eq!(codes, [0, 1], "{text}");
    }
}

#[test]
fn a_node_that_joins_or_is_drained_is_named() {
    let mut joining = node(3, 3);
    joining["annotations"] = json!({});
    let mut drained = node(3, 3);
    drained["stale"] = json!(true);
    for (last, reason) in [
        (
            joining,
            "`render` leaves out 1 of 3 nodes: n3 (annotation kilo.squat.ai/wireguard-ip is missing or empty)",
        ),
        (
            drained,
            "1 of 3 nodes is not part of this proof: n3 (not ready: its Kilo agent stopped sending heartbeats)",
        ),
    ] {
        let (codes, text) = judged(&with(&[node(3, 1), node(3, 2), last]));
        assert_contains(&text, reason);
        assert_eq!(codes, [0, 1]);
    }
}

#[test]
fn what_people_leave_out_does_not_count() {
    let mut west = nodes(5);
    annotate(&mut west[2..], "key", "");
    for node in &mut west[2..] {
        node["labels"]["edge"] = json!("yes");
    }
    let folder = with(&west);
    assert_eq!(judged(&folder).0, [1, 1]);
    let entry = "- name: west\n";
    let selector = "nodeSelector: { matchExpressions: [{ key: edge, operator: DoesNotExist }] }";
    folder.edit("mesh.yaml", entry, &format!("{entry}      {selector}\n"));
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(judged(&folder).0, [0, 0]);
    let joining = Folder::mesh();
    joining.keep("west", &west);
    joining.edit("mesh.yaml", entry, &format!("{entry}      state: Joining\n"));
    assert_eq!(joining.run(&["render"]).code, 0);
    assert_eq!(judged(&joining).0, [0, 0]);
}

/// In the location `b`, Kilo elects another node than the one that has the address.
#[test]
fn an_uncertain_location_among_certain_ones_is_a_warning() {
    let mut west = location(nodes(4));
    annotate(&mut west[..2], "location", "a");
    annotate(&mut west[2..], "location", "b");
    annotate(&mut west[2..3], "endpoint", "192.168.3.3:51820");
    annotate(&mut west[2..3], "wireguard-ip", "10.103.0.2/24");
    let (codes, text) = judged(&with(&west));
    insta::assert_snapshot!(text, @"snapshots/west.json:1:1537: warning[unproved-nodes] west: 2 of 4 nodes are not part of this proof: n3, n4 (the leader of its location is uncertain)");
    assert_eq!(codes, [0, 1]);
}

/// Half of a cluster or less denies no declaration, but the tunnels of these nodes are unknown.
#[test]
fn agents_with_another_granularity_are_proved_like_most_agents() {
    for (dissenters, expected) in [
        (1, "1 of 4 nodes is proved as if its agent had granularity Full"),
        (2, "2 of 4 nodes are proved as if their agents had granularity Location"),
    ] {
        let mut west = nodes(4);
        annotate(&mut west[..dissenters], "granularity", "location");
        if dissenters == 2 {
            // Only one of them leads.
            annotate(&mut west[1..2], "wireguard-ip", "");
        }
        let (codes, text) = judged(&with(&west));
        assert_contains(&text, &format!("warning[unproved-nodes] west: {expected}: "));
        assert_contains(&text, "(its agent has another granularity than most agents)");
        assert_eq!(codes, [0, 1]);
    }
}

/// Its Peers are left out of every target, because another cluster that ranks first has their keys.
#[test]
fn nodes_whose_peers_no_target_gets_count() {
    let mut west = nodes(5);
    for (node, of) in west.iter_mut().zip([node(1, 1), node(1, 2), node(2, 1), node(2, 2)]) {
        node["annotations"]["kilo.squat.ai/key"] = of["annotations"]["kilo.squat.ai/key"].clone();
    }
    let (codes, text) = judged(&with(&west));
    let finding = "error[unproved-nodes] west: `render` leaves out 4 of 5 nodes: ";
    assert_contains(&text, finding);
    assert_eq!(codes, [1, 1]);
}

#[test]
fn the_remedy_for_agents_that_stopped_is_a_look_at_kilo() {
    let mut west = nodes(9);
    for node in &mut west[..2] {
        node["stale"] = json!(true);
    }
    let (_, text) = verified(&with(&west), &[]);
    assert_contains(
        &text,
        "help: check that Kilo runs on these nodes, then run `clustermesh snapshot west`",
    );
}

/// A node with tunnels of its own has a Peer, and Kilo ignores it until it has an endpoint or checks in.
#[test]
fn every_reason_is_a_finding_of_validate() {
    let folder = Folder::case("kilo-wrote-no-endpoint");
    for cluster in ["boot", "v4"] {
        let from = format!("nodes/{cluster}.json");
        assert_eq!(folder.run(&["snapshot", "--from", &from, cluster]).code, 0);
    }
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    for node in ["bt-1", "bt-2"] {
        assert_contains(&validated, &format!("warning[node-not-ready] boot/{node}: "));
    }
    for (granularity, rule) in [
        ("full", "notice[stale-node]"),
        ("cross", "notice[stale-node]"),
        ("location", "warning[node-not-ready]"),
    ] {
        let folder = Folder::mesh();
        let mut nodes = [node(3, 1), node(3, 2)];
        for node in &mut nodes {
            node["annotations"]["kilo.squat.ai/granularity"] = json!(granularity);
            node["annotations"]["kilo.squat.ai/location"] = json!("here");
        }
        nodes[1]["stale"] = json!(true);
        folder.keep("west", &nodes);
        let validated = folder.run(&["validate", "--output", "concise"]).stdout;
        assert_contains(&validated, &format!("{rule} west/n2: "));
    }
}

/// The leaders of two locations share one by the wrong label of the mesh, and no proof is left.
#[test]
fn a_wrong_topology_label_is_an_error() {
    let mut west = location(nodes(4));
    for (index, node) in west.iter_mut().enumerate() {
        node["labels"]["topology.kubernetes.io/region"] = json!(["x", "y"][index / 2]);
    }
    annotate(&mut west[2..3], "wireguard-ip", "10.103.0.3/24");
    let folder = with(&west);
    assert_eq!(judged(&folder).0, [0, 0]);
    let entry = "- name: west\n";
    let label = "topologyLabel: topology.kubernetes.io/zone";
    folder.edit("mesh.yaml", entry, &format!("{entry}      {label}\n"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let (codes, text) = judged(&folder);
    assert_eq!(codes, [1, 1]);
    let finding = "error[unproved-nodes] west: 4 of 4 nodes are not part of this proof: ";
    assert_contains(&text, finding);
}

/// Nodes whose agents are gone are why nothing is proved, and no claim of them.
#[test]
fn agents_that_are_gone_are_one_entry() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    let nodes = |stale: &[u8]| -> Vec<Value> {
        let node = |number| {
            let mut node = node(3, number);
            if stale.contains(&number) {
                node["stale"] = json!(true);
            }
            node
        };
        [1, 2].map(node).to_vec()
    };
    folder.keep("west", &nodes(&[1, 2]));
    folder.turn_off("outdated-tree");
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    assert_contains(&run.stdout, "error[unproved-nodes] west: 2 of 2 nodes ");
    assert_contains(&run.stdout, "(2 other findings follow from it)");
    folder.keep("west", &nodes(&[1]));
    let run = folder.run(&["verify"]);
    assert!(!run.stdout.contains("which node's claim"), "{}", run.stdout);
}
