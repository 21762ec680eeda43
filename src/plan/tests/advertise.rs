//! Clusters that advertise fewer addresses of their nodes.

use super::*;

const HUB: &str = "{ mode: FullMesh }";

/// Two locations of three nodes with a range of pods each, the second with an address more.
const NODES: &str = "
x1 pod=10.1.0.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1 endpoint=198.18.113.1:51820 internal-ip=10.9.0.1/24 location=x
x2 pod=10.1.1.0/24 key=C endpoint=198.18.113.2:51820 internal-ip=10.9.0.2/24 location=x
x3 pod=10.1.3.0/24 key=D endpoint=198.18.113.3:51820 internal-ip=10.9.0.3/24 location=x
y1 pod=10.1.2.0/24 wg=10.201.0.2/16 key=E external=198.18.113.4 endpoint=198.18.113.4:51820 internal-ip=10.9.1.1/24 location=y";

const ANCHORS: &str = "anchors: [{ nodes: [gone, x3] }]";

/// Returns what `v` gets of `u`, and what is cut, where `u` has these fields and `v` those.
fn given(fields: &str, taking: &str, nodes: &str) -> String {
    let fields = format!(
        "{A}, additionalCIDRs: [10.9.0.0/16], granularity: Location, topologyLabel: location, {fields}"
    );
    let taking = format!("{B}{taking}");
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let report = report(HUB, &[("u", &fields, nodes), ("v", &taking, b)]);
    report.split_once("v:\n").unwrap().1.to_owned()
}

