//! Address families: which one a cluster's Kilo routes, and what is proved of the other.

use crate::cli::*;
use crate::support::assert_contains;

const V4: &str = "10.1.1.0/24";
const V6: &str = "fd00:1:1::/64";

/// Clusters `east` and `west` of two dual-stack nodes each, whose internal addresses are IPv4.
fn dual_stack(is_v6_first: bool) -> Folder {
    let folder = Folder::empty();
    folder.write("mesh.yaml", MESH.replace(NORTH, ""));
    for (number, cluster) in [(1, "east"), (3, "west")] {
        let (v4, v6) = (format!("10.{number}.0.0/16"), format!("fd00:{number}::/32"));
        folder.edit("mesh.yaml", &format!("[{v4}]"), &format!("[{v4}, '{v6}']"));
        let nodes = [1, 2].map(|it| {
            let mut node = node(number, it);
            let v4 = format!("10.{number}.{it}.0/24");
            let v6 = format!("fd00:{number}:{it}::/64");
            node["podCIDRs"] = if is_v6_first { json!([v6, v4]) } else { json!([v4, v6]) };
            node
        });
        folder.keep(cluster, &nodes);
    }
    folder
}

fn verified(folder: &Folder) -> (i32, Value) {
    let run = folder.run(&["verify", "--output", "json"]);
    (run.code, run.json())
}

#[test]
fn every_exported_pod_cidr_is_proved_and_the_others_are_reported() {
    let folder = dual_stack(false);
    assert_eq!(folder.run(&["render"]).code, 0);
    let rendered = folder.read("rendered/west/prod--east.yaml");
    assert!(rendered.contains(V4) && !rendered.contains(V6), "{rendered}");
    let (code, value) = verified(&folder);
    assert_eq!(code, 0, "{value:#}");
    assert_eq!(value["total"]["declared"], 8, "{value:#}");
    assert_eq!(value["total"]["working"], 8);
    let findings = value["findings"].as_array().unwrap();
    let report = findings.iter().find(|it| it["cluster"] == "east").unwrap();
    assert_eq!(
        (&report["rule"], &report["severity"]),
        (&json!("unreached-pods"), &json!("notice"))
    );
    let message = report["message"].as_str().unwrap();
    assert!(message.contains(V6) && !message.contains(V4), "{message}");
}

