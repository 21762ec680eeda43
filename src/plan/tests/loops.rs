//! Endpoints in ranges of Peers.

use super::*;

const FULL: &str = "{ mode: FullMesh }";

#[test]
fn a_host_route_to_where_a_node_is_dialled_is_left_out() {
    let flat = "allowedNetworks: [10.1.0.0/16, 10.201.0.0/24, 192.168.1.0/24], \
                endpointFrom: [InternalIP]";
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A internal=192.168.1.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C internal=192.168.1.2";
    insta::assert_snapshot!(report(FULL, &[("u", flat, nodes), ("v", B, NODE_B)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32
    u in v: LoopingRanges 192.168.1.1/32 192.168.1.2/32: 192.168.1.1 of u/a1 x2
    ");
}

#[test]
fn of_a_range_of_the_whole_cluster_most_endpoints_decide() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.0/28], endpointFrom: [ExternalIP]");
    let plan_with = |second: &str| {
        let nodes = format!(
            "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external={second}
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.200.1"
        );
        report(FULL, &[("u", &fields, &nodes), ("v", B, NODE_B)])
    };
    insta::assert_snapshot!(plan_with("198.18.113.2"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: LoopingRanges 198.18.113.0/28: 198.18.113.1 of u/a1 x2
    ");
    insta::assert_snapshot!(plan_with("198.18.113.16"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a2 10.1.2.0/24 10.201.0.2/32 198.18.113.0/31 198.18.113.3/32 198.18.113.4/30 198.18.113.8/29
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: Captured 198.18.113.0/28: Endpoint(198.18.113.2) of b x1 Without([Cidr(198.18.113.2/32)])
    u in v: LoopingPeer a1 198.18.113.1 in 198.18.113.0/28 of u
    ");
}

#[test]
fn a_node_that_is_dialled_among_pods_or_tunnels_is_left_out() {
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=10.1.200.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=10.201.0.3
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.1";
    insta::assert_snapshot!(report(FULL, &[("u", A, nodes), ("v", B, NODE_B)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: LoopingPeer a1 10.1.200.1 in 10.1.0.0/16 of u
    u in v: LoopingPeer a2 10.201.0.3 in 10.201.0.0/24 of u
    ");
    let flat = "allowedNetworks: [10.1.0.0/16, 10.201.0.0/24]";
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=10.1.3.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=10.1.200.1
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.1";
    insta::assert_snapshot!(report(FULL, &[("u", flat, nodes), ("v", B, NODE_B)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: LoopingPeer a1 10.1.3.1 in 10.1.3.0/24 of u
    ");
}

#[test]
fn a_node_that_is_dialled_in_what_another_cluster_declares_is_left_out_whoever_ranks_first() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/31]");
    let (u, v, w) = (("u", fields.as_str(), NODE_A), ("v", B, NODE_B), ("w", C, NODE_C));
    let first = report(FULL, &[u, v, w]);
    insta::assert_snapshot!(first, @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.3/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.2/32
    u in v: Captured 198.18.113.2/31: Endpoint(198.18.113.2) of b x1 Without([Cidr(198.18.113.2/32)])
    w in v: LoopingPeer c 198.18.113.3 in 198.18.113.2/31 of u
    u in w: Captured 198.18.113.2/31: Endpoint(198.18.113.3) of c x1 Without([Cidr(198.18.113.3/32)])
    v in w: LoopingPeer b 198.18.113.2 in 198.18.113.2/31 of u
    ");
    assert_eq!(report(FULL, &[w, v, u]).matches("LoopingPeer b").count(), 1);
    let apart = report("{ mode: Links, links: [[u, w], [v, w]] }", &[u, v, w]);
    assert_eq!(apart.matches("LoopingPeer b").count(), 1, "only w sees both: {apart}");
    let unseen = report("{ mode: Hub, hubs: [u] }", &[u, v, w]);
    assert!(!unseen.contains("LoopingPeer"), "nobody sees both: {unseen}");
}

#[test]
fn a_node_that_is_dialled_in_a_flat_list_is_left_out_whoever_ranks_first() {
    let flat = "allowedNetworks: [10.1.0.0/16, 10.201.0.0/24, 198.18.113.0/29]";
    let plan_with = |inner: &str, clusters: [usize; 3]| {
        let a = format!("a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.200.1 {inner}");
        let all = [("u", flat, a.as_str()), ("v", B, NODE_B), ("w", C, NODE_C)];
        report(FULL, &clusters.map(|it| all[it]))
    };
    let (first, last) = ([0, 1, 2], [1, 2, 0]);
    insta::assert_snapshot!(plan_with("", first), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.0/31 198.18.113.3/32 198.18.113.4/30
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.0/31 198.18.113.2/32 198.18.113.4/30
    u in v: Captured 198.18.113.0/29: Endpoint(198.18.113.2) of b x1 Without([Cidr(198.18.113.2/32)])
    w in v: LoopingPeer c 198.18.113.3 in 198.18.113.0/29 of u
    u in w: Captured 198.18.113.0/29: Endpoint(198.18.113.3) of c x1 Without([Cidr(198.18.113.3/32)])
    v in w: LoopingPeer b 198.18.113.2 in 198.18.113.0/29 of u
    ");
    insta::assert_snapshot!(plan_with("", last), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.0/31 198.18.113.3/32 198.18.113.4/30
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32 198.18.113.0/31 198.18.113.2/32 198.18.113.4/30
    w in v: LoopingPeer c 198.18.113.3 in 198.18.113.0/29 of u
    u in v: Captured 198.18.113.0/29: Endpoint(198.18.113.2) of b x1 Without([Cidr(198.18.113.2/32)])
    v in w: LoopingPeer b 198.18.113.2 in 198.18.113.0/29 of u
    u in w: Captured 198.18.113.0/29: Endpoint(198.18.113.3) of c x1 Without([Cidr(198.18.113.3/32)])
    ");
    // Claims of nodes in such a range do not change which node is left out.
    for inner in ["internal=198.18.113.2", "internal=198.18.113.5"] {
        let report = plan_with(inner, last);
        assert_eq!(report.matches("LoopingPeer").count(), 2, "{report}");
    }
}

#[test]
fn where_the_target_s_own_nodes_are_dialled_is_cut_out_whoever_ranks_first() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/31]");
    let two = format!("{NODE_B}\nc pod=10.2.2.0/24 wg=10.202.0.2/16 key=C external=198.18.200.1");
    let u = ("u", fields.as_str(), NODE_A);
    for v in [("v", B, NODE_B), ("v", B, two.as_str())] {
        for clusters in [[v, u], [u, v]] {
            let report = report(FULL, &clusters);
            assert!(report.contains("10.201.0.1/32 198.18.113.3/32\n"), "{report}");
            let cut = "u in v: Captured 198.18.113.2/31: Endpoint(198.18.113.2) of b x1 \
                       Without([Cidr(198.18.113.2/32)])\n";
            assert!(report.contains(cut), "{report}");
        }
    }
}

#[test]
fn where_kilo_dials_a_node_of_the_target_counts_too() {
    let fields = format!("{A}, additionalCIDRs: [172.20.0.0/30]");
    let own = format!("{NODE_B} endpoint=172.20.0.1:51820");
    let report = report(FULL, &[("v", B, &own), ("u", &fields, NODE_A)]);
    assert!(report.contains(" 10.201.0.1/32 172.20.0.0/32 172.20.0.2/31\n"), "{report}");
}

#[test]
fn what_a_target_cannot_get_cannot_loop_there() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/32]");
    let accepting = format!("{C}, acceptedNetworks: [10.0.0.0/8]");
    let clusters = [("u", fields.as_str(), NODE_A), ("v", B, NODE_B), ("w", &accepting, NODE_C)];
    let report = report(FULL, &clusters);
    assert!(!report.contains("LoopingPeer"), "{report}");
    assert!(report.contains("u in w: Unaccepted 198.18.113.2/32"), "{report}");
}

/// Two nodes without an endpoint for others, and one with. Kilo itself has endpoints for all of them.
fn roaming(first: &str, second: &str) -> String {
    let fields =
        format!("{A}, additionalCIDRs: [192.168.1.0/24, 198.18.7.0/24], persistentKeepalive: 25");
    let nodes = format!(
        "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A internal=192.168.1.1 endpoint={first}:51820
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C internal=192.168.1.2 endpoint={second}:51820
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D internal=192.168.1.3 external=198.18.200.1"
    );
    report(FULL, &[("u", &fields, &nodes), ("v", B, NODE_B)])
}

/// The address of the NAT, from which others see the node, is in no snapshot.
#[test]
fn a_private_endpoint_that_nobody_dials_withholds_nothing() {
    insta::assert_snapshot!(roaming("192.168.1.1", "192.168.1.2"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32 192.168.1.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32 192.168.1.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32 192.168.1.3/32 192.168.1.0/24 198.18.7.0/24
    ");
}

#[test]
fn a_public_endpoint_that_nobody_dials_is_where_others_see_the_node() {
    insta::assert_snapshot!(roaming("198.18.7.1", "192.168.1.2"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a2 10.1.2.0/24 10.201.0.2/32 192.168.1.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32 192.168.1.3/32 192.168.1.0/24 198.18.7.0/24
    u in v: LoopingPeer a1 198.18.7.1 in 198.18.7.0/24 of u
    ");
    insta::assert_snapshot!(roaming("198.18.7.1", "198.18.7.2"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32 192.168.1.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32 192.168.1.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32 192.168.1.3/32 192.168.1.0/24
    u in v: LoopingRanges 198.18.7.0/24: 198.18.7.1 of u/a1 x2
    ");
}
