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
    insta::assert_snapshot!(told(FULL, &[("u", flat, nodes), ("v", B, NODE_B)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32
    u in v: LoopingRanges 192.168.1.1/32 192.168.1.2/32: 192.168.1.1 of u/a1 x2 kept=false
    ");
}

#[test]
fn of_a_range_of_the_whole_cluster_most_endpoints_decide() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.0/28], endpointFrom: [ExternalIP]");
    let of = |second: &str| {
        let nodes = format!(
            "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external={second}
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.200.1"
        );
        told(FULL, &[("u", &fields, &nodes), ("v", B, NODE_B)])
    };
    insta::assert_snapshot!(of("198.18.113.2"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a1 10.1.1.0/24 10.201.0.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: LoopingRanges 198.18.113.0/28: 198.18.113.1 of u/a1 x2 kept=false
    ");
    insta::assert_snapshot!(of("198.18.113.16"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32
    u in v: LoopingRanges 198.18.113.0/28: 198.18.113.2 of v/b x1 kept=false
    u in v: LoopingPeer a1 198.18.113.1 in 198.18.113.0/28 of u
    ");
}

#[test]
fn a_node_that_is_dialled_among_pods_or_tunnels_is_left_out() {
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=10.1.200.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=10.201.0.3
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.1";
    insta::assert_snapshot!(told(FULL, &[("u", A, nodes), ("v", B, NODE_B)]), @"
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
    insta::assert_snapshot!(told(FULL, &[("u", flat, nodes), ("v", B, NODE_B)]), @"
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
    let (u, v, w) = (
        ("u", fields.as_str(), NODE_A),
        ("v", B, NODE_B),
        ("w", C, NODE_C),
    );
    let first = told(FULL, &[u, v, w]);
    insta::assert_snapshot!(first, @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: LoopingRanges 198.18.113.2/31: 198.18.113.2 of v/b x1 kept=false
    w in v: LoopingPeer c 198.18.113.3 in 198.18.113.2/31 of u
    u in w: LoopingRanges 198.18.113.2/31: 198.18.113.3 of w/c x1 kept=false
    v in w: LoopingPeer b 198.18.113.2 in 198.18.113.2/31 of u
    ");
    assert_eq!(told(FULL, &[w, v, u]).matches("LoopingPeer b").count(), 1);
    let apart = told("{ mode: Links, links: [[u, w], [v, w]] }", &[u, v, w]);
    assert_eq!(
        apart.matches("LoopingPeer b").count(),
        1,
        "only w sees both: {apart}"
    );
    let unseen = told("{ mode: Hub, hubs: [u] }", &[u, v, w]);
    assert!(
        !unseen.contains("LoopingPeer"),
        "nobody sees both: {unseen}"
    );
}

#[test]
fn of_a_flat_list_rank_decides_and_only_what_is_given_counts() {
    let flat = "allowedNetworks: [10.1.0.0/16, 10.201.0.0/24, 198.18.113.0/24]";
    let of = |inner: &str, clusters: [usize; 3]| {
        let a = format!("a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.200.1 {inner}");
        let all = [("u", flat, a.as_str()), ("v", B, NODE_B), ("w", C, NODE_C)];
        told(FULL, &clusters.map(|it| all[it]))
    };
    let (first, last) = ([0, 1, 2], [1, 2, 0]);
    insta::assert_snapshot!(of("", first), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: LoopingRanges 198.18.113.0/24: 198.18.113.2 of v/b x1 kept=false
    w in v: LoopingPeer c 198.18.113.3 in 198.18.113.0/24 of u
    u in w: LoopingRanges 198.18.113.0/24: 198.18.113.3 of w/c x1 kept=false
    v in w: LoopingPeer b 198.18.113.2 in 198.18.113.0/24 of u
    ");
    insta::assert_snapshot!(of("", last), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--v--b 10.2.1.0/24 10.202.0.1/32
    u in v: LoopingRanges 198.18.113.0/24: 198.18.113.3 of w/c x1 kept=false
    u in v: LoopingRanges 198.18.113.0/24: 198.18.113.2 of v/b x1 kept=false
    u in w: LoopingRanges 198.18.113.0/24: 198.18.113.2 of v/b x1 kept=false
    u in w: LoopingRanges 198.18.113.0/24: 198.18.113.3 of w/c x1 kept=false
    ");
    let host = of("internal=198.18.113.2", last);
    assert!(
        host.contains("u in w: LoopingRanges 198.18.113.2/32: 198.18.113.2 of v/b"),
        "{host}"
    );
    assert!(
        !host.contains("198.18.113.3"),
        "nobody gets what holds it: {host}"
    );
    let elsewhere = of("internal=198.18.113.9", last);
    assert!(!elsewhere.contains("Looping"), "{elsewhere}");
}

#[test]
fn a_range_in_which_the_target_s_own_nodes_are_dialled_is_left_out() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/31]");
    let (u, v) = (("u", fields.as_str(), NODE_A), ("v", B, NODE_B));
    insta::assert_snapshot!(told(FULL, &[v, u]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: LoopingRanges 198.18.113.2/31: 198.18.113.2 of v/b x1 kept=false
    ");
}

#[test]
fn one_node_of_many_does_not_decide_against_a_cluster_that_ranks_first() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/31]");
    let two = format!("{NODE_B}\nc pod=10.2.2.0/24 wg=10.202.0.2/16 key=C external=198.18.200.1");
    let (u, v) = (("u", fields.as_str(), NODE_A), ("v", B, two.as_str()));
    let kept = told(FULL, &[u, v]);
    assert!(kept.contains("198.18.113.2/31\n"), "{kept}");
    assert!(
        kept.contains("u in v: LoopingRanges 198.18.113.2/31: 198.18.113.2 of v/b x1 kept=true")
    );
    let of_most = told(FULL, &[u, ("v", B, NODE_B)]);
    assert!(of_most.contains("x1 kept=false"), "{of_most}");
    let outranked = told(FULL, &[v, u]);
    assert!(outranked.contains("x1 kept=false"), "{outranked}");
}

#[test]
fn where_kilo_dials_a_node_of_the_target_counts_too() {
    let fields = format!("{A}, additionalCIDRs: [172.20.0.0/16]");
    let own = format!("{NODE_B} endpoint=172.20.0.1:51820");
    let told = told(FULL, &[("v", B, &own), ("u", &fields, NODE_A)]);
    assert!(
        told.contains("u in v: LoopingRanges 172.20.0.0/16: 172.20.0.1 of v/b x1 kept=false"),
        "{told}"
    );
}

#[test]
fn what_a_target_cannot_get_cannot_loop_there() {
    let fields = format!("{A}, additionalCIDRs: [198.18.113.2/32]");
    let accepting = format!("{C}, acceptedNetworks: [10.0.0.0/8]");
    let clusters = [
        ("u", fields.as_str(), NODE_A),
        ("v", B, NODE_B),
        ("w", &accepting, NODE_C),
    ];
    let told = told(FULL, &clusters);
    assert!(!told.contains("LoopingPeer"), "{told}");
    assert!(
        told.contains("u in w: Unaccepted 198.18.113.2/32"),
        "{told}"
    );
}
