//! The Peers that carry cluster-wide ranges.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

const FULL: &str = "{ mode: FullMesh }";
const NODES: &str = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.2
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.3";

/// Returns what `v` gets of three nodes of `u` with these anchors.
fn plan_with(anchors: &str) -> String {
    let fields = format!(
        "{A}, serviceCIDR: 10.101.0.0/16, additionalCIDRs: [10.111.0.0/31, 10.111.1.0/24], \
         anchors: [{anchors}]"
    );
    let node = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let report = report(FULL, &[("u", &fields, NODES), ("v", B, node)]);
    report.split_once("v:\n").unwrap().1.to_owned()
}

#[test]
fn without_anchors_the_first_by_name_carries_everything() {
    insta::assert_snapshot!(plan_with(""), @"
    m--u--a1 10.1.1.0/24 10.201.0.1/32 10.101.0.0/16 10.111.0.0/31 10.111.1.0/24
    m--u--a2 10.1.2.0/24 10.201.0.2/32
    m--u--a3 10.1.3.0/24 10.201.0.3/32
    ");
}

#[test]
fn named_nodes_come_first_in_their_order() {
    insta::assert_snapshot!(plan_with("{ ranges: [10.101.0.0/16], nodes: [a3, a1] }, { nodes: [zz, a2] }"), @"
      m--u--a1 10.1.1.0/24 10.201.0.1/32
      m--u--a2 10.1.2.0/24 10.201.0.2/32 10.111.0.0/31 10.111.1.0/24
      m--u--a3 10.1.3.0/24 10.201.0.3/32 10.101.0.0/16
    u in v: UnknownAnchor zz NoNode
    ");
}

#[test]
fn a_range_is_spread_over_as_many_as_there_are() {
    insta::assert_snapshot!(plan_with("{ nodes: [a3], count: 4 }"), @"
      m--u--a1 10.1.1.0/24 10.201.0.1/32 10.101.128.0/17 10.111.0.1/32 10.111.1.128/25
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32 10.101.0.0/17 10.111.0.0/32 10.111.1.0/25
    u in v: FewerAnchors 10.101.0.0/16 2/4 narrow=false
    u in v: FewerAnchors 10.111.0.0/31 2/4 narrow=false
    u in v: FewerAnchors 10.111.1.0/24 2/4 narrow=false
    ");
    insta::assert_snapshot!(plan_with("{ ranges: [10.111.0.0/31], count: 2 }, { ranges: [10.111.1.0/24], count: 1 }"), @"
    m--u--a1 10.1.1.0/24 10.201.0.1/32 10.101.0.0/16 10.111.0.0/32 10.111.1.0/24
    m--u--a2 10.1.2.0/24 10.201.0.2/32 10.111.0.1/32
    m--u--a3 10.1.3.0/24 10.201.0.3/32
    ");
}

#[test]
fn a_range_too_narrow_is_spread_as_far_as_it_goes() {
    let fields = format!("{A}, additionalCIDRs: [10.111.0.9/32], anchors: [{{ count: 2 }}]");
    let report = report(FULL, &[("u", &fields, NODES), ("v", B, NODE_B)]);
    assert!(report.contains("FewerAnchors 10.111.0.9/32 1/2 narrow=true"), "{report}");
    assert!(report.contains("10.201.0.1/32 10.111.0.9/32\n"), "{report}");
}

#[test]
fn who_is_left_out_somewhere_does_not_carry_there() {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, anchors: [{{ nodes: [a1] }}]");
    let declaring = format!("{C}, additionalCIDRs: [198.18.113.1/32]");
    let c = "c pod=10.3.1.0/24 wg=10.203.0.1/16 key=E external=198.18.200.3";
    let b = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let report = report(FULL, &[("u", &fields, NODES), ("v", B, b), ("w", &declaring, c)]);
    insta::assert_snapshot!(report, @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a2 10.1.2.0/24 10.201.0.2/32 10.101.0.0/16
      m--u--a3 10.1.3.0/24 10.201.0.3/32
      m--w--c 10.3.1.0/24 10.203.0.1/32 198.18.113.1/32
    w:
      m--u--a1 10.1.1.0/24 10.201.0.1/32 10.101.0.0/16
      m--u--a2 10.1.2.0/24 10.201.0.2/32
      m--u--a3 10.1.3.0/24 10.201.0.3/32
      m--v--b 10.2.1.0/24 10.202.0.1/32
    w in u: Captured 198.18.113.1/32: Endpoint(198.18.113.1) of a1 x1 Withheld
    u in v: LoopingPeer a1 198.18.113.1 in 198.18.113.1/32 of w
    u in v: UnknownAnchor a1 LeftOut
    ");
}

#[test]
fn a_part_that_a_node_has_as_its_own_is_not_carried_twice() {
    let fields = format!("{A}, additionalCIDRs: [192.168.1.0/31], anchors: [{{ count: 2 }}]");
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1 internal=192.168.1.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.2";
    let report = report(FULL, &[("u", &fields, nodes), ("v", B, NODE_B)]);
    assert!(
        report.contains("u--a1 10.1.1.0/24 10.201.0.1/32 192.168.1.1/32 192.168.1.0/32\n"),
        "{report}"
    );
    assert!(report.contains("u--a2 10.1.2.0/24 10.201.0.2/32\n"), "{report}");
}

/// Returns the node of `u` whose Peer in `v` has a range, and what is reported about it.
fn carrier(ranges: &str, nodes: &str) -> (String, String) {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, additionalCIDRs: [10.30.0.0/24]");
    let node = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";
    let report = report(FULL, &[("u", &fields, nodes), ("v", B, node)]);
    let of_target = report.split_once("v:\n").unwrap().1;
    let mut lines = of_target.lines();
    let line = lines.find(|it| it.split(' ').any(|it| it == ranges)).unwrap();
    let name = line.trim().split(' ').next().unwrap().to_owned();
    let cuts = of_target.lines().filter(|it| it.starts_with("u in v: "));
    (name, cuts.collect::<Vec<_>>().join("\n"))
}

/// Returns three nodes in full granularity, of which the last two can be given where they stand.
fn three(second: &str, third: &str) -> String {
    format!(
        "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1 internal-ip=192.168.0.1/24 granularity=full
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.2 granularity=full {second}
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.3 granularity=full {third}"
    )
}

#[test]
fn a_range_goes_to_those_on_whose_lan_it_lies_if_two_stand_there() {
    let (kilo, status) = (
        ["internal-ip=10.30.0.2/24", "internal-ip=10.30.0.3/24"],
        ["internal=10.30.0.2", "internal=10.30.0.3"],
    );
    for [second, third] in [kilo, status, [kilo[0], status[1]]] {
        let (carrier, cuts) = carrier("10.30.0.0/24", &three(second, third));
        assert_eq!((carrier.as_str(), cuts.as_str()), ("m--u--a2", ""));
    }
    // An endpoint that is forced on both does not prove that they are there.
    let forced = three("force-internal-ip=10.30.0.2/24", "force-internal-ip=10.30.0.3/24");
    let (first, cuts) = carrier("10.30.0.0/24", &forced);
    assert_eq!(first, "m--u--a1");
    assert!(cuts.contains("DistantAnchor 10.30.0.0/24 a2 of a2, by a1"), "{cuts}");
    let (services, _) = carrier("10.101.0.0/16", &three(kilo[0], kilo[1]));
    assert_eq!(services, "m--u--a1");
}

#[test]
fn one_node_on_a_lan_does_not_attract_the_range() {
    for claim in
        ["internal-ip=10.30.0.2/24", "force-internal-ip=10.30.0.2/16", "internal=10.30.0.2"]
    {
        let (carrier, cuts) = carrier("10.30.0.0/24", &three("internal-ip=192.168.0.2/24", claim));
        assert_eq!(carrier, "m--u--a1");
        assert!(cuts.contains("DistantAnchor 10.30.0.0/24 a3 of a3, by a1"), "{claim}: {cuts}");
    }
}

#[test]
fn a_location_of_one_s_own_attracts_nothing() {
    let node = |name: &str, number: usize, location: &str, rest: &str| {
        let key = ["A", "C", "D", "E"][number];
        format!(
            "{name} pod=10.1.{number}.0/24 key={key} external=198.18.113.{number} endpoint=198.18.113.{number}:51820 internal-ip=192.168.0.{}/24 location={location} granularity=location {rest}\n",
            number + 1
        )
    };
    let two = node("b1", 1, "x", "wg=10.201.0.1/16") + &node("b2", 2, "x", "");
    let liar = |location: &str| node("a", 0, location, "wg=10.201.0.9/16");
    let plan_with = |nodes: &str| carrier("10.101.0.0/16", nodes).0;
    assert_eq!(plan_with(&(two.clone() + &liar("y"))), "m--u--a", "one of two is half");
    let three = two + &node("b3", 3, "x", "");
    assert_eq!(plan_with(&(three + &liar("y"))), "m--u--b1");
}

/// Returns nodes of `u` that Kilo counts, in full granularity, each with more words.
fn counted(nodes: &[(&str, &str)]) -> String {
    let lines = nodes.iter().zip(1u8..).map(|((name, more), n)| {
        let key = STANDARD.encode([n; 32]);
        format!(
            "{name} pod=10.1.{n}.0/24 wg=10.201.0.{n}/16 key={key} external=198.18.113.{n} \
             endpoint=198.18.113.{n}:51820 granularity=full {more}\n"
        )
    });
    lines.collect::<Vec<_>>().concat()
}

/// Returns the carrier of each part of the services of `u`, in the order of the parts, and what is
/// reported about them.
fn carriers(anchors: &str, nodes: &str) -> (Vec<String>, Vec<String>) {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, anchors: [{anchors}]");
    let report = report(FULL, &[("u", &fields, nodes), ("v", B, FAR)]);
    let of_target = report.split_once("v:\n").unwrap().1;
    let mut parts: Vec<(Cidr, String)> = Vec::new();
    for line in of_target.lines().filter(|it| it.starts_with("  m--u--")) {
        let mut words = line.split_whitespace();
        let node = words.next().unwrap().trim_start_matches("m--u--");
        let ranges = words.filter(|it| it.starts_with("10.101."));
        parts.extend(ranges.map(|it| (it.parse().unwrap(), node.to_owned())));
    }
    parts.sort();
    let cuts = of_target.lines().filter_map(|it| it.strip_prefix("u in v: "));
    (parts.into_iter().map(|it| it.1).collect(), cuts.map(str::to_owned).collect())
}

const FAR: &str = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.200.2";

#[test]
fn a_silent_node_is_no_anchor_while_another_one_can_be() {
    let nodes = |a1: &str, a2: &str, a3: &str| counted(&[("a1", a1), ("a2", a2), ("a3", a3)]);
    let carrier = |anchors: &str, nodes: &str| {
        let (carriers, cuts) = carriers(anchors, nodes);
        format!("{} {}", carriers.join(" "), cuts.join(" "))
    };
    assert_eq!(carrier("", &nodes("stale", "", "")), "a2 ");
    let fallback = "{ nodes: [a1, a3] }";
    assert_eq!(carrier(fallback, &nodes("", "", "")), "a1 ");
    let stale = "UnknownAnchor a1 NotReady(Stale)";
    assert_eq!(carrier(fallback, &nodes("stale", "", "")), format!("a3 {stale}"));
    let both = format!("a2 {stale} UnknownAnchor a3 NotReady(Stale)");
    assert_eq!(carrier(fallback, &nodes("stale", "", "stale")), both);
    // Kilo does not count a node without an endpoint of its own.
    let unready = nodes("", "", "").replace("endpoint=198.18.113.1:51820", "");
    assert_eq!(carrier("", &unready), "a2 ");
    assert_eq!(carrier(fallback, &unready), "a3 UnknownAnchor a1 NotReady(NoEndpoint)");
    let all = nodes("stale", "stale", "stale");
    assert_eq!(carrier("", &all), "a1 SilentAnchor 10.101.0.0/16 by a1");
    assert_eq!(carrier("{ nodes: [a3] }", &all), "a3 SilentAnchor 10.101.0.0/16 by a3");
    assert_eq!(
        carrier("{ nodes: [a3], count: 2 }", &nodes("stale", "", "stale")),
        "a2 UnknownAnchor a3 NotReady(Stale) FewerAnchors 10.101.0.0/16 1/2 narrow=false"
    );
}

#[test]
fn one_loss_moves_one_part() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let with = |lost: &[&str], word: &str| {
        let word = |name: &str| if lost.contains(&name) { word } else { "" };
        let nodes: Vec<(&str, &str)> = names.iter().map(|it| (*it, word(it))).collect();
        counted(&nodes)
    };
    let without = |lost: &[&str]| {
        let nodes = with(&[], "");
        let is_left = |line: &&str| !lost.contains(&line.split(' ').next().unwrap());
        nodes.lines().filter(is_left).collect::<Vec<_>>().join("\n")
    };
    let eight = format!("{{ nodes: {names:?}, count: 8 }}");
    let carried = |anchors: &str, nodes: &str| carriers(anchors, nodes).0;
    let before = carried(&eight, &with(&[], ""));
    assert_eq!(before, names[..8]);
    assert_eq!(carried("{ count: 8 }", &with(&[], "")), before);
    for lost in names {
        // Silent, left out, and deleted. Names are needed to know of the last two.
        let after = carried(&eight, &with(&[lost], "stale"));
        assert_eq!(carried(&eight, &with(&[lost], "wireguard-ip=")), after);
        assert_eq!(carried(&eight, &without(&[lost])), after);
        assert_eq!(carried("{ count: 8 }", &with(&[lost], "stale")), after);
        let moved: Vec<&str> =
            (0..8).filter(|it| before[*it] != after[*it]).map(|it| before[it].as_str()).collect();
        assert_eq!(moved, if before.contains(&lost.to_owned()) { vec![lost] } else { vec![] });
        assert!(!after.contains(&lost.to_owned()));
    }
}

#[test]
fn a_named_anchor_keeps_its_range_whatever_else_a_target_accepts() {
    let anchored = |accepted: &str| {
        let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, anchors: [{{ nodes: [a2] }}]");
        let taking = format!("{B}, acceptedNetworks: [{accepted}]");
        let nodes = counted(&[("a1", ""), ("a2", "")]);
        report(FULL, &[("u", &fields, &nodes), ("v", &taking, FAR)])
    };
    for accepted in [
        "10.101.0.0/16",
        "10.101.0.0/16, 10.1.1.0/24",
        "10.101.0.0/16, 10.1.2.0/24",
        "10.101.0.0/16, 10.1.0.0/16, 10.201.0.1/32",
    ] {
        let report = anchored(accepted);
        let anchor = report.lines().find(|it| it.contains("10.101.0.0/16")).unwrap();
        assert!(anchor.contains("u--a2 "), "{accepted} {report}");
        assert!(!report.contains("Anchor") && !report.contains("Rangeless"), "{report}");
    }
    // Without a name, the Peer of a node that the target takes something of carries it too.
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16");
    let taking = format!("{B}, acceptedNetworks: [10.101.0.0/16, 10.1.2.0/24]");
    let nodes = counted(&[("a1", ""), ("a2", "")]);
    let report = report(FULL, &[("u", &fields, &nodes), ("v", &taking, FAR)]);
    assert!(report.contains("u--a2 10.1.2.0/24 10.101.0.0/16\n"), "{report}");
}
