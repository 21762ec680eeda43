//! Ranges on what the target's nodes reach by themselves.

use super::*;

const FULL: &str = "{ mode: FullMesh }";

/// Returns what `v` gets where `u` declares this too and the nodes of `v` say this; `u` ranks last.
fn of(additional: &str, says: &str) -> String {
    let fields = format!("{A}, additionalCIDRs: [{additional}]");
    let nodes = format!("{NODE_B} granularity=full {says}");
    told(FULL, &[("v", B, &nodes), ("u", &fields, NODE_A)])
}

#[test]
fn a_range_on_the_network_of_a_node_is_left_out() {
    insta::assert_snapshot!(of("192.168.1.0/24", "internal-ip=192.168.1.9/24"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: Captured 192.168.1.0/24: Lan(Cidr(192.168.1.0/24)) of b x1 kept=false
    ");
    for (range, what) in [
        ("192.168.1.128/25", "Lan"),
        ("192.168.1.77/32", "Lan"),
        ("192.168.0.0/20", "Address(192.168.1.9)"),
        ("192.168.1.9/32", "Lan"),
    ] {
        let told = of(range, "internal-ip=192.168.1.9/24");
        let cut = format!("u in v: Captured {range}: {what}");
        assert!(told.contains(&cut), "{range}: {told}");
    }
}

#[test]
fn each_range_is_told_with_the_line_that_declares_it() {
    let ranges = "192.168.1.0/25, 192.168.1.128/25, 192.168.2.0/24";
    insta::assert_snapshot!(of(ranges, "internal-ip=192.168.1.200/24"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32 192.168.2.0/24
    u in v: Captured 192.168.1.0/25: Lan(Cidr(192.168.1.0/24)) of b x1 kept=false
    u in v: Captured 192.168.1.128/25: Lan(Cidr(192.168.1.0/24)) of b x1 kept=false
    ");
}

#[test]
fn networks_elsewhere_stay_and_those_too_wide_are_not_believed() {
    for (range, says) in [
        ("192.168.2.0/24", "internal-ip=192.168.1.9/24"),
        ("10.9.0.0/16", "internal-ip=10.8.0.1/8"),
        ("10.9.0.0/17", "internal-ip=10.9.200.1/15"),
        ("192.168.1.0/24", "internal-ip=-"),
        (
            "192.168.1.0/24",
            "force-internal-ip=- internal-ip=192.168.1.9/24",
        ),
        ("192.168.1.0/24", ""),
    ] {
        let told = of(range, says);
        assert!(!told.contains("Captured"), "{range} {says}: {told}");
        assert!(
            told.contains(&format!(" {range}\n")),
            "{range} {says}: {told}"
        );
    }
}

#[test]
fn pods_of_others_on_the_network_of_a_node_are_left_out_too() {
    let wide = format!("{NODE_B} granularity=full internal-ip=10.1.7.1/16");
    let two = format!("{NODE_A}\na2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.7");
    insta::assert_snapshot!(told(FULL, &[("v", B, &wide), ("u", A, &two)]), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.201.0.1/32
      m--u--a2 10.201.0.2/32
    u in v: Captured 10.1.1.0/24 10.1.2.0/24: Lan(Cidr(10.1.0.0/16)) of b x1 kept=false
    ");
}

#[test]
fn one_node_of_many_does_not_decide_against_a_cluster_that_ranks_first() {
    let fields = format!("{A}, additionalCIDRs: [192.168.1.0/24]");
    let one = format!("{NODE_B} granularity=full internal-ip=192.168.1.9/24");
    let other = |says: &str| {
        format!(
            "{one}\nc pod=10.2.2.0/24 wg=10.202.0.2/16 key=C external=198.18.113.9 granularity=full {says}"
        )
    };
    let of = |nodes: &str| told(FULL, &[("u", &fields, NODE_A), ("v", B, nodes)]);
    let kept = of(&other("internal-ip=192.168.2.9/24"));
    assert!(kept.contains(" 192.168.1.0/24\n"), "{kept}");
    assert!(kept.contains("x1 kept=true"), "{kept}");
    let most = of(&other("internal-ip=192.168.1.10/24"));
    assert!(most.contains("x2 kept=false"), "{most}");
    assert!(of(&one).contains("x1 kept=false"));
    let unusable = other("internal-ip=192.168.1.10/24").replace("key=C", "key=nonsense");
    let told = of(&unusable);
    assert!(
        told.contains("x1 kept=false"),
        "the other does not count: {told}"
    );
}

#[test]
fn a_node_that_is_not_selected_has_a_network_all_the_same() {
    let fields = format!("{A}, additionalCIDRs: [192.168.1.0/24]");
    let selecting = format!("{B}, nodeSelector: {{ matchLabels: {{ label: gateway }} }}");
    let nodes = format!(
        "{NODE_B} granularity=full label=gateway\nc pod=10.2.2.0/24 wg=10.202.0.2/16 key=C external=198.18.113.9 granularity=full internal-ip=192.168.1.9/24"
    );
    let told = told(FULL, &[("v", &selecting, &nodes), ("u", &fields, NODE_A)]);
    assert!(told.contains("Captured 192.168.1.0/24"), "{told}");
}