/// The kernel refuses the routes to the pods of the other nodes, and Kilo's pass ends there.
#[test]
fn a_first_pod_cidr_of_the_other_family_leaves_nothing_certain() {
    let folder = dual_stack(true);
    assert_eq!(folder.run(&["render"]).code, 0);
    let rendered = folder.read("rendered/west/prod--east.yaml");
    assert!(rendered.contains(V4) && !rendered.contains(V6), "{rendered}");
    let (code, value) = verified(&folder);
    assert_eq!(code, 1, "{value:#}");
    let total = &value["total"];
    assert_eq!([&total["declared"], &total["working"]], [&json!(8), &json!(0)]);
    let trace = folder.run(&["trace", "west/n1", "10.1.1.7"]);
    assert_eq!(trace.code, 1);
    let ending = trace.stdout.split("error[").nth(1);
    insta::assert_snapshot!(ending.unwrap_or_default(), @"
    ambiguous]: the kernel refuses the route to fd00:3:2::/64 via 10.103.0.2 that Kilo sets on west/n1: Kilo stops there, so other routes of west/n1 may be missing
    help: let the first pod CIDR and the internal IP of each node be of one family: `mismatched-subnet` in `clustermesh validate` has the command
    ");
    // A node alone has no other one to route to.
    for (number, cluster) in [(1, "east"), (3, "west")] {
        let mut alone = node(number, 1);
        let (v4, v6) = (format!("10.{number}.1.0/24"), format!("fd00:{number}:1::/64"));
        alone["podCIDRs"] = json!([v6, v4]);
        folder.keep(cluster, &[alone]);
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(verified(&folder).0, 0);
}

/// One node has its IPv6 range first. Its own routes are complete; those of the other node may not be.
#[test]
fn only_nodes_with_a_refused_route_are_uncertain() {
    let folder = dual_stack(false);
    let nodes = [1, 2].map(|it| {
        let mut node = node(1, it);
        let (v4, v6) = (format!("10.1.{it}.0/24"), format!("fd00:1:{it}::/64"));
        node["podCIDRs"] = if it == 1 { json!([v6, v4]) } else { json!([v4, v6]) };
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, value) = verified(&folder);
    let total = &value["total"];
    // One node of two is never an error.
    assert_eq!(code, 0, "{value:#}");
    assert_eq!([&total["declared"], &total["working"]], [&json!(8), &json!(4)]);
    assert_eq!(folder.run(&["trace", "west/n1", "east/n1"]).code, 0);
    let run = folder.run(&["trace", "west/n1", "east/n2"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "Kilo sets on east/n2");
}

#[test]
fn a_trace_finds_whose_pods_they_are_in_either_family() {
    for is_v6_first in [true, false] {
        let folder = dual_stack(is_v6_first);
        assert_eq!(folder.run(&["render"]).code, 0);
        let run = folder.run(&["trace", "west/n1", "10.1.1.7"]);
        assert_eq!(run.code, i32::from(is_v6_first), "{}{}", run.stdout, run.stderr);
        assert_contains(&run.stdout, "to a pod on east/n1");
        let run = folder.run(&["trace", "west/fd00:3:1::7", "fd00:1:1::7"]);
        assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
        assert_contains(&run.stdout, "no-route");
    }
}

/// Kilo knows of the first pod CIDR only, so that a leader has no route to another node's second one.
#[test]
fn a_second_pod_cidr_behind_a_leader_is_not_reached() {
    let folder = dual_stack(true);
    let nodes = [1, 2].map(|it| {
        let mut node = node(1, it);
        node["podCIDRs"] = json!([format!("fd00:1:{it}::/64"), format!("10.1.{it}.0/24")]);
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations["kilo.squat.ai/granularity"] = json!("location");
        if it == 2 {
            annotations["kilo.squat.ai/wireguard-ip"] = json!("");
        }
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, value) = verified(&folder);
    let findings = value["findings"].to_string();
    assert!(findings.contains("10.1.2.0/24") && !findings.contains("10.1.1.0/24"), "{findings}");
}

/// Without internal addresses the nodes' pod CIDRs decide, not the order of a flat list.
#[test]
fn a_flat_list_that_begins_with_the_other_family_changes_nothing() {
    let folder = Folder::mesh();
    let typed = "podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", typed, "allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]");
    let nodes = [1, 2].map(|it| {
        let mut node = node(1, it);
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations["kilo.squat.ai/internal-ip"] = json!("");
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let rendered = folder.read("rendered/east/prod--west.yaml");
    assert_eq!(rendered.matches("kind: Peer").count(), 2, "{rendered}");
    folder.edit("mesh.yaml", "[10.1.0.0/16, 10", "['fd00:1::/48', 10.1.0.0/16, 10");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.read("rendered/east/prod--west.yaml"), rendered);
}

/// Lets `east` be dialled at IPv6 addresses, which only the nodes of `west` after the first few show.
fn dialled_at_v6(showing: std::ops::Range<u8>) -> Folder {
    let folder = Folder::empty();
    folder.write("mesh.yaml", MESH.replace(NORTH, ""));
    let east = [1, 2].map(|it| {
        let mut node = node(1, it);
        let address = format!("2001:db8:1::{it}");
        node["annotations"]["kilo.squat.ai/clustermesh-endpoint"] =
            json!(format!("[{address}]:51820"));
        node
    });
    let west = [1, 2].map(|it| {
        let mut node = node(3, it);
        if showing.contains(&it) {
            let address = json!({ "address": format!("2001:db8:3::{it}"), "type": "ExternalIP" });
            node["addresses"].as_array_mut().unwrap().push(address);
        }
        node
    });
    folder.keep("east", &east);
    folder.keep("west", &west);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

#[test]
fn a_family_that_no_snapshot_shows_is_assumed() {
    let (code, value) = verified(&dialled_at_v6(1..3));
    assert_eq!((code, &value["total"]["working"]), (0, &json!(8)), "{value:#}");
    let folder = dialled_at_v6(1..2);
    let (code, value) = verified(&folder);
    assert_eq!(code, 0, "{value:#}");
    let total = &value["total"];
    assert_eq!(
        [&total["declared"], &total["working"], &total["assumed"]],
        [&json!(8), &json!(4), &json!(4)]
    );
    let assumption = &value["assumptions"][0];
    assert_eq!(assumption["premise"], "ipv6");
    assert_eq!(assumption["pairs"], 4);
    assert_eq!(assumption["nodes"], json!([{ "cluster": "west", "node": "n2" }]));
    let run = folder.run(&["verify", "--fail-on", "warning"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    insta::assert_snapshot!(run.stdout, @"
    mesh prod (mesh.yaml): 2 clusters, Peers from rendered

    FROM  TO    pod → pod
    east  west  2/4 ?2
    west  east  2/4 ?2

    notice[assumed-reach]: west: 4 declared paths are assumed to work (east → west, west → east): west/n2 must dial IPv6 endpoints such as [2001:db8:1::1]:51820, and its snapshot shows no IPv6 address
      --> rendered/west/prod--east.yaml:15:5
       |
    15 |     dnsOrIP:
       |     ^^^^^^^^ this endpoint
    help: ignore this rule for `west` if the node has IPv6 addresses; otherwise annotate the other nodes with `kilo.squat.ai/clustermesh-endpoint` and an IPv4 address

    4 of 8 declared paths work in both directions, and 4 are assumed to work.
    ");
    let run = folder.run(&["trace", "west/n2", "east/n1"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("west/n2 has an IPv6 address (not in its snapshot)"),
        "{}",
        run.stdout
    );
}

#[test]
fn what_is_only_assumed_proves_nothing() {
    let folder = dialled_at_v6(3..3);
    let (code, value) = verified(&folder);
    assert_eq!(code, 1, "{value:#}");
    assert_eq!(value["total"]["assumed"], 8);
    let findings = value["findings"].to_string();
    assert_contains(&findings, "nothing-proved");
}

/// A node that connects by itself need not be dialled, if the others expect it to connect.
#[test]
fn who_calls_need_not_be_dialled() {
    let folder = dialled_at_v6(3..3);
    let entry = "wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", entry, &format!("{entry}\n      persistentKeepalive: 25"));
    let east = [1, 2].map(|it| {
        let mut node = node(1, it);
        let address = format!("[2001:db8:1::{it}]:51820");
        node["annotations"]["kilo.squat.ai/clustermesh-endpoint"] = json!(address);
        node
    });
    folder.keep("east", &east);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, value) = verified(&folder);
    assert_eq!((code, &value["total"]["working"]), (0, &json!(8)), "{value:#}");
}

#[test]
fn a_range_on_the_lan_of_a_node_that_does_not_carry_it_is_assumed() {
    let folder = Folder::mesh();
    let entry = "wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", entry, &format!("{entry}\n      additionalCIDRs: [10.30.0.0/24]"));
    let nodes = [1, 2].map(|it| {
        let mut node = node(1, it);
        if it == 2 {
            node["annotations"]["kilo.squat.ai/internal-ip"] = json!("10.30.0.2/24");
        }
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, value) = verified(&folder);
    assert_eq!(code, 0, "{value:#}");
    assert_ne!(value["total"]["assumed"], 0, "{value:#}");
    assert_eq!(value["assumptions"][0]["premise"], "route");
    let help = value["findings"].to_string();
    assert_contains(&help, "anchors: [{ ranges: ['10.30.0.0/24'], nodes: [n2] }]");
    let anchored =
        "additionalCIDRs: [10.30.0.0/24]\n      anchors: [{ ranges: [10.30.0.0/24], nodes: [n2] }]";
    folder.edit("mesh.yaml", "additionalCIDRs: [10.30.0.0/24]", anchored);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, value) = verified(&folder);
    assert_eq!((code, &value["total"]["assumed"]), (0, &json!(0)), "{value:#}");
}

/// The advice of `verify` ends the finding.
#[test]
fn a_location_range_of_another_family_is_named_with_its_node() {
    let folder = Folder::rendered();
    let mut nodes = [node(3, 1), node(3, 2)];
    let ranges = "kilo.squat.ai/allowed-location-ips";
    nodes[0]["annotations"][ranges] = json!("fd99::/64");
    folder.keep("west", &nodes);
    let (_, value) = verified(&folder);
    let findings = value["findings"].as_array().unwrap();
    let report = findings.iter().find(|it| it["rule"] == "ambiguous").unwrap();
    let help = format!("remove fd99::/64 from the annotation `{ranges}` of n1");
    assert_eq!(report["help"], help, "{value:#}");
    nodes[0]["annotations"].as_object_mut().unwrap().remove(ranges);
    folder.keep("west", &nodes);
    assert_eq!(verified(&folder).0, 0);
}
