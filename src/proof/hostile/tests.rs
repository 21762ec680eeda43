//! Attacks of clusters on each other, with correct and with changed manifests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::*;
use crate::proof::bounded_list::APART;
use crate::proof::messages::hostile as words;
use crate::testing::lab::{EAST, EAST_NODES, EAST_OF_WEST, Lab, WEST, WEST_NODES};

const NORTH: &str = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.103.0.0/24";

const NORTH_NODES: &str = "
o1 pod=10.3.1.0/24 external=198.18.0.31 endpoint=198.18.0.31:51820 internal-ip=192.168.3.1/24 key=GRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk= wg=10.103.0.1/24
";

const NORTH_OF_WEST: &str = "north/m--west.yaml";
const WEST_OF_EAST: &str = "west/m--east.yaml";

/// `west` in the middle, `east` and `north` beside it.
fn line() -> Lab {
    Lab::linked(
        "{ mode: Links, links: [[east, west], [west, north]] }",
        &[("east", EAST, EAST_NODES), ("west", WEST, WEST_NODES), ("north", NORTH, NORTH_NODES)],
    )
}

/// Returns how many of each kind there are.
fn counted(open: &BoundedList<OpenWay>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for open in open.listed() {
        let kind = open.class().map_or_else(|| "lans".to_owned(), |it| format!("{it}s"));
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// Prints what a cluster could do.
fn report(lab: &Lab, cluster: &str) -> String {
    lab.show(|fabric, meshes| {
        let site = fabric.site_named(cluster).unwrap();
        let hostile = assume_hostile(fabric, meshes, &[site], APART).remove(0);
        let mut text = String::new();
        for exposure in &hostile.exposures {
            let name = fabric.site(exposure.site).cluster;
            let spans = |holds: &BoundedList<Hold>| {
                let shown = holds.listed().iter().map(|it| it.span.to_string());
                shown.collect::<Vec<_>>().join(" ")
            };
            writeln!(text, "{name} hears {} far ends", exposure.heard.listed().len()).unwrap();
            writeln!(text, "  believes {}", spans(&exposure.believed)).unwrap();
            writeln!(text, "  sends {}", spans(&exposure.attracted)).unwrap();
            writeln!(text, "  opens {:?}", counted(&exposure.open)).unwrap();
            for relay in exposure.relays.listed() {
                let third = fabric.site(relay.site).cluster;
                let passages: Vec<String> =
                    relay.passages.listed().iter().map(|it| it.span.to_string()).collect();
                writeln!(text, "  through to {third}: {passages:?}").unwrap();
            }
        }
        for finding in words::findings(fabric, &hostile) {
            writeln!(text, "{}: {}", finding.rule.name(), finding.message).unwrap();
            for label in &finding.labels {
                let place = &label.place;
                writeln!(text, "  {}#{} {}", place.source, place.pointer, label.text).unwrap();
            }
            writeln!(text, "  help: {}", finding.help.unwrap()).unwrap();
        }
        text
    })
}

#[test]
fn a_sound_mesh_contains_each_of_its_clusters() {
    insta::assert_snapshot!(report(&line(), "east"), @r#"
    north hears 0 far ends
      believes 
      sends 
      opens {}
    west hears 2 far ends
      believes 10.1.1.0/24 10.1.2.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      sends 10.1.1.0/24 10.1.2.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to north: []
    "#);
    insta::assert_snapshot!(report(&line(), "west"), @r#"
    east hears 1 far ends
      believes 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      sends 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      opens {"lans": 1, "networks": 1, "nodes": 4, "pods": 2, "services": 1}
    north hears 1 far ends
      believes 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      sends 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      opens {"lans": 1, "nodes": 2, "pods": 1}
    "#);
    insta::assert_snapshot!(report(&line(), "north"), @r#"
    east hears 0 far ends
      believes 
      sends 
      opens {}
    west hears 1 far ends
      believes 10.3.1.0/24 10.103.0.1
      sends 10.3.1.0/24 10.103.0.1
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to east: []
    "#);
}

#[test]
fn a_stolen_prefix_is_an_impersonation_and_a_capture() {
    let lab = line().edit(WEST_OF_EAST, "10.1.1.0/24", "10.3.1.0/25");
    insta::assert_snapshot!(report(&lab, "east"), @r#"
    north hears 0 far ends
      believes 
      sends 
      opens {}
    west hears 2 far ends
      believes 10.1.2.0/24 10.3.1.0/25 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      sends 10.1.2.0/24 10.3.1.0/25 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to north: []
    impersonation: east can send packets from addresses that are not its own: the Peer m--east--n1 allows the sources 10.3.1.0/25 (a pod on north/o1)
      west/m--east.yaml#/spec/allowedIPs/0 accepts these sources
      help: remove the range from the Peer, or declare it for `east` in the mesh
    capture: east can receive packets for addresses that are not its own: the Peer m--east--n1 takes the destinations 10.3.1.0/25 (a pod on north/o1)
      west/m--east.yaml#/spec/allowedIPs/0 routes these destinations
      help: remove the range from the Peer, or declare it for `east` in the mesh
    "#);
}

#[test]
fn a_default_route_is_everything_that_nobody_has_more_particularly() {
    let lab = line().edit(EAST_OF_WEST, "10.2.1.0/24", "0.0.0.0/0");
    insta::assert_snapshot!(report(&lab, "west"), @r#"
    east hears 1 far ends
      believes 0.0.0.0-10.0.255.255 10.1.0.0/24 10.1.1.0/24 10.1.2.0/24 10.1.3.0-10.1.255.255 10.2.0.0/23 10.2.2.0/24 10.2.3.0-10.2.255.255 10.3.0.0/24 10.3.1.0/24 10.3.2.0-10.3.255.255 10.4.0.0-10.10.255.255 10.11.0.0/16 10.12.0.0-10.100.255.255 10.101.0.0 10.101.0.1 10.101.0.2 10.101.0.3-10.101.0.255 10.101.1.0-10.101.255.255 10.102.0.0 10.102.0.1 10.102.0.2-10.102.0.255 10.102.1.0-10.102.255.255 10.103.0.0 10.103.0.1 10.103.0.2-10.103.0.255 10.103.1.0-192.168.0.255 192.168.1.0 192.168.2.0-192.168.3.0 192.168.3.2-255.255.255.255
      sends 0.0.0.0-10.0.255.255 10.1.0.0/24 10.1.3.0-10.1.255.255 10.2.0.0/23 10.2.2.0/24 10.2.3.0-10.2.255.255 10.3.0.0/24 10.3.1.0/24 10.3.2.0-10.3.255.255 10.4.0.0-10.10.255.255 10.12.0.0-10.100.255.255 10.101.0.0 10.101.0.3-10.101.0.255 10.101.1.0-10.101.255.255 10.102.0.0 10.102.0.1 10.102.0.2-10.102.0.255 10.102.1.0-10.102.255.255 10.103.0.0 10.103.0.1 10.103.0.2-10.103.0.255 10.103.1.0-192.168.0.255 192.168.2.0-192.168.3.0 192.168.3.1 192.168.3.2-255.255.255.255
      opens {"lans": 1, "networks": 1, "nodes": 4, "pods": 2, "services": 1}
    north hears 1 far ends
      believes 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      sends 10.2.1.0/24 10.2.2.0/24 10.102.0.1
      opens {"lans": 1, "nodes": 2, "pods": 1}
    impersonation: west can send packets from addresses that are not its own: the Peer m--west--m1 allows the sources 0.0.0.0-10.0.255.255 (declared by no cluster), 10.1.0.0/24 (east), 10.1.1.0/24 (a pod on east/n1) and 21 more
      east/m--west.yaml#/spec/allowedIPs/0 accepts these sources
      help: remove the range from the Peer, or declare it for `west` in the mesh
    impersonation: west can send packets from 4 more ranges that are not its own
      help: remove from the Peers of `west` the ranges that it does not declare
    capture: west can receive packets for addresses that are not its own: the Peer m--west--m1 takes the destinations 0.0.0.0-10.0.255.255 (declared by no cluster), 10.1.0.0/24 (east), 10.1.3.0-10.1.255.255 (east) and 16 more
      east/m--west.yaml#/spec/allowedIPs/0 routes these destinations
      help: remove the range from the Peer, or declare it for `west` in the mesh
    "#);
}

#[test]
fn a_copied_key_may_be_anybody_s() {
    let nodes = EAST_NODES.replace("key=B", "key=GRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk=");
    let lab = line().later("east", &nodes);
    insta::assert_snapshot!(report(&lab, "east"), @r#"
    north hears 1 far ends
      believes 
      sends 
      opens {}
    west hears 2 far ends
      believes 10.1.1.0/24 10.3.1.0/24 10.11.0.0/16 10.101.0.1 10.103.0.1 192.168.1.0 192.168.1.1 192.168.1.3-192.168.1.255
      sends 10.1.1.0/24 10.3.1.0/24 10.11.0.0/16 10.101.0.1 10.103.0.1 192.168.1.0 192.168.1.1 192.168.1.3-192.168.1.255
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to north: []
    impersonation: east can send packets from addresses that are not its own: the Peer m--north--o1 allows the sources 10.3.1.0/24 (a pod on north/o1)
      west/m--north.yaml#/spec/allowedIPs/0 accepts these sources
      help: delete Kilo's key file on all but one of east/n2, north/o1, which claim the same key
    impersonation: east can send packets from addresses that are not its own: the Peer m--north--o1 allows the sources 10.103.0.1 (north/o1 in the Kilo subnet)
      west/m--north.yaml#/spec/allowedIPs/1 accepts these sources
      help: delete Kilo's key file on all but one of east/n2, north/o1, which claim the same key
    capture: east can receive packets for addresses that are not its own: the Peer m--north--o1 takes the destinations 10.3.1.0/24 (a pod on north/o1)
      west/m--north.yaml#/spec/allowedIPs/0 routes these destinations
      help: delete Kilo's key file on all but one of east/n2, north/o1, which claim the same key
    capture: east can receive packets for addresses that are not its own: the Peer m--north--o1 takes the destinations 10.103.0.1 (north/o1 in the Kilo subnet)
      west/m--north.yaml#/spec/allowedIPs/1 routes these destinations
      help: delete Kilo's key file on all but one of east/n2, north/o1, which claim the same key
    "#);
}

#[test]
fn what_the_second_may_say_to_the_third_gets_through() {
    let lab = line().edit(NORTH_OF_WEST, "10.2.1.0/24", "10.1.0.0/16");
    insta::assert_snapshot!(report(&lab, "east"), @r#"
    north hears 0 far ends
      believes 
      sends 
      opens {}
    west hears 2 far ends
      believes 10.1.1.0/24 10.1.2.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      sends 10.1.1.0/24 10.1.2.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to north: ["10.1.1.0/24", "10.1.2.0/24"]
    broken-isolation: east can get in through west although no mesh allows it: sources accepted from west: 10.1.1.0/24, 10.1.2.0/24
      north/m--west.yaml#/spec/allowedIPs/0 lets it in
      help: remove from the Peer the ranges that `west` does not declare
    "#);
}

#[test]
fn two_peers_for_one_range_may_let_it_in() {
    let spec = format!(
        "allowedIPs: [10.3.1.0/24], publicKey: {}, endpoint: {{ dnsOrIP: {{ ip: 198.18.0.11 }}, port: 51820 }}",
        crate::testing::key("A")
    );
    insta::assert_snapshot!(report(&line().add("west", "aa", &spec), "east"), @r#"
    north hears 0 far ends
      believes 
      sends 
      opens {}
    west hears 3 far ends
      believes 10.1.1.0/24 10.1.2.0/24 10.3.1.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      sends 10.1.1.0/24 10.1.2.0/24 10.3.1.0/24 10.11.0.0/16 10.101.0.1 10.101.0.2 192.168.1.0 192.168.1.1 192.168.1.2 192.168.1.3-192.168.1.255
      opens {"lans": 1, "nodes": 3, "pods": 2}
      through to north: []
    impersonation: east may send packets from addresses that are not its own: the Peer aa allows the sources 10.3.1.0/24 (a pod on north/o1)
      west/aa.yaml#/spec/allowedIPs/0 accepts these sources
      help: give each Peer a range, a key and a name of its own: otherwise the Peer that was applied last has them
    capture: east may receive packets for addresses that are not its own: the Peer aa takes the destinations 10.3.1.0/24 (a pod on north/o1)
      west/aa.yaml#/spec/allowedIPs/0 routes these destinations
      help: give each Peer a range, a key and a name of its own: otherwise the Peer that was applied last has them
    "#);
}
