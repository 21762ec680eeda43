//! The candidates of one cluster and their ranges, and the excluded nodes, as text.

use std::fmt::Write as _;

use super::*;
use crate::snapshot::Snapshot;
use crate::testing::{meshes, node};

const TYPED: &str = "podCIDRs: [10.42.0.0/16, 'fd00:42::/48'], wireguardCIDR: 10.4.0.0/16, serviceCIDR: 10.43.0.0/16, additionalCIDRs: [192.168.0.0/24]";

/// Returns what becomes of nodes, a line each, under an entry of these fields.
fn report(fields: &str, nodes: &str) -> String {
    let yaml = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec:\n  clusters:\n  - {{ name: east, {fields} }}\n  - {{ name: west, allowedNetworks: [172.16.0.0/12] }}\n"
    );
    let meshes = meshes(&yaml);
    let nodes = nodes.lines().filter(|it| !it.trim().is_empty()).map(node);
    let snapshot = Snapshot::new("east".parse().unwrap(), nodes.collect()).unwrap();
    let entry = &meshes[0].entries[0];
    let cluster = Cluster::new(entry, &snapshot);
    let membership = membership(&meshes[0].name, &cluster, &Arc::from("east.json"));
    let mut text = String::new();
    let join = |cidrs: &[Cidr]| cidrs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    for candidate in &membership.candidates {
        let endpoint = candidate.endpoint.as_ref().map_or("-".to_owned(), ToString::to_string);
        let _ = writeln!(
            text,
            "{} {endpoint} {}",
            candidate.leader,
            join(&candidate.claims().collect::<Vec<_>>())
        );
    }
    for ExcludedNode { node, reason, .. } in &membership.excluded {
        let _ = writeln!(text, "{node} out: {reason:?}");
    }
    for WithheldRange { node, range, reason, .. } in &membership.withheld {
        let _ = writeln!(text, "{node} withheld {range}: {reason:?}");
    }
    for PodOverlap { node, cidr, other_node, other, excluded } in &membership.overlaps {
        let excluded = excluded.as_deref().unwrap_or("neither");
        let _ = writeln!(text, "{node} {cidr} overlaps {other} of {other_node}; {excluded} is out");
    }
    for Contradiction { what, against, of, .. } in &membership.contradictions {
        let _ = writeln!(text, "{what:?} contradicted by {against} of {of}");
    }
    let _ = writeln!(text, "{} {}", cluster.granularity, join(&cluster.shared));
    text
}

