//! Ranges on what the target's nodes reach by themselves.

use super::*;

const FULL: &str = "{ mode: FullMesh }";

/// Returns what `v` gets if `u` also declares this and the nodes of `v` report this; `u` ranks
/// last.
fn plan_with(additional: &str, says: &str) -> String {
    let fields = format!("{A}, additionalCIDRs: [{additional}]");
    let nodes = format!("{NODE_B} granularity=full {says}");
    report(FULL, &[("v", B, &nodes), ("u", &fields, NODE_A)])
}

#[test]
fn a_range_on_the_network_of_a_node_is_left_out() {
    insta::assert_snapshot!(plan_with("192.168.1.0/24", "internal-ip=192.168.1.9/24"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: Captured 192.168.1.0/24: Lan(Cidr(192.168.1.0/24)) of b x1 Withheld
    ");
    for range in ["192.168.1.128/25", "192.168.1.77/32", "192.168.1.9/32"] {
        let report = plan_with(range, "internal-ip=192.168.1.9/24");
        let cut = format!("u in v: Captured {range}: Lan(Cidr(192.168.1.0/24)) of b x1 Withheld\n");
        assert!(report.contains(&cut), "{range}: {report}");
    }
}

#[test]
fn each_range_is_reported_with_the_line_that_declares_it() {
    let ranges = "192.168.1.0/25, 192.168.1.128/25, 192.168.2.0/24";
    insta::assert_snapshot!(plan_with(ranges, "internal-ip=192.168.1.200/24"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32 192.168.2.0/24
    u in v: Captured 192.168.1.0/25: Lan(Cidr(192.168.1.0/24)) of b x1 Withheld
    u in v: Captured 192.168.1.128/25: Lan(Cidr(192.168.1.0/24)) of b x1 Withheld
    ");
}

#[test]
fn networks_elsewhere_stay_and_those_too_wide_are_not_believed() {
    for (range, says) in [
        ("192.168.2.0/24", "internal-ip=192.168.1.9/24"),
        ("10.9.0.0/16", "internal-ip=10.8.0.1/8"),
        ("10.9.0.0/17", "internal-ip=10.9.200.1/15"),
        ("192.168.1.0/24", "internal-ip=-"),
        ("192.168.1.0/24", "force-internal-ip=- internal-ip=192.168.1.9/24"),
        ("192.168.1.0/24", ""),
    ] {
        let report = plan_with(range, says);
        assert!(!report.contains("Captured"), "{range} {says}: {report}");
        assert!(report.contains(&format!(" {range}\n")), "{range} {says}: {report}");
    }
}

#[test]
fn pods_of_others_on_the_network_of_a_node_are_left_out_too() {
    let wide = format!("{NODE_B} granularity=full internal-ip=10.1.7.1/16");
    let two = format!("{NODE_A}\na2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.7");
    insta::assert_snapshot!(report(FULL, &[("v", B, &wide), ("u", A, &two)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.201.0.1/32
      m--u--a2 10.201.0.2/32
    u in v: Captured 10.1.1.0/24 10.1.2.0/24: Lan(Cidr(10.1.0.0/16)) of b x1 Withheld
    ");
}

/// Returns what `v` gets of `u`, which declares these ranges too, in both orders of rank: it is the
/// same.
fn in_both_orders(additional: &str, own: &str, nodes: &str) -> String {
    let fields = format!("{A}, additionalCIDRs: [{additional}]");
    let own = format!("{B}, {own}");
    let (u, v) = (("u", &*fields, NODE_A), ("v", &*own, nodes));
    let of_target = |report: String| report.split_once("v:\n").unwrap().1.to_owned();
    let (first, last) = (report(FULL, &[u, v]), report(FULL, &[v, u]));
    assert_eq!(of_target(first), of_target(last.clone()));
    of_target(last)
}

/// Returns nodes of `v`, each by where it stands; the first letter is its location.
fn standing(at: &[&str]) -> String {
    let mut nodes = String::new();
    for (number, at) in at.iter().enumerate() {
        let (location, at) = at.split_once(' ').unwrap();
        let key = ["B", "C", "D", "E", "UllSWVJZUllSWVJZUllSWVJZUllSWVJZUllSWVJZUlk="][number];
        let _ = writeln!(
            nodes,
            "b{number} pod=10.2.{number}.0/24 wg=10.202.0.{}/16 key={key} external=198.18.113.{} \
             endpoint=198.18.113.{}:51820 location={location} {at}",
            number + 1,
            number + 10,
            number + 10,
        );
    }
    nodes
}

#[test]
fn an_address_costs_a_wider_range_no_more_than_that_address() {
    // The rest of a wider range must not take over the cluster's LAN either.
    let three = standing(&[
        "x internal-ip=10.50.0.10/28",
        "x internal-ip=10.50.0.11/28",
        "x internal-ip=192.168.7.1/24",
        "x internal-ip=192.168.7.2/24",
        "x internal-ip=192.168.7.3/24",
    ]);
    insta::assert_snapshot!(in_both_orders("10.50.0.0/26", "granularity: Full", &three), @"
      m--u--a 10.1.1.0/24 10.201.0.1/32 10.50.0.16/28 10.50.0.32/27
    u in v: Captured 10.50.0.0/26: Lan(Cidr(10.50.0.0/28)) of b0 x2 Without([Cidr(10.50.0.0/28)])
    ");
    // Too few for their LAN to be their cluster's: only their own addresses count.
    let within = standing(&[
        "x internal-ip=10.50.0.10/28",
        "x internal-ip=10.50.0.11/28",
        "x internal-ip=192.168.7.1/24",
        "x internal-ip=192.168.7.2/24",
        "x internal-ip=192.168.7.3/24",
    ]);
    insta::assert_snapshot!(in_both_orders("10.50.0.0/26", "granularity: Location", &within), @"
      m--u--a 10.1.1.0/24 10.201.0.1/32 10.50.0.0/29 10.50.0.8/31 10.50.0.12/30 10.50.0.16/28 10.50.0.32/27
    u in v: Captured 10.50.0.0/26: Address(10.50.0.10) of b0 x2 Without([Cidr(10.50.0.10/32), Cidr(10.50.0.11/32)])
    u in v: Captured 10.50.0.0/26: Lan(Cidr(10.50.0.0/28)) of b0 x2 Kept
    ");
    // The claim of one node of five, on the pods of the source.
    let liar = standing(&[
        "x internal-ip=192.168.7.9/24",
        "x internal-ip=192.168.7.1/24",
        "x internal-ip=192.168.7.2/24",
        "x internal-ip=192.168.7.3/24",
        "x force-internal-ip=10.1.1.1/16",
    ]);
    insta::assert_snapshot!(in_both_orders("172.20.0.0/16", "granularity: Full", &liar), @"
      m--u--a 10.1.1.0/32 10.1.1.2/31 10.1.1.4/30 10.1.1.8/29 10.1.1.16/28 10.1.1.32/27 10.1.1.64/26 10.1.1.128/25 10.201.0.1/32 172.20.0.0/16
    u in v: Captured 10.1.1.0/24: Address(10.1.1.1) of b4 x1 Without([Cidr(10.1.1.1/32)])
    u in v: Captured 10.1.1.0/24: Lan(Cidr(10.1.0.0/16)) of b4 x1 Kept
    ");
}

#[test]
fn a_lan_is_the_cluster_s_if_two_and_more_than_half_of_a_location_stand_on_it() {
    let lan = "192.168.1.0/24";
    let is_given = |own: &str, at: &[&str]| {
        let report = in_both_orders(lan, own, &standing(at));
        let is_left_out = report.contains("Withheld");
        assert_ne!(is_left_out, report.contains("Kept"), "{report}");
        assert_eq!(
            is_left_out,
            !report.lines().any(|it| it.contains("  m--u--a") && it.contains("192.168.1.")),
            "{report}"
        );
        !is_left_out
    };
    let [on, off] = ["internal-ip=192.168.1.9/24", "internal-ip=192.168.2.9/24"];
    let at = |places: &[(&str, &str)]| -> Vec<String> {
        let nodes = places.iter().enumerate();
        nodes
            .map(|(number, (location, lan))| {
                format!("{location} {}", lan.replace(".9/", &format!(".{}/", 20 + number)))
            })
            .collect()
    };
    let is_given_to = |own: &str, places: &[(&str, &str)]| {
        let at = at(places);
        is_given(own, &at.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (full, location) = ("granularity: Full", "granularity: Location");
    for granularity in [full, location] {
        assert!(!is_given_to(granularity, &[("x", on)]), "the only node");
        assert!(is_given_to(granularity, &[("x", on), ("x", off)]), "one of two");
        assert!(!is_given_to(granularity, &[("x", on), ("x", on), ("x", off)]), "two of three");
    }
    assert!(!is_given_to(full, &[("x", on), ("x", on), ("x", off), ("x", off)]));
    assert!(is_given_to(location, &[("x", on), ("x", on), ("x", off), ("x", off)]), "half");
    assert!(is_given_to(location, &[("x", on), ("y", on), ("x", off)]), "one in each location");
    assert!(
        !is_given_to(location, &[("x", on), ("x", on), ("y", off), ("y", off), ("y", off)]),
        "all of a location"
    );
}

#[test]
fn what_people_call_local_no_peer_takes_over() {
    let nodes = standing(&["x internal-ip=192.168.9.1/24", "x internal-ip=192.168.9.2/24"]);
    let ranges = "192.168.1.0/24, 192.168.2.7/32, 192.168.4.0/22";
    let local =
        "localNetworks: [192.168.1.0/24, 192.168.2.0/24, 192.168.6.0/24], granularity: Full";
    insta::assert_snapshot!(in_both_orders(ranges, local, &nodes), @"
      m--u--a 10.1.1.0/24 10.201.0.1/32 192.168.4.0/23 192.168.7.0/24
    u in v: Local 192.168.1.0/24: 192.168.1.0/24
    u in v: Local 192.168.2.7/32: 192.168.2.0/24
    u in v: Local 192.168.4.0/22: 192.168.6.0/24
    ");
    let wider = "localNetworks: [10.0.0.0/8], granularity: Full";
    insta::assert_snapshot!(in_both_orders("192.168.1.0/24", wider, &nodes), @"
      m--u--a 192.168.1.0/24
    u in v: Local 10.1.1.0/24: 10.0.0.0/8
    u in v: Local 10.201.0.1/32: 10.0.0.0/8
    ");
}

#[test]
fn too_many_holes_are_for_most_nodes_to_decide() {
    let six = "podCIDRs: ['fd00:1::/48'], wireguardCIDR: 'fd00:101::/64', additionalCIDRs: ['fd00:50::/48']";
    let own = "podCIDRs: ['fd00:2::/48'], wireguardCIDR: 'fd00:102::/64', granularity: Full";
    let source = "a pod=fd00:1:0:1::/64 wg=fd00:101::1/64 key=A external=198.18.113.1";
    let plan_with = |inside: u8| {
        let mut nodes = String::new();
        for number in 0..4u8 {
            let lan = if number < inside { "50" } else { "60" };
            let key = ["B", "C", "D", "E"][usize::from(number)];
            let _ = writeln!(
                nodes,
                "b{number} pod=fd00:2:0:{number}::/64 wg=fd00:102::{number}/64 key={key} \
                 external=198.18.113.{} internal-ip=fd00:{lan}:0:{number}::1/64",
                10 + number
            );
        }
        let (u, v) = (("u", six, source), ("v", own, nodes.as_str()));
        let (first, last) = (report(FULL, &[u, v]), report(FULL, &[v, u]));
        assert_eq!(first.split_once("v:\n").unwrap().1, last.split_once("v:\n").unwrap().1);
        last
    };
    let half = plan_with(2);
    assert!(half.contains(" fd00:50::/48\n") && half.contains("b0 x2 Kept"), "{half}");
    let most = plan_with(3);
    assert!(!most.contains(" fd00:50::/48\n") && most.contains("b0 x3 Withheld"), "{most}");
}

#[test]
fn an_address_far_away_does_not_use_up_the_holes_of_others() {
    // Each address alone costs 20 prefixes of a /12, so that two places are too many.
    let nodes = standing(&[
        "x internal-ip=172.16.0.1/32",
        "x internal-ip=172.31.0.1/24",
        "x internal-ip=172.31.0.2/24",
        "x internal-ip=192.168.9.1/24",
        "x internal-ip=192.168.9.2/24",
    ]);
    let fields = format!("{A}, additionalCIDRs: [172.16.0.0/12]");
    let own = format!("{B}, granularity: Location");
    let more = format!(
        "{nodes}b9 pod=10.2.9.0/24 wg=10.202.0.9/16 key=U1NTU1NTU1NTU1NTU1NTU1NTU1NTU1NTU1NTU1NTU1M= external=198.18.113.99"
    );
    let report = report(FULL, &[("u", &fields, NODE_A), ("v", &own, &more)]);
    assert!(report.contains("Without([Cidr(172.31.0.1/32), Cidr(172.31.0.2/32)])"), "{report}");
    assert!(report.contains("Address(172.16.0.1) of b0 x1 Kept"), "{report}");
}

#[test]
fn a_node_that_is_not_selected_has_a_network_all_the_same() {
    let fields = format!("{A}, additionalCIDRs: [192.168.1.0/24]");
    let selecting = format!("{B}, nodeSelector: {{ matchLabels: {{ label: gateway }} }}");
    let nodes = format!(
        "{NODE_B} granularity=full label=gateway\nc pod=10.2.2.0/24 wg=10.202.0.2/16 key=C external=198.18.113.9 granularity=full internal-ip=192.168.1.9/24"
    );
    let report = report(FULL, &[("v", &selecting, &nodes), ("u", &fields, NODE_A)]);
    assert!(report.contains("Captured 192.168.1.0/24"), "{report}");
}

#[test]
fn ranges_of_external_peers_are_left_out_like_those_of_clusters() {
    let nodes = format!("{NODE_B} granularity=full internal-ip=192.168.1.9/24");
    let fields = format!("{B}, localNetworks: [10.8.0.0/16]");
    let clusters = [("v", &*fields, &*nodes), ("u", A, NODE_A)];
    let host = "{ name: h, publicKey: avkTN5T8tciVq9GCSK17SucfkRrmiGHQh4Z8+C4lxhs=, endpoint: '198.18.9.1:51820', \
                ranges: [10.9.0.1/32, 192.168.1.0/24, 10.8.0.7/32, 198.18.9.0/24], clusters: [v] }";
    let mesh = mesh_text("m", FULL, &clusters) + "  externalPeers:\n  - " + host + "\n";
    let meshes = testing::meshes(&mesh);
    let mut snapshots = snapshots(&clusters);
    snapshots.extend(crate::fleet::external_snapshots(&meshes));
    insta::assert_snapshot!(planned(&Fleet::new(&meshes, &snapshots).unwrap()), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--external.h 10.9.0.1/32
      m--u--a 10.1.1.0/24 10.201.0.1/32
    external.h in v: Local 10.8.0.7/32: 10.8.0.0/16
    external.h in v: Captured 192.168.1.0/24: Lan(Cidr(192.168.1.0/24)) of b x1 Withheld
    external.h in v: LoopingRanges 198.18.9.0/24: 198.18.9.1 of external.h/h x1
    ");
}
