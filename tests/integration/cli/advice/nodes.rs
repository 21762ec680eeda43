//! Advice about nodes and lists of nodes.

use super::findings;
use crate::cli::*;
use crate::support::assert_contains;

/// Returns the help of the findings of a rule.
fn helps(folder: &Folder, rule: &str) -> Vec<String> {
    let found = findings(folder).into_iter();
    let of_rule = found.filter(|it| it[0] == rule);
    of_rule.map(|[_, _, help, _]| help).collect()
}

/// The first advice is not to accept it.
#[test]
fn a_list_of_another_cluster() {
    let folder = Folder::mesh();
    let list = |prefix: &str| {
        let items = [1, 2].map(|number| {
            let mut node = api_node(1, number);
            node["metadata"]["name"] = json!(format!("{prefix}{number}"));
            node
        });
        let list = json!({ "kind": "NodeList", "apiVersion": "v1", "items": items });
        folder.write("dump.json", list.to_string());
    };
    let snapshot = ["snapshot", "east", "--from", "dump.json"];
    list("other-");
    let run = folder.run(&snapshot);
    assert_eq!(run.code, 1);
    let help = run.stderr.lines().find(|it| it.contains("help: ")).unwrap();
    insta::assert_snapshot!(help, @"help: if the list is incomplete or of another cluster, run the command again with a list of `east`; if all of these nodes were removed or replaced, add `--accept east`");
    list("n");
    assert_eq!(folder.run(&snapshot).code, 0);
}

#[test]
fn nodes_with_one_key() {
    let folder = Folder::mesh();
    let mut copied = node(1, 1);
    copied["annotations"]["kilo.squat.ai/key"] =
        node(3, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("east", &[copied, node(1, 2)]);
    insta::assert_snapshot!(helps(&folder, "key-of-target-node")[0], @"on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot east west`; if it is one machine that moved, this snapshot is enough");
    insta::assert_snapshot!(helps(&folder, "key-in-two-clusters")[0], @"on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot west east`; if it is one machine that moved, this snapshot is enough");
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

#[test]
fn a_node_of_another_subnet() {
    let folder = Folder::rendered();
    let mut other = node(1, 1);
    other["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.4.0.1/16");
    folder.keep("east", &[other.clone(), node(1, 2), node(1, 3)]);
    insta::assert_snapshot!(helps(&folder, "undeclared-wireguard-ip").concat(), @"start its Kilo agent with the `--subnet` of the other nodes of `east`, which the mesh declares, then run `clustermesh snapshot east`");
    // Nothing else is left to reach, and no path is proved.
    folder.keep("east", &[other]);
    assert!(findings(&folder).iter().all(|it| !it[2].is_empty()), "{:?}", findings(&folder));
    let verified = folder.run(&["verify"]).stdout;
    assert_contains(&verified, "`render` leaves out its only node");
    assert!(!verified.contains("nodeSelector"), "{verified}");
}

/// Both ranges need one list of `anchors`.
#[test]
fn two_ranges_that_move() {
    let folder = Folder::mesh();
    let ranges = "      serviceCIDR: 10.201.0.0/16\n      additionalCIDRs: [10.211.0.0/16]\n";
    folder.edit("mesh.yaml", NORTH, &format!("{ranges}{NORTH}"));
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 2), node(1, 3)]);
    let helps = helps(&folder, "moved-anchor");
    assert_eq!(helps.len(), 2);
    insta::assert_snapshot!(helps[0], @"if each range should stay on one node, write `anchors: [{ ranges: [10.201.0.0/16], nodes: [n2] }, { ranges: [10.211.0.0/16], nodes: [n2] }]` in the entry of east; connections to it break once whenever it moves");
    let line = helps[0].split('`').find(|it| it.starts_with("anchors: ")).unwrap();
    folder.edit("mesh.yaml", NORTH, &format!("      {line}\n{NORTH}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// Ranges of another cluster must not be declared, so no help advises it.
#[test]
fn ranges_of_another_cluster_are_not_advised() {
    let folder = Folder::mesh();
    let mut nodes = [1, 2, 3].map(|number| node(1, number));
    nodes[2]["podCIDRs"] = json!(["10.2.9.0/24"]);
    folder.keep("east", &nodes);
    let [[rule, _, help, _]] = &findings(&folder)[..] else {
        panic!("{:?}", findings(&folder));
    };
    assert_eq!(rule, "undeclared-pod-cidr");
    insta::assert_snapshot!(help, @"look at the node with `kubectl --context east get node n3 -o yaml` and let it register again, because `north` declares these addresses; then run `clustermesh snapshot east`");
    for (number, node) in (1..).zip(&mut nodes) {
        node["podCIDRs"] = json!([format!("10.1.{number}.0/24")]);
        node["annotations"]["kilo.squat.ai/wireguard-ip"] =
            json!(format!("10.102.0.{}/24", number + 7));
    }
    folder.keep("east", &nodes);
    let found = findings(&folder);
    let contradiction = found.iter().find(|it| it[0] == "contradicted-declaration").unwrap();
    insta::assert_snapshot!(contradiction[2], @"start Kilo in `east` with `--subnet=10.101.0.0/24`");
}

/// The snapshot does not show whether they are gone.
#[test]
fn nodes_that_a_snapshot_lacks() {
    let folder = Folder::mesh();
    folder.keep("east", &[1, 2, 3].map(|number| node(1, number)));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 1)]);
    assert_eq!(
        helps(&folder, "shrunk-source"),
        ["if these nodes still exist, run `clustermesh snapshot east`"]
    );
}

#[test]
fn two_nodes_with_one_written_address() {
    let folder = Folder::mesh();
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        node["addresses"] =
            json!([{ "address": format!("192.168.1.{number}"), "type": "InternalIP" }]);
        node["annotations"]["kilo.squat.ai/force-endpoint"] = json!("198.18.113.11:51820");
        node
    });
    folder.keep("east", &nodes);
    insta::assert_snapshot!(helps(&folder, "shared-endpoint")[0], @"correct `kilo.squat.ai/force-endpoint` of the node that has another address; otherwise give each node its own port: annotate each with `kilo.squat.ai/force-endpoint: ADDRESS:PORT`, and forward these ports");
}
