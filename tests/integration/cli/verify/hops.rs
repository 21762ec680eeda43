//! What is between the leader of a location and its other nodes.

use crate::cli::*;
use crate::support::assert_contains;

fn working(folder: &Folder) -> (i32, Value) {
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["verify", "--output", "json"]);
    (run.code, run.json()["total"]["working"].clone())
}

/// Kilo sets no route to a node with the internal address of its leader, as on virtual machines behind a NAT of their own.
#[test]
fn the_pods_of_a_node_with_the_address_of_its_leader_are_lost() {
    let folder = Folder::case("same-internal-ip-virtualbox");
    assert_eq!(working(&folder), (0, json!(2)));
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_contains(
        &run.stdout,
        "warning[no-route] west: 10.42.1.0 → 10.41.2.0 (west → east): east/n1 has no route to east/n2: both have the \
         internal address 10.0.2.15",
    );
    for (from, to, code) in [("west", "east/n1", 0), ("west", "east/n3", 1), ("east/n2", "west", 1)]
    {
        assert_eq!(folder.run(&["trace", from, to]).code, code, "{from} to {to}");
    }
    assert_contains(&folder.run(&["validate"]).stdout, "warning[shared-internal-ip]: east/n3: ");
}

#[test]
fn equal_and_nested_pod_cidrs_in_a_location_are_reported_and_not_proved() {
    for (pods, working_paths, message) in [
        (
            "10.41.2.0/24",
            2,
            "east/n3: pod CIDR 10.41.2.0/24 overlaps 10.41.2.0/24 of `n2`: the leader of their location reaches the pods \
             of only one of them",
        ),
        // The addresses outside of the narrower one still get to `n2`, but not all do.
        ("10.41.2.128/25", 4, "east/n2: pod CIDR 10.41.2.0/24 overlaps 10.41.2.128/25 of `n3`"),
        ("10.41.1.0/24", 2, "east/n3: pod CIDR 10.41.1.0/24 overlaps 10.41.1.0/24 of `n1`"),
    ] {
        let folder = Folder::case("same-pod-cidr-in-location");
        let mut east: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
        east["nodes"][2]["podCIDRs"] = json!([pods]);
        folder.write("snapshots/east.json", east.to_string());
        assert_eq!(working(&folder), (0, json!(working_paths)), "{pods}");
        let run = folder.run(&["validate", "--output", "concise"]);
        assert_contains(&run.stdout, &format!("warning[overlapping-node-pod-cidr] {message}"));
    }
}

#[test]
fn a_trace_to_a_node_names_another_one_with_its_address() {
    let folder = Folder::case("same-pod-cidr-in-location");
    folder.run(&["render"]);
    let run = folder.run(&["trace", "west/n1", "east/n3"]);
    assert_contains(&run.stdout, "\nTO names east/n3, but east/n2 has 10.41.2.2 too\n");
    let run = folder.run(&["trace", "west/n1", "east/n2"]);
    assert!(!run.stdout.contains("TO names"), "{}", run.stdout);
}

/// Beside another plugin, Kilo may run with `--local=false`: the plugin then has the routes, and no annotation shows it.
#[test]
fn the_routes_of_a_network_plugin_are_assumed() {
    for (case, nodes) in [
        ("same-internal-ip-virtualbox", "east/n2, east/n3"),
        ("same-pod-cidr-in-location", "east/n2, east/n3"),
    ] {
        for source in ["Kept", "Masqueraded"] {
            let folder = Folder::case(case);
            folder.edit(
                "mesh.yaml",
                "\"name\": \"east\",",
                &format!("\"name\": \"east\", podSource: {source},"),
            );
            assert_eq!(working(&folder), (0, json!(2)), "{case}");
            let verified = folder.run(&["verify"]).stdout;
            assert_contains(
                &verified,
                "2 of 6 declared paths work in both directions, and 4 are assumed to work.",
            );
            assert_contains(
                &verified,
                &format!(
                    "notice[assumed-reach]: east: 4 declared paths are assumed to work (east → west, west → east): Kilo has \
                     no unique route between {nodes} and the leader, because nodes have the same internal IPs or pod CIDRs, \
                     so only the network plugin may have one\n"
                ),
            );
            assert_contains(
                &folder.run(&["trace", "west/n1", "east/n3"]).stdout,
                "the network plugin has a route between east/n3 and the leader of its location",
            );
        }
    }
    // Most nodes show a plugin.
    let folder = Folder::case("same-internal-ip-virtualbox");
    for name in ["n1", "n2"] {
        let name = format!("\"name\": \"{name}\",");
        folder.edit(
            "snapshots/east.json",
            &name,
            &format!("{name} \"plugin\": {{ \"name\": \"Cilium\" }},"),
        );
    }
    assert_eq!(working(&folder), (0, json!(2)));
    assert_contains(&folder.run(&["verify"]).stdout, "and 4 are assumed to work.");
    // Of two nodes, one claims the pod CIDR of the other, which is the leader.
    let folder = Folder::case("same-pod-cidr-in-location");
    folder.edit("mesh.yaml", "\"name\": \"east\",", "\"name\": \"east\", podSource: Kept,");
    let mut east: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    east["nodes"].as_array_mut().unwrap().truncate(2);
    east["nodes"][1]["podCIDRs"] = json!(["10.41.1.0/24"]);
    folder.write("snapshots/east.json", east.to_string());
    assert_eq!(working(&folder), (0, json!(0)));
}

/// In a cluster of one location, the only other node claims the address of the leader.
#[test]
fn the_claim_of_one_node_of_two_fails_no_proof() {
    let folder = Folder::case("same-internal-ip-virtualbox");
    let mut east: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    east["nodes"].as_array_mut().unwrap().truncate(2);
    folder.write("snapshots/east.json", east.to_string());
    assert_eq!(working(&folder), (0, json!(2)));
}
