//! Ranges that clash, or are for another use: whole meshes, as text.

use crate::testing::{findings, mesh_of};

const A: &str = "name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24";
const B: &str = "name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24";

const NODE_A: &str = "a pod=10.1.1.0/24 wg=10.201.0.1/24 key=A external=198.18.113.1";
const NODE_B: &str = "b pod=10.2.1.0/24 wg=10.202.0.1/24 key=B external=198.18.113.2";

const FLAT: &str = "name: a, allowedNetworks: [10.1.0.0/16, 10.201.0.0/24, 10.111.0.0/16]";

/// Returns the findings about these entries with these nodes of `a` and `b`.
fn report(entries: &[&str], a: &str, b: &str) -> String {
    findings(&mesh_of("m", entries), &[("a", a), ("b", b)])
}

/// Returns three nodes of `a` that lead, in a full mesh, with these WireGuard addresses.
fn three(wireguard: [&str; 3]) -> String {
    let nodes = wireguard.iter().zip(["A", "B", "C"]).enumerate().map(|(number, (wireguard, key))| {
        format!("a{number} pod=10.1.{number}.0/24 wg={wireguard} key={key} external=198.18.113.1{number} granularity=full")
    });
    nodes.collect::<Vec<_>>().join("\n")
}

const OTHER: &str = "b pod=10.2.1.0/24 wg=10.202.0.1/24 key=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE= external=198.18.113.2";

#[test]
fn a_sound_mesh_is_quiet() {
    assert_eq!(report(&[A, B], NODE_A, NODE_B), "");
    let flat = three(["10.201.0.1/24", "10.201.0.2/24", "10.201.0.3/24"]);
    assert_eq!(report(&[FLAT, B], &flat, OTHER), "");
}