#[test]
fn by_default_every_address_is_given() {
    insta::assert_snapshot!(given("local: true", "", NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
    m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    ");
}

#[test]
fn merged_pods_are_the_fewest_ranges_with_the_same_addresses() {
    insta::assert_snapshot!(given("advertise: { podCIDRs: Merged }", "", NODES), @"
    m--u--x1 10.1.0.0/23 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
    m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    ");
}

#[test]
fn pods_are_merged_after_all_cuts() {
    let accepted = ", acceptedNetworks: [10.1.0.0/24, 10.1.1.0/24]";
    insta::assert_snapshot!(given("advertise: { podCIDRs: Merged }", accepted, NODES), @"
      m--u--x1 10.1.0.0/23
    u in v: Unaccepted 10.1.2.0/24 10.1.3.0/24
    u in v: Unaccepted 10.9.0.0/16 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.1.1/32
    u in v: Unaccepted 10.201.0.1/32 10.201.0.2/32
    ");
    let local = ", localNetworks: [10.1.1.128/25]";
    insta::assert_snapshot!(given("advertise: { podCIDRs: Merged }", local, NODES), @"
      m--u--x1 10.1.0.0/24 10.1.1.0/25 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: Local 10.1.1.0/24: 10.1.1.128/25
    ");
}

#[test]
fn a_merged_range_and_a_cluster_wide_one_are_not_given_twice() {
    let nodes = NODES.replace("10.1.3.0", "10.1.5.0");
    let fields = "advertise: { podCIDRs: Merged }, allowedNetworks: [10.1.0.0/23, 10.1.2.0/23, 10.1.5.0/24, 10.201.0.0/16]";
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let fields = format!("granularity: Location, topologyLabel: location, {fields}");
    insta::assert_snapshot!(report(HUB, &[("u", &fields, &nodes), ("v", B, b)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--x1 10.1.0.0/23 10.1.5.0/24 10.201.0.1/32 10.1.2.0/23
      m--u--y1 10.1.2.0/24 10.201.0.2/32
    ");
}

#[test]
fn addresses_of_nodes_and_of_the_subnet_can_be_kept() {
    insta::assert_snapshot!(given("advertise: { nodeAddresses: false }", "", NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.9.0.0/16
    m--u--y1 10.1.2.0/24 10.201.0.2/32
    ");
    insta::assert_snapshot!(given("advertise: { wireguardAddresses: None }", "", NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
    m--u--y1 10.1.2.0/24 10.9.1.1/32
    ");
}

#[test]
fn without_its_addresses_no_node_is_left_out_for_them() {
    let nodes = NODES.replace("wg=10.201.0.2/16 ", "");
    insta::assert_snapshot!(given("advertise: { wireguardAddresses: None }", "", &nodes), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
    m--u--y1 10.1.2.0/24 10.9.1.1/32
    ");
}

#[test]
fn the_subnet_is_carried_by_the_anchor() {
    insta::assert_snapshot!(given("advertise: { wireguardAddresses: Carrier }, anchors: [{ nodes: [y1] }]", "", NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32
    m--u--y1 10.1.2.0/24 10.9.1.1/32 10.9.0.0/16 10.201.0.0/24
    ");
}

#[test]
fn declared_pods_are_carried_by_the_location_of_the_first_named_node_that_is_left() {
    let fields = format!("advertise: {{ podCIDRs: Declared }}, {ANCHORS}");
    insta::assert_snapshot!(given(&fields, "", NODES), @"
      m--u--x1 10.1.0.0/16 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor gone NoNode
    ");
}

/// Returns what `v` gets of `u`, given `allowedNetworks` and anchors instead of the typed fields.
fn given_flat(advertise: &str, allowed: &str, anchors: &str, nodes: &str) -> String {
    let fields = format!(
        "allowedNetworks: [{allowed}], granularity: Location, topologyLabel: location, advertise: {{ {advertise} }}, \
         anchors: [{anchors}]"
    );
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let report = report(HUB, &[("u", &fields, nodes), ("v", B, b)]);
    report.split_once("v:\n").unwrap().1.to_owned()
}

#[test]
fn a_flat_list_carries_what_an_anchor_names_and_nodes_show() {
    let all = "10.1.0.0/16, 10.201.0.0/16, 10.9.0.0/16";
    let pods = "{ ranges: [10.1.0.0/16], nodes: [x3] }";
    insta::assert_snapshot!(given_flat("podCIDRs: Declared", all, pods, NODES), @"
    m--u--x1 10.1.0.0/16 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32
    m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    ");
    // A pool for each location, and none of a location whose named node is gone.
    let pools = "10.1.0.0/23, 10.1.2.0/24, 10.1.3.0/24, 10.201.0.0/16";
    let first = "{ ranges: [10.1.0.0/23], nodes: [x1] }, { ranges: [10.1.2.0/24], nodes: [gone] }";
    insta::assert_snapshot!(given_flat("podCIDRs: Declared", pools, first, NODES), @"
      m--u--x1 10.1.0.0/23 10.1.3.0/24 10.201.0.1/32
      m--u--y1 10.1.2.0/24 10.201.0.2/32
    u in v: UnknownAnchor gone NoNode
    u in v: PerNodePods 10.1.2.0/24
    ");
    let subnet = "{ ranges: [10.201.0.0/16], nodes: [y1] }";
    insta::assert_snapshot!(given_flat("wireguardAddresses: Carrier", all, subnet, NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32
    m--u--y1 10.1.2.0/24 10.9.1.1/32 10.201.0.0/16
    ");
    // The subnet is not given, and no anchor carries it.
    insta::assert_snapshot!(given_flat("wireguardAddresses: None", all, "", NODES), @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32
    m--u--y1 10.1.2.0/24 10.9.1.1/32
    ");
}

#[test]
fn no_node_decides_what_a_range_of_a_flat_list_is_for() {
    let pools = "10.1.0.0/16, 10.201.0.0/16, 10.50.0.0/16";
    let named = "{ ranges: [10.1.0.0/16], nodes: [x1] }, { ranges: [10.50.0.0/16], nodes: [x2] }";
    let gone =
        "{ ranges: [10.1.0.0/16], nodes: [gone] }, { ranges: [10.50.0.0/16], nodes: [lost] }";
    let of_others = |given: &str| -> Vec<String> {
        let lines = given.lines().filter(|it| !it.contains("m--u--y1"));
        lines.map(str::to_owned).collect()
    };
    for anchors in [named, gone] {
        let before = given_flat("podCIDRs: Declared", pools, anchors, NODES);
        // `y1` claims an address in the pool of the other location, or pods in the services.
        for (own, claimed) in [("10.9.1.1/24", "10.1.77.77/24"), ("10.1.2.0/24", "10.50.7.0/24")] {
            let claim = NODES.replace(own, claimed);
            let after = given_flat("podCIDRs: Declared", pools, anchors, &claim);
            assert_eq!(of_others(&after), of_others(&before), "{claimed}");
        }
    }
    // The subnet is the range with the addresses of most segments.
    let services_first = "10.50.0.0/16, 10.1.0.0/16, 10.201.0.0/16";
    let anchors = "{ ranges: [10.50.0.0/16, 10.201.0.0/16], nodes: [x1] }";
    let claim = NODES.replace("10.201.0.2/16", "10.50.0.7/16");
    let given = given_flat("wireguardAddresses: Carrier", services_first, anchors, &claim);
    insta::assert_snapshot!(given, @"
    m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.50.0.0/16 10.201.0.0/16
    m--u--y1 10.1.2.0/24 10.50.0.7/32
    ");
}

#[test]
fn a_new_node_in_the_carrying_location_changes_nothing() {
    let fields = format!("advertise: {{ podCIDRs: Declared, nodeAddresses: false }}, {ANCHORS}");
    let new =
        "\nx4 pod=10.1.7.0/24 key=E endpoint=198.18.113.5:51820 internal-ip=10.9.0.5/24 location=x";
    let joined = format!("{}{new}", NODES.replace("key=E", "key=F"));
    let before = NODES.replace("key=E", "key=F");
    assert_eq!(given(&fields, "", &before), given(&fields, "", &joined));
}

#[test]
fn each_location_can_carry_a_pool_of_its_own() {
    let fields = "advertise: { podCIDRs: Declared }, podCIDRs: [10.1.0.0/23, 10.1.2.0/23], \
        wireguardCIDR: 10.201.0.0/24, granularity: Location, topologyLabel: location, \
        anchors: [{ ranges: [10.1.0.0/23], nodes: [x2] }, { ranges: [10.1.2.0/23], nodes: [y1] }]";
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    insta::assert_snapshot!(report(HUB, &[("u", fields, NODES), ("v", B, b)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--x1 10.1.0.0/23 10.1.3.0/24 10.201.0.1/32
      m--u--y1 10.1.2.0/23 10.201.0.2/32
    ");
}

#[test]
fn without_a_named_node_pods_are_given_by_node() {
    let fields = "advertise: { podCIDRs: Declared }, anchors: [{ nodes: [gone, away] }]";
    insta::assert_snapshot!(given(fields, "", NODES), @"
      m--u--x1 10.1.0.0/24 10.1.1.0/24 10.1.3.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor gone NoNode
    u in v: UnknownAnchor away NoNode
    u in v: PerNodePods 10.1.0.0/16
    ");
}

#[test]
fn a_target_that_accepts_less_gets_what_it_accepts_by_node() {
    let fields = format!("advertise: {{ podCIDRs: Declared }}, {ANCHORS}");
    let accepted = ", acceptedNetworks: [10.1.0.0/23, 10.9.0.0/16]";
    insta::assert_snapshot!(given(&fields, accepted, NODES), @"
      m--u--x1 10.1.0.0/24 10.1.1.0/24 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32 10.9.0.0/16
      m--u--y1 10.9.1.1/32
    u in v: Unaccepted 10.1.0.0/16 10.1.2.0/24 10.1.3.0/24
    u in v: Unaccepted 10.201.0.1/32 10.201.0.2/32
    u in v: UnknownAnchor gone NoNode
    ");
}

#[test]
fn a_cluster_behind_nat_carries_its_pods_too() {
    let nodes = NODES.replace("external=198.18.113.1 ", "").replace("external=198.18.113.4 ", "");
    let fields = format!("advertise: {{ podCIDRs: Declared }}, persistentKeepalive: 25, {ANCHORS}");
    insta::assert_snapshot!(given(&fields, "", &nodes), @"
      m--u--x1 10.1.0.0/16 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.3/32
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor gone NoNode
    u in v: NoAnchor { ranges: [Cidr(10.9.0.0/16)] }
    ");
}

/// Returns the fields of `u` with these pods, all of which `x1` carries.
fn pools(pods: &str) -> String {
    format!(
        "podCIDRs: [{pods}], wireguardCIDR: 10.201.0.0/24, granularity: Location, topologyLabel: location, \
         advertise: {{ podCIDRs: Declared, wireguardAddresses: None }}, anchors: [{{ nodes: [x1] }}]"
    )
}

#[test]
fn no_range_is_given_twice() {
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let nodes = NODES.replace("10.1.2.0/24", "10.1.8.0/24");
    let of_other = pools("10.1.0.0/22, 10.1.8.0/24");
    insta::assert_snapshot!(report(HUB, &[("u", &of_other, &nodes), ("v", B, b)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--x1 10.1.0.0/22
      m--u--y1 10.1.8.0/24
    ");
    let alone = "x1 pod=10.1.0.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1 endpoint=198.18.113.1:51820 internal-ip=10.9.0.1/24 location=x";
    let own = pools("10.1.0.0/24");
    insta::assert_snapshot!(report(HUB, &[("u", &own, alone), ("v", B, b)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--x1 10.1.0.0/24
    ");
}

#[test]
fn a_carrier_with_the_key_of_another_cluster_gets_nothing_that_the_other_keeps() {
    let fields = pools("10.1.0.0/16, 10.5.0.0/16");
    let taking = format!("{B}, acceptedNetworks: [10.5.0.0/16, 10.3.0.0/16, 10.203.0.0/24]");
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let c = "c pod=10.3.1.0/24 wg=10.203.0.1/16 key=A external=198.18.200.3";
    let clusters = [("w", C, c), ("u", &*fields, NODES), ("v", &*taking, b)];
    insta::assert_snapshot!(report(HUB, &clusters).split_once("v:\n").unwrap().1, @"
      m--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      m--u--y1 10.1.2.0/24
      m--v--b 10.2.1.0/24 10.202.0.1/32
    w in u: OwnKey c x1
    u in v: Unaccepted 10.1.0.0/16 10.1.0.0/24 10.1.1.0/24 10.1.2.0/24 10.1.3.0/24
    u in v: SharedKey x1 w/c
    u in v: UnknownAnchor x1 LeftOut
    u in v: PerNodePods 10.5.0.0/16
    u in w: OwnKey x1 c
    u in w: UnknownAnchor x1 LeftOut
    u in w: PerNodePods 10.1.0.0/16 10.5.0.0/16
    ");
}

#[test]
fn an_anchor_that_is_silent_is_called_silent() {
    let nodes = NODES.replace("x3 pod", "x3 stale=true pod");
    let fields = "advertise: { podCIDRs: Declared }, anchors: [{ nodes: [x3, x2] }]";
    insta::assert_snapshot!(given(fields, "", &nodes), @"
      m--u--x1 10.1.0.0/16 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.0/16
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor x3 NotReady(Stale)
    ");
}

#[test]
fn a_silent_node_carries_no_pods_of_others() {
    // Without a location and an internal IP, Kilo makes a segment of a node that it does not count.
    let nodes = NODES.replace(
        "internal-ip=10.9.0.3/24 location=x",
        "stale=true wg=10.201.0.3/16 external=198.18.113.3",
    );
    let fields = "advertise: { podCIDRs: Declared }, anchors: [{ nodes: [x3, x2] }]";
    insta::assert_snapshot!(given(fields, "", &nodes), @"
      m--u--x1 10.1.0.0/16 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.0/16
      m--u--x3 10.1.3.0/24 10.201.0.3/32
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor x3 NotReady(Stale)
    ");
    let fields = "advertise: { podCIDRs: Declared }, anchors: [{ nodes: [x3] }]";
    insta::assert_snapshot!(given(fields, "", &nodes), @"
      m--u--x1 10.1.0.0/24 10.1.1.0/24 10.201.0.1/32 10.9.0.1/32 10.9.0.2/32 10.9.0.0/16
      m--u--x3 10.1.3.0/24 10.201.0.3/32
      m--u--y1 10.1.2.0/24 10.201.0.2/32 10.9.1.1/32
    u in v: UnknownAnchor x3 NotReady(Stale)
    u in v: PerNodePods 10.1.0.0/16
    ");
}
