//! Paths that work only under a condition that no snapshot shows.

use super::*;

/// A rendered mesh in which `east` declares more ranges.
fn declaring(fields: &str) -> Folder {
    let folder = Folder::mesh();
    let entry = "wireguardCIDR: 10.101.0.0/24\n";
    folder.edit("mesh.yaml", entry, &format!("{entry}      {fields}\n"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

/// Another router has to know the way from the anchor, and no snapshot shows it.
#[test]
fn a_route_of_an_anchor_into_a_network_that_no_node_shows_is_assumed() {
    let folder = declaring("additionalCIDRs: [172.21.0.0/24]");
    let (code, text) = verified(&folder, &["--fail-on", "warning"]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod  pod → network
    east   north  4/4        -
    east   west   4/4        -
    north  east   4/4        0/2 ?2
    north  west   4/4        -
    west   east   4/4        0/2 ?2
    west   north  4/4        -

    only east/n1 carries 172.21.0.0/24 for north, west
    assumes that east/n1 can forward to 172.21.0.0/24, which is on the LAN of no node (4 paths)

    24 of 28 declared paths work in both directions, and 4 are assumed to work.
    ");
    assert_eq!(code, 0);
    let value = folder.run(&["verify", "--output", "json"]).json();
    assert_eq!(value["holds"], true);
    assert_eq!(value["findings"], json!([]));
    assert_eq!(value["assumptions"][0]["premise"], "route");
    assert_eq!(value["assumptions"][0]["pairs"], 4);
    let run = folder.run(&["trace", "west/n1", "east/172.21.0.9"]);
    assert_contains(&run.stdout, "assumes: east/n1 has a route to 172.21.0.9");
    assert_eq!(run.code, 0);
}

/// The services of kube-proxy have no LAN, and what a node announces is known.
#[test]
fn services_and_shown_networks_are_proved() {
    for fields in ["serviceCIDR: 172.21.0.0/24", "additionalCIDRs: [192.168.1.0/24]"] {
        let (_, text) = verified(&declaring(fields), &[]);
        assert!(!text.contains("assume"), "{fields}: {text}");
    }
    let folder = declaring("additionalCIDRs: [172.21.0.0/24]");
    let mut announcing = node(1, 1);
    announcing["annotations"]["kilo.squat.ai/allowed-location-ips"] = json!("172.21.0.0/16");
    folder.keep("east", &[announcing, node(1, 2)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, text) = verified(&folder, &[]);
    assert!(!text.contains("assume"), "{text}");
}

/// Such paths alone are neither a proof nor a failure.
#[test]
fn a_mesh_that_needs_only_such_routes_does_not_fail() {
    let folder = declaring("additionalCIDRs: [172.21.0.0/24]");
    for range in ["10.102.0.0/24", "10.103.0.0/24"] {
        let entry = format!("wireguardCIDR: {range}\n");
        let limited = format!("{entry}      acceptedNetworks: [172.21.0.0/24]\n");
        folder.edit("mesh.yaml", &entry, &limited);
    }
    let run = folder.run(&["render", "--allow-empty", "*"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = folder.run(&["verify", "--output", "json"]);
    let value = run.json();
    assert_eq!(value["total"]["working"], 0, "{value:#}");
    assert_eq!(value["total"]["assumed"], 4, "{value:#}");
    assert_eq!(run.code, 0, "{value:#}");
}

/// An address that a node had before may now be that of a device in front of it.
#[test]
fn an_endpoint_that_no_node_shows_is_assumed() {
    let folder = Folder::rendered();
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        let address = format!("198.18.7.{number}");
        node["addresses"][1]["address"] = json!(address);
        node["annotations"]["kilo.squat.ai/endpoint"] = json!(format!("{address}:51820"));
        node
    });
    folder.keep("east", &nodes);
    let run = folder.run(&["trace", "west/n1", "east/n1"]);
    let premise = "assumes: 198.18.113.11:51820 of the Peer prod--east--n1, which is not the address of any node, leads to the other side";
    assert_contains(&run.stdout.replace("\n     ", " "), premise);
    let (code, text) = verified(&folder, &[]);
    let findings = text.splitn(3, "\n\n").nth(2).unwrap();
    insta::assert_snapshot!(findings, @"
    warning[outdated-tree]: the rendered tree is not what `render` would write: 2 files differ (rendered/north/prod--east.yaml, rendered/west/prod--east.yaml) (2 other findings follow from it)
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    With the outdated Peers in rendered: 8 of 24 declared paths work in both directions, and 16 are assumed to work.
    ");
    assert_eq!(code, 0);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = verified(&folder, &["--fail-on", "warning"]);
    assert_contains(&text, "All 24 declared paths work");
    assert_eq!(code, 0);
}

/// Nodes of `east` that show pods of Cilium outside of their pod CIDRs.
fn with_cilium(numbers: &[u8]) -> Vec<Value> {
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        if numbers.contains(&number) {
            let pods = format!("10.0.{number}.0/24");
            node["plugin"] = json!({ "name": "Cilium", "podAddresses": [pods] });
        }
        node
    });
    nodes.to_vec()
}

/// Kilo routes the pod CIDRs of Kubernetes, and Cilium may give pods other addresses.
#[test]
fn pods_with_other_addresses_are_assumed() {
    let folder = Folder::rendered();
    folder.keep("east", &with_cilium(&[1, 2]));
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
    let (code, text) = verified(&folder, &[]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod
    east   north  0/4 ?4
    east   west   0/4 ?4
    north  east   0/4 ?4
    north  west   4/4
    west   east   0/4 ?4
    west   north  4/4

    warning[mismatched-pod-addresses]: east: Cilium gives pods addresses that Kilo does not route: pods of n1 have 10.0.1.0/24, and its pod CIDR is 10.1.1.0/24 (both nodes)
    help: set `ipam.mode=kubernetes` in the Helm values of Cilium, create all pods of the cluster again, then run `clustermesh snapshot east`

    8 of 24 declared paths work in both directions, and 16 are assumed to work.
    ");
    assert_eq!(code, 0);
    let value = folder.run(&["verify", "--output", "json"]).json();
    assert_eq!(value["assumptions"][0]["premise"], "pods");
    assert_eq!(value["assumptions"][0]["pairs"], 16);
    assert_eq!(value["findings"].as_array().unwrap().len(), 1);
    let run = folder.run(&["trace", "west/n1", "east/10.1.1.9"]);
    assert_contains(&run.stdout, "assumes: pods of east have addresses of their nodes' pod CIDRs");
    let run = folder.run(&["validate"]);
    assert_eq!(run.stdout.matches("[mismatched-pod-addresses]").count(), 1, "{}", run.stdout);
    assert_contains(&folder.run(&["graph"]).stdout, "an assumption");
    // Half of the nodes are not believed.
    folder.keep("east", &with_cilium(&[2]));
    let (_, text) = verified(&folder, &[]);
    assert_contains(&text, "All 24 declared paths work");
    assert!(!text.contains("mismatched"), "{text}");
}

/// One node is most nodes of its cluster, and its claim alone must not fail a merge.
#[test]
fn the_claim_of_an_only_node_is_a_warning() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    folder.keep("west", &[node(3, 1)]);
    let mut only = node(1, 1);
    only["plugin"] = json!({ "name": "Calico", "podAddresses": ["192.168.5.1/32"] });
    folder.keep("east", &[only]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = verified(&folder, &[]);
    assert_contains(&text, "warning[nothing-proved]");
    assert_contains(&text, "warning[mismatched-pod-addresses]: east: ");
    assert_eq!(code, 0, "{text}");
}

/// A network plugin that masquerades gives packets of pods the WireGuard address of their node, for which other clusters
/// have no range.
#[test]
fn pods_whose_packets_may_be_masqueraded_are_assumed() {
    let entry = "wireguardCIDR: 10.101.0.0/24\n";
    for (source, plugin, is_assumed) in [
        ("", json!({ "name": "Cilium" }), true),
        ("podSource: Kept", json!({ "name": "Cilium" }), false),
        ("podSource: Masqueraded", Value::Null, true),
        ("", Value::Null, false),
    ] {
        let folder = Folder::mesh();
        let fields = format!("advertise: {{ wireguardAddresses: None }}\n      {source}\n");
        folder.edit("mesh.yaml", entry, &format!("{entry}      {fields}"));
        let nodes = [1, 2].map(|number| {
            let mut node = node(1, number);
            node["plugin"] = plugin.clone();
            node
        });
        folder.keep("east", &nodes);
        assert_eq!(folder.run(&["render"]).code, 0);
        let (code, text) = verified(&folder, &[]);
        assert_eq!(code, 0, "{text}");
        let message = "a network plugin may masquerade packets of pods on east/n1, east/n2, and with an address of \
                       their node such as 10.101.0.1 they are lost";
        assert_eq!(text.contains(message), is_assumed, "{text}");
        assert_eq!(text.contains("and 8 are assumed to work."), is_assumed, "{text}");
        let run = folder.run(&["trace", "east/n1", "west/n1"]);
        let premise = "assumes: the network plugin keeps the address of the pod";
        assert_eq!(run.stdout.contains(premise), is_assumed, "{}", run.stdout);
        let value = folder.run(&["verify", "--output", "json"]).json();
        let premise = &value["assumptions"][0]["premise"];
        assert_eq!(*premise == "source", is_assumed, "{value}");
    }
}
