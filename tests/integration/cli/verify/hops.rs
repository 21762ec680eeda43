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

/// In a cluster of one location, the only other node claims the address of the leader.
#[test]
fn the_claim_of_one_node_of_two_fails_no_proof() {
    let folder = Folder::case("same-internal-ip-virtualbox");
    let mut east: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    east["nodes"].as_array_mut().unwrap().truncate(2);
    folder.write("snapshots/east.json", east.to_string());
    assert_eq!(working(&folder), (0, json!(2)));
}
