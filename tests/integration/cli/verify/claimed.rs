//! Values of one node, and what they cost: never the proof of what other nodes have.

use crate::cli::*;
use crate::support::assert_contains;

/// Renders the mesh with another internal address of `east/n1`.
fn forced(address: &str) -> Folder {
    let folder = Folder::mesh();
    let mut node_1 = node(1, 1);
    node_1["annotations"]["kilo.squat.ai/force-internal-ip"] = json!(address);
    folder.keep("east", &[node_1, node(1, 2)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

fn total(folder: &Folder) -> (i32, Value) {
    let run = folder.run(&["verify", "--output", "json"]);
    (run.code, run.json()["total"].clone())
}

#[test]
fn a_public_internal_address_takes_nothing_from_others() {
    for address in ["198.18.113.11/32", "8.8.8.8/24", "198.18.113.12/24"] {
        let (code, total) = total(&forced(address));
        assert_eq!((code, &total["working"]), (0, &json!(24)), "{address}");
    }
}

#[test]
fn an_endpoint_as_internal_address_costs_the_paths_to_this_endpoint() {
    // That of `west/n1`.
    let folder = forced("198.18.113.31/32");
    let (code, total) = total(&folder);
    // Two by the route to it, and two because the node itself is dialled there.
    assert_eq!((code, &total["declared"], &total["working"]), (0, &json!(24), &json!(20)));
    let verified = folder.run(&["verify", "--output", "concise"]).stdout;
    assert_contains(&verified, "warning[loops] east: ");
    assert!(!verified.contains(": error["), "{verified}");
    for (severity, code) in [("error", 0), ("warning", 1), ("Warning", 1), ("NOTICE", 1)] {
        assert_eq!(folder.run(&["verify", "--fail-on", severity]).code, code);
    }
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert_contains(
        &validated,
        "warning[captured-endpoint] east/n1: internal address 198.18.113.31 is the endpoint of west/n1",
    );
}

/// What most nodes report is not the claim of a few.
#[test]
fn endpoints_as_internal_addresses_of_most_nodes_fail_the_proof() {
    let folder = Folder::mesh();
    folder.keep("west", &[node(3, 1), node(3, 2), node(3, 3)]);
    let capturing = |number: u8| {
        let mut node = node(1, number);
        node["annotations"]["kilo.squat.ai/force-internal-ip"] =
            json!(format!("198.18.113.3{number}/24"));
        node
    };
    for (nodes, expected) in [
        ([capturing(1), node(1, 2), node(1, 3)], 0),
        ([capturing(1), capturing(2), capturing(3)], 1),
    ] {
        folder.keep("east", &nodes);
        assert_eq!(folder.run(&["render"]).code, 0);
        let (code, total) = total(&folder);
        assert_ne!(total["working"], total["declared"]);
        assert_eq!(code, expected, "{total}");
    }
}

/// Its cluster is uncertain, but the others are proved.
#[test]
fn an_internal_address_of_another_family_does_not_fail_the_proof_of_others() {
    let folder = forced("2001:db8::1/64");
    let (code, total) = total(&folder);
    assert_eq!((code, &total["declared"], &total["working"]), (0, &json!(24), &json!(8)));
    assert_eq!(folder.run(&["verify", "--fail-on", "warning"]).code, 1);
}

#[test]
fn an_address_that_kilo_does_not_use_is_named_with_the_one_that_it_uses() {
    let folder = Folder::mesh();
    let pods = "podCIDRs: [10.1.0.0/16]\n";
    let declared = format!("{pods}      additionalCIDRs: [192.168.1.0/24]\n");
    folder.edit("mesh.yaml", pods, &declared);
    let mut node_1 = node(1, 1);
    node_1["annotations"]["kilo.squat.ai/force-internal-ip"] = json!("198.18.113.11/32");
    folder.keep("east", &[node_1, node(1, 2)]);
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_contains(
        &run.stdout,
        "notice[unused-address] east/n1: 192.168.1.1/32 left out: Kilo uses 198.18.113.11 instead, which is \
         outside the declared ranges",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, total) = total(&folder);
    assert_eq!(code, 0, "{total}");
    assert_eq!(total["working"], total["declared"]);
}

/// A target never gets a Peer with the key of a node of its own, regardless of rank.
#[test]
fn no_rendered_peer_has_to_be_deleted() {
    let folder = Folder::mesh();
    let mut twin = node(3, 1);
    twin["annotations"]["kilo.squat.ai/key"] =
        node(1, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("west", &[twin, node(3, 2)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let rendered = folder.read("rendered/west/prod--east.yaml");
    assert!(rendered.contains("prod--east--n2") && !rendered.contains("prod--east--n1"));
    let run = folder.run(&["verify"]);
    assert!(!run.stdout.contains("delete this Peer"), "{}", run.stdout);
}

/// Pods and services of one uncertain leader are excused together.
#[test]
fn an_election_makes_no_path_to_services_fail() {
    let folder = Folder::case("leader-election-services");
    folder.run(&["render"]);
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_contains(&run.stdout, "warning[ambiguous] west: 10.42.1.0 → 10.91.0.0 (west → east): ");
    assert_contains(&run.stdout, "n1, n2, n3 (the leader of its location is uncertain)");
}

/// A range of one address behind a node captures an endpoint like an address of its own.
#[test]
fn endpoints_behind_all_nodes_fail_the_proof() {
    let folder = Folder::mesh();
    for (claimants, expected) in [(1, 0), (2, 1)] {
        let mut east = [node(1, 1), node(1, 2)];
        for node in &mut east[..claimants] {
            node["annotations"]["kilo.squat.ai/allowed-location-ips"] =
                json!("198.18.113.31/32,198.18.113.32/32");
        }
        folder.keep("east", &east);
        assert_eq!(folder.run(&["render"]).code, 0);
        let (code, total) = total(&folder);
        assert_ne!(total["working"], total["declared"]);
        assert_eq!(code, expected, "{total}");
    }
}

/// The paths of other nodes that it takes with it are excused, and a mistake of a person beside them is not.
#[test]
fn one_node_fails_no_expectation() {
    let spec = "[{ from: { clusters: [east, north, west] }, to: { clusters: [east, north, west] }, expect: Reach }]";
    let leader_without_pods = || {
        let mut nodes: Vec<Value> = location((1..=5).map(|it| node(3, it)).collect());
        nodes[0]["podCIDRs"] = json!([]);
        nodes
    };
    let with_third = |change: fn(&mut Value)| {
        let mut nodes = vec![node(3, 1), node(3, 2), node(3, 3)];
        change(&mut nodes[2]);
        nodes
    };
    let key_of_north = |node_3: &mut Value| {
        node_3["annotations"]["kilo.squat.ai/key"] =
            node(2, 1)["annotations"]["kilo.squat.ai/key"].clone();
    };
    let pod_as_endpoint = |node_3: &mut Value| {
        node_3["addresses"][1]["address"] = json!("10.2.1.5");
    };
    let all_as_pods = |node_3: &mut Value| node_3["podCIDRs"] = json!(["0.0.0.0/0"]);
    for west in [
        leader_without_pods(),
        with_third(key_of_north),
        with_third(pod_as_endpoint),
        with_third(all_as_pods),
    ] {
        let folder = Folder::mesh();
        folder.keep("west", &west);
        folder.write(
            "expectations.yaml",
            format!("apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec: {spec}\n"),
        );
        assert_eq!(folder.run(&["render"]).code, 0);
        let run = folder.run(&["verify", "--output", "concise"]);
        assert_contains(&run.stdout, "warning[failed-expectation]");
        assert_eq!(run.code, 0, "{}", run.stdout);
        folder.edit("rendered/east/prod--north.yaml", "  - \"10.2.2.0/24\"\n", "");
        let run = folder.run(&["verify", "--output", "concise"]);
        assert_contains(&run.stdout, "error[failed-expectation]");
        assert_eq!(run.code, 1, "{}", run.stdout);
    }
}

/// An entry that does not have them is wrong, and not each node.
#[test]
fn pods_of_most_nodes_outside_of_the_entry_fail_an_expectation() {
    for (outside, code) in [(1, 0), (3, 1)] {
        let folder = Folder::rendered();
        let nodes = (1..=3).map(|it| {
            let mut node = node(3, it);
            if it <= outside {
                node["podCIDRs"] = json!([format!("10.77.{it}.0/24")]);
            }
            node
        });
        folder.keep("west", &nodes.collect::<Vec<Value>>());
        folder.write(
            "expectations.yaml",
            "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n  \
             - { from: { cluster: east }, to: { cluster: west }, expect: Reach }\n",
        );
        assert_eq!(folder.run(&["render"]).code, code);
        let run = folder.run(&["verify", "--output", "concise"]);
        assert_eq!(run.code, code, "{}", run.stdout);
        let level = if code == 0 { "warning" } else { "error" };
        assert_contains(&run.stdout, &format!("{level}[failed-expectation]"));
    }
}