#[test]
fn declared_ranges_are_judged_once_however_many_meshes_name_them() {
    let a = format!("{A}, additionalCIDRs: [172.0.0.0/8, 127.0.0.0/8, 2a01:4f8::/48]");
    let c = "name: c, podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.203.0.0/24";
    let meshes = [mesh_of("m", &[&a, B]), mesh_of("k", &[&a, c])].join("---\n");
    let node_c = "c pod=10.3.1.0/24 wg=10.203.0.1/24 key=C external=198.18.113.3";
    let clusters = [("a", NODE_A), ("b", NODE_B), ("c", node_c)];
    insta::assert_snapshot!(findings(&meshes, &clusters), @"
    error[unroutable-range] a: 127.0.0.0/8 contains loopback addresses, which cannot be routed between clusters
      mesh.yaml#/spec/clusters/0/additionalCIDRs/1 declared here
    notice[unroutable-family] a: 1 IPv6 range left out, where Kilo routes only IPv4 (targets b, c)
    notice[public-range] a: 172.0.0.0/8 contains public addresses
      mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
    notice[public-range] a: 2a01:4f8::/48 contains public addresses
      mesh.yaml#/spec/clusters/0/additionalCIDRs/2 declared here
    ");
}

#[test]
fn an_umbrella_is_reported_of_the_range_and_not_of_its_nodes() {
    let umbrella = "name: a, allowedNetworks: [10.0.0.0/15, 10.201.0.0/24]";
    let nodes = three(["10.0.0.1/24", "10.0.0.2/24", "10.201.0.3/24"]);
    insta::assert_snapshot!(report(&[umbrella, B], &nodes, OTHER), @"
    warning[misplaced-wireguard-ip] a/a2: WireGuard address 10.201.0.3 is in 10.201.0.0/24, but those of most nodes are in 10.0.0.0/15
      a.json#/nodes/2/annotations/kilo.squat.ai~1wireguard-ip 
      mesh.yaml#/spec/clusters/0/allowedNetworks/1 contains it
    notice[umbrella-range] a: 10.0.0.0/15 contains both pod CIDRs and WireGuard addresses; other addresses in it are not reachable
      mesh.yaml#/spec/clusters/0/allowedNetworks/0 declared here
    ");
}

#[test]
fn a_wireguard_address_outside_of_the_range_of_the_others_is_reported() {
    let nodes = three(["10.201.0.1/24", "10.201.0.2/24", "10.111.0.10/16"]);
    insta::assert_snapshot!(report(&[FLAT, B], &nodes, OTHER), @"
    warning[misplaced-wireguard-ip] a/a2: WireGuard address 10.111.0.10 is in 10.111.0.0/16, but those of most nodes are in 10.201.0.0/24
      a.json#/nodes/2/annotations/kilo.squat.ai~1wireguard-ip 
      mesh.yaml#/spec/clusters/0/allowedNetworks/2 contains it
    ");
}

#[test]
fn without_a_majority_nobody_is_taken_at_their_word() {
    let nodes = three(["10.201.0.1/24", "10.111.0.10/16", "10.1.9.9/16"]);
    insta::assert_snapshot!(report(&[FLAT, B], &nodes, OTHER), @"
    warning[misplaced-wireguard-ip] a/a0: WireGuard address 10.201.0.1 is in 10.201.0.0/24, but those of other nodes are not
      a.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip 
      mesh.yaml#/spec/clusters/0/allowedNetworks/1 contains it
    warning[misplaced-wireguard-ip] a/a1: WireGuard address 10.111.0.10 is in 10.111.0.0/16, but those of other nodes are not
      a.json#/nodes/1/annotations/kilo.squat.ai~1wireguard-ip 
      mesh.yaml#/spec/clusters/0/allowedNetworks/2 contains it
    warning[misplaced-wireguard-ip] a/a2: WireGuard address 10.1.9.9 is in 10.1.0.0/16, but those of other nodes are not
      a.json#/nodes/2/annotations/kilo.squat.ai~1wireguard-ip 
      mesh.yaml#/spec/clusters/0/allowedNetworks/0 contains it
    ");
}

#[test]
fn what_is_lost_to_another_node_s_pods_is_reported_there_only() {
    let nodes = three(["10.201.0.1/24", "10.201.0.2/24", "10.1.0.9/16"]);
    let report = report(&[FLAT, B], &nodes, OTHER);
    assert!(report.contains("[address-in-pod-cidr]"), "{report}");
    assert!(!report.contains("[misplaced-wireguard-ip]"), "{report}");
}

#[test]
fn typed_ranges_hold_their_uses_apart() {
    let nodes = three(["10.201.0.1/24", "10.201.0.2/24", "10.111.0.10/16"]);
    let report = report(&[A, B], &nodes, OTHER);
    assert!(!report.contains("[misplaced-wireguard-ip]"), "{report}");
}

#[test]
fn two_clusters_with_kilo_s_default_are_reported_once() {
    let a = A.replace("10.201.0.0/24", "10.4.0.0/24");
    let a_node = NODE_A.replace("10.201.0.1/24", "10.4.0.1/16");
    let b_node = NODE_B.replace("10.202.0.1/24", "10.4.0.1/16");
    insta::assert_snapshot!(report(&[&a, B], &a_node, &b_node), @"
    error[contradicted-declaration] b: the only node has WireGuard addresses outside the declared 10.202.0.0/24: 10.4.0.1
      mesh.yaml#/spec/clusters/1/wireguardCIDR declared here
    warning[silent-cluster] b: no other cluster can reach it: its only node is left out (undeclared-wireguard-ip)
    warning[undeclared-wireguard-ip] b/b: left out: WireGuard address 10.4.0.1 is outside the declared ranges
      b.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip 
    warning[overlapping-subnet] b: Kilo's subnet 10.4.0.0/16 is also the subnet of `a`
      b.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip an address in it
      a.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip of `a`
    ");
}

#[test]
fn a_subnet_over_a_range_of_its_own_or_of_a_linked_cluster_is_reported() {
    let a = "name: a, podCIDRs: [10.4.64.0/18], wireguardCIDR: 10.4.0.0/24";
    let b = "name: b, podCIDRs: [10.4.128.0/18, 10.4.192.0/18], wireguardCIDR: 10.202.0.0/24";
    let a_node = "a pod=10.4.64.0/24 wg=10.4.0.1/16 key=A external=198.18.113.1";
    let b_node = "b pod=10.4.128.0/24 wg=10.202.0.1/24 key=B external=198.18.113.2";
    insta::assert_snapshot!(report(&[a, b], a_node, b_node), @"
    warning[overlapping-subnet] a: Kilo's subnet 10.4.0.0/16 overlaps 10.4.64.0/18, which the cluster declares for another use (and 1 more)
      a.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip an address in it
      mesh.yaml#/spec/clusters/0/podCIDRs/0 of `a`
      mesh.yaml#/spec/clusters/1/podCIDRs/0 of `b`
    ");
}

#[test]
fn subnets_of_clusters_that_are_not_linked_are_their_own_affair() {
    let entry = |name: &str, number: u8, wireguard: &str| {
        format!("name: {name}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: {wireguard}")
    };
    let hub = entry("a", 1, "10.201.0.0/24");
    let (b, c) = (entry("b", 2, "10.4.0.0/24"), entry("c", 3, "10.4.1.0/24"));
    let text = mesh_of("m", &[&hub, &b, &c]);
    let b_node = "b pod=10.2.1.0/24 wg=10.4.0.1/16 key=B external=198.18.113.2";
    let c_node = "c pod=10.3.1.0/24 wg=10.4.1.1/16 key=C external=198.18.113.3";
    let clusters = [("a", NODE_A), ("b", b_node), ("c", c_node)];
    let linked = findings(&text, &clusters);
    assert_eq!(linked.matches("[overlapping-subnet] c: ").count(), 1, "{linked}");
    let spokes = format!("{text}  topology: {{ mode: Hub, hubs: [a] }}\n");
    assert_eq!(findings(&spokes, &clusters), "");
}

#[test]
fn no_node_decides_what_the_subnet_is() {
    for wireguard in [
        // One of two, one of two that have any, and lengths without information.
        ["10.201.0.1/8", "10.201.0.2/24", "10.201.0.3/24"],
        ["10.201.0.1/8", "10.201.0.2/24", ""],
        ["10.201.0.1/32", "10.201.0.2/32", "10.201.0.3/32"],
    ] {
        let report = report(&[A, B], &three(wireguard), OTHER);
        assert!(!report.contains("[overlapping-subnet]"), "{report}");
    }
}

#[test]
fn a_selector_that_a_declared_range_undoes_is_reported() {
    let with = |ranges: &str| {
        let a = format!(
            "name: a, podCIDRs: [10.1.0.0/17], wireguardCIDR: 10.201.0.0/24, {ranges}, \
             nodeSelector: {{ matchLabels: {{ pick: 'yes' }} }}"
        );
        let nodes = "\
a0 pod=10.1.0.0/24 wg=10.201.0.1/24 key=A external=198.18.113.1 internal-ip=192.168.0.1/24 label=yes granularity=full
a1 pod=10.1.128.0/24 wg=10.201.0.2/24 key=B external=198.18.113.3 internal-ip=192.168.0.2/24 granularity=full";
        let found = report(&[&a, B], nodes, OTHER);
        let mut blocks =
            found.split_inclusive('\n').skip_while(|it| !it.contains("undone-selector"));
        let head = blocks.next().unwrap_or_default().to_owned();
        head + &blocks.take_while(|it| it.starts_with(' ')).collect::<String>()
    };
    insta::assert_snapshot!(with("additionalCIDRs: [10.1.128.0/17]"), @"
    warning[undone-selector] a: 10.1.128.0/17 in `additionalCIDRs` contains addresses of nodes that `nodeSelector` leaves out: `a1` (10.1.128.0/24)
      mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
      mesh.yaml#/spec/clusters/0/nodeSelector excludes the nodes
    ");
    insta::assert_snapshot!(with("additionalCIDRs: [10.1.128.128/25]"), @"
    warning[undone-selector] a: 10.1.128.128/25 in `additionalCIDRs` contains addresses of nodes that `nodeSelector` leaves out: `a1` (10.1.128.0/24)
      mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
      mesh.yaml#/spec/clusters/0/nodeSelector excludes the nodes
    ");
    insta::assert_snapshot!(with("additionalCIDRs: [192.168.0.0/24]"), @"
    notice[undone-selector] a: 192.168.0.0/24 in `additionalCIDRs` contains addresses of nodes that `nodeSelector` leaves out: `a1` (192.168.0.2/32)
      mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
      mesh.yaml#/spec/clusters/0/nodeSelector excludes the nodes
    ");
    insta::assert_snapshot!(with("serviceCIDR: 10.1.128.0/24"), @"
    warning[undone-selector] a: 10.1.128.0/24 in `serviceCIDR` contains addresses of nodes that `nodeSelector` leaves out: `a1` (10.1.128.0/24)
      mesh.yaml#/spec/clusters/0/serviceCIDR declared here
      mesh.yaml#/spec/clusters/0/nodeSelector excludes the nodes
    ");
    insta::assert_snapshot!(with("advertise: { wireguardAddresses: Carrier }"), @"
    notice[undone-selector] a: 10.201.0.0/24 in `wireguardCIDR` contains addresses of nodes that `nodeSelector` leaves out: `a1` (10.201.0.2/32)
      mesh.yaml#/spec/clusters/0/wireguardCIDR declared here
      mesh.yaml#/spec/clusters/0/nodeSelector excludes the nodes
    ");
    assert_eq!(with("additionalCIDRs: [10.1.129.0/24]"), "");
}

#[test]
fn ranges_of_a_flat_list_that_no_anchor_carries_are_reported() {
    let with = |fields: &str| {
        let a = format!(
            "name: a, allowedNetworks: [10.1.0.0/24, 10.1.1.0/24, 10.1.2.0/24, 10.201.0.0/24], granularity: Location, \
             topologyLabel: location, {fields}"
        );
        let nodes = "\
a0 pod=10.1.0.0/24 wg=10.201.0.1/24 key=A external=198.18.113.1 endpoint=198.18.113.1:51820 internal-ip=192.168.0.1/24 location=x granularity=location
a1 pod=10.1.1.0/24 wg=10.201.0.2/24 key=B external=198.18.113.3 endpoint=198.18.113.3:51820 internal-ip=192.168.0.2/24 location=y granularity=location";
        let found = report(&[&a, B], nodes, OTHER);
        let lines = found.lines().filter(|it| it.contains("missing-carrier"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let declared = "advertise: { podCIDRs: Declared }";
    insta::assert_snapshot!(with(&format!(
        "{declared}, anchors: [{{ ranges: [10.1.0.0/24], nodes: [a0] }}, {{ ranges: [10.1.1.0/24], nodes: [a1], count: 2 }}]"
    )), @"warning[missing-carrier] a: no item of `anchors` names 10.1.1.0/24 for one location, so the pod CIDRs of each node there are rendered");
    let carrier = "advertise: { wireguardAddresses: Carrier }";
    insta::assert_snapshot!(with(&format!(
        "{carrier}, anchors: [{{ ranges: [10.1.2.0/24], nodes: [a0] }}]"
    )), @"warning[missing-carrier] a: no item of `anchors` names 10.201.0.0/24 for one location, so the WireGuard addresses of each node there are rendered");
    let all = "anchors: [{ ranges: [10.1.0.0/24, 10.201.0.0/24], nodes: [a0] }, { ranges: [10.1.1.0/24], nodes: [a1] }]";
    assert_eq!(with(&format!("{declared}, {all}")), "");
    assert_eq!(with(&format!("{carrier}, {all}")), "");
}

/// Returns the findings about a cluster without declared Services beside another one.
fn undeclared(a: &str, b: &str) -> String {
    let pod = if a.contains("10.244") { "10.244.1.0/24" } else { "10.1.1.0/24" };
    let node = NODE_A.replace("10.1.1.0/24", pod);
    report(&[&format!("name: a, wireguardCIDR: 10.201.0.0/24, {a}"), b], &node, NODE_B)
}

#[test]
fn a_range_where_undeclared_services_are_by_default_is_a_notice() {
    let kubeadm = "podCIDRs: [10.244.0.0/16]";
    let services = format!("{B}, serviceCIDR: 10.96.0.0/16");
    insta::assert_snapshot!(undeclared(kubeadm, &services), @"
    notice[undeclared-services] a: no Services are declared, and 10.96.0.0/16 of `b` meets 10.96.0.0/12, their default range in kubeadm and Talos
      mesh.yaml#/spec/clusters/1/serviceCIDR declared here
    ");
    let network = format!("{B}, additionalCIDRs: [10.100.1.0/24]");
    insta::assert_snapshot!(undeclared(kubeadm, &network), @"
    notice[undeclared-services] a: no Services are declared, and 10.100.1.0/24 of `b` meets 10.96.0.0/12, their default range in kubeadm and Talos
      mesh.yaml#/spec/clusters/1/additionalCIDRs/0 declared here
    ");
    // If the pods have no default range, other Services in the default of kubeadm are a reason to look.
    let unknown = "podCIDRs: [10.1.0.0/16]";
    insta::assert_snapshot!(undeclared(unknown, &services), @"
    notice[undeclared-services] a: no Services are declared, and 10.96.0.0/16 of `b` meets 10.96.0.0/12, their default range in kubeadm and Talos
      mesh.yaml#/spec/clusters/1/serviceCIDR declared here
    ");
    let k3s = format!("{B}, serviceCIDR: 10.43.0.0/16");
    for (a, b) in [
        (unknown, network.as_str()),
        (unknown, &k3s),
        (kubeadm, &k3s),
        (kubeadm, B),
        ("podCIDRs: [10.244.0.0/16], serviceCIDR: 10.97.0.0/16", &services),
        ("podCIDRs: [10.244.0.0/16], localNetworks: [10.222.0.0/16]", &services),
        ("podCIDRs: [10.244.0.0/16], additionalCIDRs: [10.97.0.0/24]", &services),
        ("podCIDRs: [10.244.0.0/16], acceptedNetworks: [10.2.0.0/16, 10.202.0.0/24]", &services),
    ] {
        let found = undeclared(a, b);
        assert!(!found.contains("undeclared-services"), "{a} {b}: {found}");
    }
}