#[test]
fn a_speaker_claims_pods_then_wireguard_then_hosts() {
    insta::assert_snapshot!(report(TYPED, "
a pod=10.42.1.0/24 pod=fd00:42:0:1::/64 wg=10.4.0.1/16 key=A external=203.0.113.1 internal-ip=192.168.0.5/24 internal=192.168.0.9 granularity=full
b pod=10.42.2.77/24 wg=10.4.0.2/16 key=B external=203.0.113.2 internal=192.168.0.6 granularity=full
c pod=10.42.3.0/24 wg=10.4.0.3/16 key=C external=203.0.113.3 internal=198.18.0.1
    "), @r"
    a 203.0.113.1:51820 10.42.1.0/24 fd00:42:0:1::/64 10.4.0.1/32 192.168.0.5/32
    b 203.0.113.2:51820 10.42.2.0/24 10.4.0.2/32 192.168.0.6/32
    c 203.0.113.3:51820 10.42.3.0/24 10.4.0.3/32
    a withheld 192.168.0.9/32: SecondAddress
    Full 10.43.0.0/16 192.168.0.0/24
    ");
}

#[test]
fn the_first_failed_check_is_the_reason() {
    insta::assert_snapshot!(report(TYPED, "
a
b pod=10.42.1.0/24
c pod=10.42.1.0/24 wg=10.4.0.1/16
d pod=10.42.1.0/24 wg=10.4.0.1/16 key=A
e pod=10.42.1.0/24 wg=10.4.0.1/16 key=A force-endpoint=1.2.3.4
f pod=10.42.1.0/24 wg=10.4.0.1/16 key=A force-endpoint=wg.example:1
Bad pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=1.2.3.4
    "), @r#"
    Bad out: NameInvalid(Alphabet("lowercase letters, digits, inner dashes and dots (a DNS-1123 subdomain)"))
    a out: NoPodCidr
    b out: NoWireguardIp
    c out: NoPublicKey
    d out: NoEndpoint([Annotation, ExternalIP])
    e out: EndpointInvalid { origin: Annotation("kilo.squat.ai/force-endpoint"), text: "1.2.3.4", error: Endpoint(NoPort) }
    f out: EndpointInvalid { origin: Annotation("kilo.squat.ai/force-endpoint"), text: "wg.example:1", error: UndeclaredName }
    Location 10.43.0.0/16 192.168.0.0/24
    "#);
}

#[test]
fn a_broken_node_takes_nothing_from_a_good_one() {
    // Both have the same address, key and pod CIDR, but only the second can be peered.
    insta::assert_snapshot!(report(TYPED, "
a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A
b pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.2
    "), @r"
    b 203.0.113.2:51820 10.42.1.0/24 10.4.0.1/32
    a out: NoEndpoint([Annotation, ExternalIP])
    Location 10.43.0.0/16 192.168.0.0/24
    ");
}

#[test]
fn pod_cidrs_of_excluded_nodes_are_compared_while_kilo_counts_these() {
    let node = |pods: &str, rest: &str| {
        let good = "pod=10.42.1.0/24 wg=10.4.0.2/16 key=B external=203.0.113.2 endpoint=203.0.113.2:1 granularity=full";
        let nodes = format!("a pod={pods} key=A granularity=full {rest}\nb {good}");
        report(TYPED, &nodes)
    };
    // Kilo has an endpoint for it, other clusters have none.
    let counted = "wg=10.4.0.1/16 endpoint=198.51.100.1:1";
    insta::assert_snapshot!(node("10.42.1.0/24", counted), @r"
    b 203.0.113.2:51820 10.42.1.0/24 10.4.0.2/32
    a out: NoEndpoint([Annotation, ExternalIP])
    b 10.42.1.0/24 overlaps 10.42.1.0/24 of a; a is out
    Full 10.43.0.0/16 192.168.0.0/24
    ");
    let overlaps = |pods: &str, rest: &str| {
        let report = node(pods, rest);
        let line = report.lines().find(|it| it.contains("overlaps"));
        line.map(str::to_owned)
    };
    let narrower = "b 10.42.1.0/24 overlaps 10.42.1.128/25 of a; a is out";
    assert_eq!(overlaps("10.42.1.128/25", counted).unwrap(), narrower);
    // Its own pod CIDR is not declared.
    let wider = "a 10.0.0.0/8 overlaps 10.42.1.0/24 of b; a is out";
    assert_eq!(overlaps("10.0.0.0/8", counted).unwrap(), wider);
    assert_eq!(overlaps("10.42.2.0/24", counted), None);
    assert_eq!(overlaps("10.42.1.0/24", &format!("{counted} stale")), None);
}

#[test]
fn of_two_that_claim_the_same_the_better_founded_keeps_it() {
    insta::assert_snapshot!(report(TYPED, "
a pod=10.42.0.0/16 wg=10.4.0.1/16 key=A external=203.0.113.1
b pod=10.42.2.0/24 wg=10.4.0.2/16 key=B external=203.0.113.2 internal=192.168.0.7
c pod=10.42.3.0/24 wg=10.4.0.2/16 key=C external=203.0.113.3 internal=192.168.0.7
d pod=10.42.4.0/24 wg=10.4.0.4/16 key=C external=203.0.113.4
    "), @r#"
    b 203.0.113.2:51820 10.42.2.0/24 10.4.0.2/32 192.168.0.7/32
    c 203.0.113.3:51820 10.42.3.0/24
    a out: PodCidrTaken { cidr: Cidr(10.42.0.0/16), other: Cidr(10.42.2.0/24), node: "b" }
    d out: DuplicateKey("c")
    c withheld 10.4.0.2/32: Taken { node: "b" }
    c withheld 192.168.0.7/32: Taken { node: "b" }
    Location 10.43.0.0/16 192.168.0.0/24
    "#);
}

#[test]
fn a_location_speaks_with_one_voice() {
    let shared = "internal-ip=192.168.0.1/24 endpoint=192.168.0.1:1";
    insta::assert_snapshot!(report(TYPED, &format!("
a pod=10.42.1.0/24 wg= key=A {shared}
b pod=10.42.2.0/24 wg=10.4.0.1/16 key=B external=203.0.113.2 {shared}
c pod=10.9.0.0/24 wg= key=C {shared}
d pod=10.42.4.0/24 wg= key=C {shared} stale
e pod=10.42.5.0/24 wg= key=C location=x {shared}
f pod=10.42.6.0/24 wg= key=C location=x {shared}
    ")), @r#"
    b 203.0.113.2:51820 10.42.1.0/24 10.42.2.0/24 10.4.0.1/32 192.168.0.1/32
    c out: PodCidrOutOfRange { cidr: Cidr(10.9.0.0/24) }
    d out: NotReady(Stale)
    e out: NoWireguardIp
    f out: LeaderExcluded("e")
    b withheld 192.168.0.1/32: Taken { node: "a" }
    Location 10.43.0.0/16 192.168.0.0/24
    "#);
}

#[test]
fn a_leader_that_is_not_selected_speaks_for_those_that_are() {
    let shared = "internal-ip=192.168.0.1/24 endpoint=192.168.0.1:1";
    let fields = format!("{TYPED}, nodeSelector: {{ matchLabels: {{ pick: 'yes' }} }}");
    insta::assert_snapshot!(report(&fields, &format!("
a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.2 {shared}
b pod=10.42.2.0/24 wg= key=B {shared} label=yes
c pod=10.42.3.0/24 wg= key=C {shared}
    ")), @r"
    a 203.0.113.2:51820 10.42.2.0/24 10.4.0.1/32 192.168.0.1/32
    c out: NotSelected
    Location 10.43.0.0/16 192.168.0.0/24
    ");
}

#[test]
fn an_address_in_another_segment_s_pods_is_lost() {
    insta::assert_snapshot!(report("allowedNetworks: [10.0.0.0/8]", "
a pod=10.42.1.0/24 wg=10.42.2.9/16 key=A external=203.0.113.1 internal=10.42.1.4
b pod=10.42.2.0/24 wg=10.4.0.2/16 key=B external=203.0.113.2
    "), @r#"
    a 203.0.113.1:51820 10.42.1.0/24 10.42.1.4/32
    b 203.0.113.2:51820 10.42.2.0/24 10.4.0.2/32
    a withheld 10.42.2.9/32: InPodCidr { cidr: Cidr(10.42.2.0/24), node: "b" }
    Location 
    "#);
}

#[test]
fn one_node_does_not_withdraw_a_flat_range() {
    let node = |name: &str, n: u8, more: &str| {
        format!("{name} pod=10.42.{n}.0/24 wg=10.4.0.{n}/16 external=203.0.113.{n} {more}\n")
    };
    let nodes =
        [node("a", 1, "key=A internal=10.43.0.1"), node("b", 2, "key=B"), node("c", 3, "key=C")];
    let report =
        report("allowedNetworks: [10.42.0.0/16, 10.43.0.0/16, 10.4.0.0/16]", &nodes.concat());
    assert_eq!(report.lines().last(), Some("Location 10.43.0.0/16"));
}

#[test]
fn one_bad_pod_cidr_does_not_make_the_pods_of_others_everybody_s() {
    let fields = "allowedNetworks: [10.42.0.0/16, 10.43.0.0/16, 10.4.0.0/16, 'fd00:42::/48'], \
                  nodeSelector: { matchLabels: { pick: 'yes' } }";
    let leader = |name: &str, n: u8, key: &str| {
        format!(
            "{name} pod=10.42.{n}.0/24 wg=10.4.0.{n}/16 key={key} external=203.0.113.{n} \
             endpoint=203.0.113.{n}:1 internal-ip=192.168.0.{n}/24 location={name}\n"
        )
    };
    let member = |name: &str, n: u8, location: &str| {
        format!(
            "{name} pod=10.42.{n}.0/24 wg= key=C endpoint=203.0.113.{n}:1 \
             internal-ip=192.168.0.{n}/24 location={location} label=yes\n"
        )
    };
    let one = leader("x", 1, "A") + &member("x1", 3, "x");
    let two = one.clone() + &leader("y", 2, "B") + &member("y1", 4, "y");
    for (nodes, bad) in [(one, "10.42.3"), (two.clone(), "10.42.3"), (two, "10.42.4")] {
        let shared = |nodes: &str| report(fields, nodes).lines().last().map(str::to_owned);
        let usual = "Location 10.43.0.0/16 fd00:42::/48";
        assert_eq!(shared(&nodes).unwrap(), usual);
        // Of another cluster's range, or good, but of the other family.
        let six = nodes.replace(&format!("{bad}.0/24"), "fd00:42::/64");
        for nodes in [nodes.replace(bad, "10.99.9"), six] {
            let shared = shared(&nodes).unwrap();
            assert!(usual.starts_with(&shared), "{shared} {nodes}");
        }
    }
}

/// Its address would be all that others get.
#[test]
fn a_leader_that_is_not_selected_has_a_peer_only_for_others() {
    let fields = format!("{TYPED}, nodeSelector: {{ matchLabels: {{ pick: 'yes' }} }}");
    let leader = "x pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.1 \
                  endpoint=203.0.113.1:1 internal-ip=192.168.0.1/24 granularity=location\n";
    let member = |pods: &str| {
        let member = "key=C endpoint=203.0.113.3:1 internal-ip=192.168.0.3/24 label=yes \
                      granularity=location";
        report(&fields, &format!("{leader}m pod={pods} wg= {member}\n"))
    };
    assert!(member("10.42.3.0/24").contains("10.4.0.1/32"));
    for pods in ["10.99.3.0/24", "nonsense"] {
        let report = member(pods);
        assert!(!report.contains("10.4.0.1/32"), "{report}");
    }
}

#[test]
fn a_contested_address_does_not_make_a_range_of_nodes_everybody_s() {
    // Both have an address in 10.4.0.0/24, though only one can keep it.
    let report = report(
        "allowedNetworks: [10.42.0.0/16, 10.4.0.0/24]",
        "
a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.1
b pod=10.42.2.0/24 wg=10.4.0.1/16 key=B external=203.0.113.2
    ",
    );
    assert!(report.ends_with("Location \n"), "{report}");
}

#[test]
fn half_of_the_segments_are_not_most() {
    let nodes = "
a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.1 internal=10.9.0.1
b pod=10.42.2.0/24 wg=10.4.0.2/16 key=B external=203.0.113.2
    ";
    let report = report("allowedNetworks: [10.42.0.0/16, 10.4.0.0/24, 10.9.0.0/24]", nodes);
    assert!(report.ends_with("Location 10.9.0.0/24\n"), "{report}");
}

#[test]
fn nodes_behind_nat_roam_where_a_person_says_so() {
    let nodes = "a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A";
    let fields = format!("{TYPED}, persistentKeepalive: 25");
    assert!(report(&fields, nodes).starts_with("a - 10.42.1.0/24"));
    assert!(report(TYPED, nodes).starts_with("a out: NoEndpoint"));
}

#[test]
fn a_name_is_an_endpoint_only_under_a_declared_domain() {
    let node = |endpoint: &str| {
        format!("a pod=10.42.1.0/24 wg=10.4.0.1/16 key=A force-endpoint={endpoint}")
    };
    let fields = format!("{TYPED}, endpointDomains: [wg.example]");
    assert!(report(&fields, &node("a.wg.example:1")).starts_with("a a.wg.example:1"));
    assert!(report(&fields, &node("wg.example:1")).starts_with("a wg.example:1"));
    assert!(report(&fields, &node("evilwg.example:1")).contains("UndeclaredName"));
    assert!(report(&fields, &node("A.wg.example:1")).contains("EndpointInvalid"));
}

#[test]
fn what_most_nodes_contradict_is_reported_at_its_line() {
    insta::assert_snapshot!(report(&format!("{TYPED}, granularity: Location"), "
a pod=10.9.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.1 granularity=full
b pod=10.9.2.0/24 wg=10.4.0.2/16 key=B external=203.0.113.2 granularity=full
c pod=10.42.3.0/24 wg=10.4.0.3/16 key=C external=203.0.113.3 granularity=full
    "), @r"
    c 203.0.113.3:51820 10.42.3.0/24 10.4.0.3/32
    a out: PodCidrOutOfRange { cidr: Cidr(10.9.1.0/24) }
    b out: PodCidrOutOfRange { cidr: Cidr(10.9.2.0/24) }
    PodRanges contradicted by 2 of 3
    Granularity(Location) contradicted by 3 of 3
    Location 10.43.0.0/16 192.168.0.0/24
    ");
}

#[test]
fn a_selector_that_selects_nobody_is_reported() {
    let fields = format!("{TYPED}, nodeSelector: {{ matchLabels: {{ pick: typo }} }}");
    assert!(report(&fields, "a pod=10.42.1.0/24").contains("NodeSelector contradicted by 1 of 1"));
}

#[test]
fn one_node_does_not_decide_how_the_cluster_is_cut() {
    let node = |name: &str, n: u8, more: &str| {
        format!(
            "{name} pod=10.42.{n}.0/24 wg=10.4.0.{n}/16 external=203.0.113.{n} internal-ip=192.168.0.{n}/24 endpoint=192.168.0.{n}:1 {more}\n"
        )
    };
    let nodes =
        [node("a", 1, "key=A granularity=full"), node("b", 2, "key=B"), node("c", 3, "key=C")];
    assert!(report(TYPED, &nodes.concat()).contains("\nLocation "));
}

#[test]
fn long_names_that_are_cut_to_one_are_told_apart() {
    let long = "n".repeat(253);
    let hashed = crate::name::peer_name("m", "east", &long);
    let twin = hashed.strip_prefix("m--east--").unwrap();
    let node = |name: &str, n: u8, key: &str| {
        format!("{name} pod=10.42.{n}.0/24 wg=10.4.0.{n}/16 external=203.0.113.{n} key={key}\n")
    };
    let report = report(TYPED, &(node(&long, 1, "A") + &node(twin, 2, "B")));
    assert!(report.contains(&format!("{long} out: DuplicateName(\"{twin}\")")), "{report}");
}

#[test]
fn what_nests_within_a_segment_is_lost_to_nobody() {
    let shared = "internal-ip=192.168.0.1/24 endpoint=192.168.0.1:1";
    let report = report(
        TYPED,
        &format!(
            "
a pod=10.42.0.0/20 wg=10.4.0.1/16 key=A external=203.0.113.1 {shared}
b pod=10.42.1.0/24 wg= key=B {shared}
c pod=10.42.2.0/24 wg=10.4.0.3/16 key=C external=203.0.113.3 {shared} location=x
    "
        ),
    );
    assert!(report.contains("a out: PodCidrTaken"), "c is another segment: {report}");
    let report = self::report(
        TYPED,
        &format!(
            "
a pod=10.42.0.0/20 wg=10.4.0.1/16 key=A external=203.0.113.1 {shared}
b pod=10.42.1.0/24 wg= key=B {shared}
c pod=10.42.32.0/24 wg=10.42.5.5/16 key=C external=203.0.113.3 {shared} location=x
    "
        ),
    );
    assert!(
        report.starts_with("a 203.0.113.1:51820 10.42.0.0/20 10.42.1.0/24 10.4.0.1/32"),
        "{report}"
    );
}

#[test]
fn wrong_ranges_are_found_behind_a_leader_too() {
    let shared = "internal-ip=192.168.0.1/24 endpoint=192.168.0.1:1";
    let nodes = format!(
        "
a pod=10.9.1.0/24 wg=10.4.0.1/16 key=A external=203.0.113.1 {shared}
b pod=10.9.2.0/24 wg= key=B {shared}
c pod=10.9.3.0/24 wg= key=C {shared}
    "
    );
    assert!(report(TYPED, &nodes).contains("PodRanges contradicted by 3 of 3"));
    let nodes = nodes.replace("10.9.", "10.42.").replace("10.4.0.1", "10.5.0.1");
    assert!(report(TYPED, &nodes).contains("WireguardRange contradicted by 1 of 1"));
}
