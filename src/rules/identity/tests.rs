//! Identities that two nodes have: whole meshes, as text.

use crate::testing::{findings, mesh_of};

const A: &str = "name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24";
const B: &str = "name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24";
const C: &str = "name: c, podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.203.0.0/24";

const NODE_A: &str = "a pod=10.1.1.0/24 wg=10.201.0.1/24 key=A external=198.18.113.1";
const NODE_B: &str = "b pod=10.2.1.0/24 wg=10.202.0.1/24 key=B external=198.18.113.2";
const NODE_C: &str = "c pod=10.3.1.0/24 wg=10.203.0.1/24 key=C external=198.18.113.3";

/// Returns the findings about three clusters in which `a` is the hub.
fn report(a: &str, b: &str, c: &str) -> String {
    let mesh = mesh_of("m", &[A, B, C]);
    let mesh = format!("{mesh}  topology: {{ mode: Hub, hubs: [a] }}\n");
    findings(&mesh, &[("a", a), ("b", b), ("c", c)])
}

#[test]
fn nodes_of_their_own_are_quiet() {
    assert_eq!(report(NODE_A, NODE_B, NODE_C), "");
}

#[test]
fn a_key_in_two_meshes_is_reported() {
    let d = "name: d, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.204.0.0/24";
    let meshes = [mesh_of("m", &[A, B]), mesh_of("k", &[C, d])].join("---\n");
    let node_c = NODE_C.replace("key=C", "key=B");
    let node_d = "d pod=10.4.1.0/24 wg=10.204.0.1/24 key=C external=198.18.113.4";
    let clusters = [("a", NODE_A), ("b", NODE_B), ("c", &node_c), ("d", node_d)];
    insta::assert_snapshot!(findings(&meshes, &clusters), @"
    warning[cloned-key] c/c: same public key as b/b
      c.json#/nodes/0/annotations/kilo.squat.ai~1key second here
      b.json#/nodes/0/annotations/kilo.squat.ai~1key of b/b
    ");
}

#[test]
fn a_silent_cluster_in_two_meshes_is_reported_once() {
    let d = "name: d, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.204.0.0/24";
    let meshes = [mesh_of("m", &[A, B]), mesh_of("k", &[B, C, d])].join("---\n");
    let node_d = "d pod=10.4.1.0/24 wg=10.204.0.1/24 key=D external=198.18.113.4";
    let silent = NODE_B.replace("key=B", "");
    let clusters = [("a", NODE_A), ("b", &silent), ("c", NODE_C), ("d", node_d)];
    let report = findings(&meshes, &clusters);
    assert_eq!(report.matches("[silent-cluster]").count(), 1, "{report}");
}

#[test]
fn a_cluster_that_is_silent_in_one_mesh_is_reported_for_that_mesh() {
    let asking = format!("{B}, endpointFrom: [Annotation]");
    let meshes = [mesh_of("m", &[A, B]), mesh_of("k", &[&asking, C])].join("---\n");
    let report = findings(&meshes, &[("a", NODE_A), ("b", NODE_B), ("c", NODE_C)]);
    let silent =
        "[silent-cluster] b: no other cluster of mesh `k` can reach it: its only node is left out";
    assert!(report.contains(silent), "{report}");
}

#[test]
fn a_key_that_the_plan_settles_is_reported_there_only() {
    let spokes = report(NODE_A, NODE_B, &NODE_C.replace("key=C", "key=B"));
    assert!(spokes.contains("[key-in-two-clusters]"), "{spokes}");
    assert!(!spokes.contains("[cloned-key]"), "{spokes}");
    let hub = report(NODE_A, NODE_B, &NODE_C.replace("key=C", "key=A"));
    assert!(hub.contains("[key-of-target-node]"), "{hub}");
    assert!(!hub.contains("[cloned-key]"), "{hub}");
}

#[test]
fn a_key_of_a_node_that_is_left_out_is_reported() {
    let two = format!("{NODE_A} granularity=full\nz pod=10.1.2.0/24 key=A granularity=full");
    let stranger = "c pod=192.168.0.0/24 wg=10.203.0.1/24 key=B external=198.18.113.3";
    insta::assert_snapshot!(report(&two, NODE_B, stranger), @"
    error[contradicted-declaration] c: the only node has pod CIDRs outside the declared 10.3.0.0/16: 192.168.0.0/24
      mesh.yaml#/spec/clusters/2/podCIDRs/0 no node has an address in it
    warning[missing-wireguard-ip] a/z: left out: annotation kilo.squat.ai/wireguard-ip is missing or empty
      a.json#/nodes/1/name 
    warning[silent-cluster] c: no other cluster can reach it: its only node is left out (undeclared-pod-cidr)
    warning[undeclared-pod-cidr] c/c: left out: pod CIDR 192.168.0.0/24 is outside the declared ranges
      c.json#/nodes/0/podCIDRs/0 
    warning[cloned-key] a/z: same public key as a/a
      a.json#/nodes/1/annotations/kilo.squat.ai~1key second here
      a.json#/nodes/0/annotations/kilo.squat.ai~1key of a/a
    warning[cloned-key] c/c: same public key as b/b
      c.json#/nodes/0/annotations/kilo.squat.ai~1key second here
      b.json#/nodes/0/annotations/kilo.squat.ai~1key of b/b
    ");
}

#[test]
fn an_unusable_key_is_nobody_s() {
    let zero = "key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let (b, c) = (NODE_B.replace("key=B", zero), NODE_C.replace("key=C", zero));
    let report = report(NODE_A, &b, &c);
    assert!(!report.contains("[cloned-key]"), "{report}");
}

#[test]
fn one_endpoint_for_two_is_reported_wherever_they_are() {
    let c = NODE_C.replace("external=198.18.113.3", "force-endpoint=198.18.113.2:51820");
    insta::assert_snapshot!(report(NODE_A, NODE_B, &c), @"
    warning[shared-endpoint] c/c: same endpoint as b/b: 198.18.113.2:51820
      c.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint second here
      b.json#/nodes/0/annotations/kilo.squat.ai~1endpoint of b/b
    ");
}

#[test]
fn endpoints_are_compared_as_what_they_mean() {
    let node = |node: &str, endpoint: &str| {
        let head = node.split(" external").next().unwrap();
        format!("{head} force-endpoint={endpoint}")
    };
    for (one, other, is_same) in [
        ("[2a0e:0::0:1]:51820", "[2a0e::1]:51820", true),
        ("198.18.113.9:51820", "[::ffff:198.18.113.9]:51820", true),
        ("198.18.113.9:51820", "198.18.113.9:51821", false),
        ("[2a0e::1]:51820", "[2a0e::2]:51820", false),
        // Each may have a network of its own.
        ("192.168.1.9:51820", "192.168.1.9:51820", false),
        ("[fd00::1]:51820", "[fd00::1]:51820", false),
    ] {
        let report = report(NODE_A, &node(NODE_B, one), &node(NODE_C, other));
        assert_eq!(report.contains("[shared-endpoint]"), is_same, "{report}");
    }
}

#[test]
fn a_name_is_an_endpoint_too() {
    let entry = |entry: &str| format!("{entry}, endpointDomains: [example.org]");
    let node = |node: &str| format!("{node} force-endpoint=wg.example.org:51820");
    let mesh = mesh_of("m", &[&entry(A), &entry(B)]);
    let report = findings(&mesh, &[("a", &node(NODE_A)), ("b", &node(NODE_B))]);
    insta::assert_snapshot!(report, @"
    warning[shared-endpoint] b/b: same endpoint as a/a: wg.example.org:51820
      b.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint second here
      a.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint of a/a
    notice[dns-endpoint] a/a: endpoint wg.example.org:51820 is a DNS name: Kilo applies no changes on nodes that cannot resolve it
      a.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint 
    notice[dns-endpoint] b/b: endpoint wg.example.org:51820 is a DNS name: Kilo applies no changes on nodes that cannot resolve it
      b.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint
    ");
}

#[test]
fn one_machine_is_not_reported_of_twice() {
    let same = "key=B external=198.18.113.2";
    let c = NODE_C.replace("key=C external=198.18.113.3", same);
    let report = report(NODE_A, NODE_B, &c);
    assert!(!report.contains("[shared-endpoint]"), "{report}");
}

#[test]
fn one_cluster_under_two_names_is_reported_as_such() {
    let b = format!("{NODE_B} uid=1 granularity=full\nx uid=2\ny uid=3");
    let c = b.replace("10.2.", "10.3.").replace("10.202.", "10.203.");
    insta::assert_snapshot!(report(NODE_A, &b, &c), @"
    warning[missing-pod-cidr] b/x: left out: no pod CIDR is assigned
      b.json#/nodes/1/podCIDRs 
    warning[missing-pod-cidr] b/y: left out: no pod CIDR is assigned
      b.json#/nodes/2/podCIDRs 
    warning[missing-pod-cidr] c/x: left out: no pod CIDR is assigned
      c.json#/nodes/1/podCIDRs 
    warning[missing-pod-cidr] c/y: left out: no pod CIDR is assigned
      c.json#/nodes/2/podCIDRs 
    warning[key-in-two-clusters] c/b: left out: same public key as b/b, whose cluster ranks higher (target a)
      c.json#/nodes/0/annotations/kilo.squat.ai~1key 
      b.json#/nodes/0/annotations/kilo.squat.ai~1key 
    warning[node-in-two-clusters] c: all 3 nodes have UIDs of nodes of `b`, such as `b`
      c.json#/nodes/0/uid in `c`
      b.json#/nodes/0/uid in `b`
    ");
}

#[test]
fn an_internal_address_that_two_nodes_have_is_reported_unless_it_is_declared() {
    let two = format!(
        "{NODE_A} granularity=full internal-ip=10.0.2.15/24\n\
         z pod=10.1.2.0/24 wg=10.201.0.2/24 key=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE= external=198.18.113.9 granularity=full internal-ip=10.0.2.15/24"
    );
    insta::assert_snapshot!(report(&two, NODE_B, NODE_C), @"
    warning[shared-internal-ip] a/z: same internal address as `a`: 10.0.2.15
      a.json#/nodes/1/annotations/kilo.squat.ai~1internal-ip second here
      a.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip of `a`
    ");
    let a = format!("{A}, additionalCIDRs: [10.0.2.0/24]");
    let mesh = mesh_of("m", &[&a, B]);
    let declared = findings(&mesh, &[("a", &two), ("b", NODE_B)]);
    assert!(declared.contains("[duplicate-address]"), "{declared}");
    assert!(!declared.contains("[shared-internal-ip]"), "{declared}");
}

#[test]
fn an_endpoint_that_is_the_internal_address_of_a_node_is_reported() {
    let mate = "z pod=10.1.2.0/24 wg=10.201.0.2/24 key=E external=198.18.113.9 \
                endpoint=198.18.113.9:51820 granularity=full";
    let node = format!("{NODE_A} endpoint=198.18.113.1:51820 granularity=full");
    let with = |forced: &str| report(&format!("{node} {forced}\n{mate}"), NODE_B, NODE_C);
    insta::assert_snapshot!(with("force-internal-ip=198.18.113.2/32"), @"
    warning[captured-endpoint] a/a: internal address 198.18.113.2 is the endpoint of b/b: Kilo on the other nodes of a routes packets for b/b to this node
      a.json#/nodes/0/annotations/kilo.squat.ai~1force-internal-ip 
      b.json#/nodes/0/addresses/0/address of b/b
    ");
    // Its own endpoint, and an address that no node has.
    for address in ["198.18.113.1/32", "198.18.113.77/24"] {
        let report = with(&format!("force-internal-ip={address}"));
        assert!(!report.contains("captured-endpoint"), "{report}");
    }
    // No other node routes it.
    let alone = format!("{node} force-internal-ip=198.18.113.2/32");
    let report = report(&alone, NODE_B, NODE_C);
    assert!(!report.contains("captured-endpoint"), "{report}");
}

#[test]
fn an_internal_address_among_the_pods_of_another_node_is_reported() {
    let own = format!("{NODE_A} granularity=full internal-ip=10.1.1.9/24");
    assert_eq!(report(&own, NODE_B, NODE_C), "", "its own pods are no other node's");
    let others = format!(
        "{NODE_A} granularity=full internal-ip=10.1.2.9/24\nz pod=10.1.2.0/24 wg=10.201.0.2/24 key=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE= external=198.18.113.9 granularity=full internal-ip=192.168.0.9/24"
    );
    insta::assert_snapshot!(report(&others, NODE_B, NODE_C), @"
    warning[shared-internal-ip] a/a: its internal address 10.1.2.9 is in 10.1.2.0/24, the pod CIDR of `z`
      a.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip 
      a.json#/nodes/1/podCIDRs of `z`
    ");
}
