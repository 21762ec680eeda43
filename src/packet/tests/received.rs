//! Decisions where a packet arrives.

use std::fmt::Write as _;

use crate::agent::fabric::{Fabric, Site};
use crate::mesh::AddressClass;
use crate::packet::trace::EndFinder;
use crate::testing::lab::{
    EAST, EAST_NODES, EAST_OF_WEST, Lab, WEST, WEST_NODES, WEST_OF_EAST, lab,
};

#[test]
fn the_receiver_does_not_believe_the_source() {
    let narrow = lab().edit(EAST_OF_WEST, "  - \"10.2.2.0/24\"\n", "");
    insta::assert_snapshot!(narrow.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
    source-rejected: east/n1 drops it: the Peer m--west--m1 of west/m1 does not contain the source 10.2.2.2
      east/m--west.yaml#/spec/allowedIPs lacks the address
    ");
    let other = lab().add(
        "east",
        "thief",
        "allowedIPs: [10.2.2.0/25], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(other.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
    source-rejected: east/n1 drops it: the source 10.2.2.2 belongs (by 10.2.2.0/25) to the Peer thief, not to west/m1
      east/thief.yaml#/spec/allowedIPs/0 contains the source
      east/m--west.yaml#/spec/allowedIPs the Peer of the sender
    ");
    // Without `additionalCIDRs`, nothing has the address of a node.
    let node = lab().trace_of("west/m1", "192.168.1.2", Some(AddressClass::Node));
    insta::assert_snapshot!(node, @"
    192.168.2.1 -> 192.168.1.2
      west/m1 routes 192.168.1.2 (by 192.168.1.2/32) to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820 to open the tunnel
    source-rejected: east/n2 drops it: the Peer m--west--m1 of west/m1 does not contain the source 192.168.2.1
      east/m--west.yaml#/spec/allowedIPs lacks the address
    ");
}

#[test]
fn one_range_is_that_of_a_node_and_of_a_peer() {
    let shared = lab().add(
        "east",
        "other",
        "allowedIPs: [10.1.2.0/24], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(shared.trace("west/m1", "east/n2"), @"
    10.2.1.2 -> 10.1.2.2
      west/m1 routes 10.1.2.2 (by 10.1.2.0/24) to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820 to open the tunnel
      east/n2 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
    ambiguous: 10.1.2.0/24 on east/n2 belongs to its own node east/n2 or the Peer other, depending on which was applied last
      east/other.yaml#/spec/allowedIPs/0 claims the range
    ");
}

#[test]
fn two_peers_of_one_key_are_one_or_the_other() {
    let twice = |path| {
        let key = if path == "west" { "A" } else { "C" };
        let spec = format!("allowedIPs: [10.9.9.0/24], publicKey: {}", crate::testing::key(key));
        lab().add(path, "again", &spec)
    };
    insta::assert_snapshot!(twice("west").trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: the owner of 10.1.1.0/24 on west/m1 is uncertain: the Peers again and m--east--n1 of west have the same key: only the last one applied exists in WireGuard
      west/again.yaml# one of them
      west/m--east.yaml# one of them
    ");
    insta::assert_snapshot!(twice("east").trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    ambiguous: the Peers again and m--west--m1 of east have the same key: only the last one applied exists in WireGuard
      east/again.yaml# one of them
      east/m--west.yaml# one of them
    ");
}

#[test]
fn what_arrives_whichever_of_two_peers_is_there_arrives() {
    let again = |ranges: &str, endpoint: &str| {
        let key = crate::testing::key("A");
        let endpoint = format!("endpoint: {{ dnsOrIP: {{ ip: {endpoint} }}, port: 51820 }}");
        let spec = format!("allowedIPs: [{ranges}], publicKey: {key}, {endpoint}");
        let finding = lab().add("west", "again", &spec).trace("west/m1", "east/n1");
        let mut lines = finding.lines().rev();
        let verdict = lines.find(|it| !it.starts_with(' ')).unwrap();
        verdict.split(':').next().unwrap().to_owned()
    };
    assert_eq!(again("10.1.0.0/16", "198.18.0.11"), "delivered");
    assert_eq!(again("10.1.1.0/25", "198.18.0.11"), "delivered");
    // An address that no node has may be in front of one.
    assert_eq!(again("10.1.0.0/16", "198.18.0.99"), "delivered");
    // The destination is not in that range, or another node is dialled.
    assert_eq!(again("10.1.1.128/25", "198.18.0.11"), "ambiguous");
    assert_eq!(again("10.1.0.0/16", "198.18.0.12"), "ambiguous");
}

#[test]
fn a_key_of_two_nodes_is_found_at_either() {
    let cloned = EAST_NODES.replace("key=B", "key=A");
    insta::assert_snapshot!(lab().later("east", &cloned).trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: west/m1 sends it to a key that east/n1 and east/n2 share: WireGuard uses the one that connected last
    ");
}

#[test]
fn a_route_that_is_refused_leaves_the_others_to_chance() {
    let bits = lab().edit(WEST_OF_EAST, "10.1.2.0/24", "10.1.2.1/24");
    insta::assert_snapshot!(bits.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: the kernel refuses the route 10.1.2.1/24 of the Peer m--east--n2: Kilo stops there, so other routes of west/m1 may be missing
      west/m--east.yaml#/spec/allowedIPs/0 the kernel refuses it
    ");
    insta::assert_snapshot!(bits.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    10.2.1.2 -> 10.1.1.2
    return-fails: the packet arrives, but the reply does not (ambiguous): the kernel refuses the route 10.1.2.1/24 of the Peer m--east--n2: Kilo stops there, so other routes of west/m1 may be missing
      west/m--east.yaml#/spec/allowedIPs/0 the kernel refuses it
    ");
}

#[test]
fn what_a_missing_route_would_spoil_is_chance_too() {
    let bits = || lab().edit(WEST_OF_EAST, "10.1.2.0/24", "10.1.2.1/24");
    insta::assert_snapshot!(bits().trace("east/n1", "west/m2"), @"
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 (by 10.2.2.0/24) to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
    ambiguous: the kernel refuses the route 10.1.2.1/24 of the Peer m--east--n2: Kilo stops there, so other routes of west/m1 may be missing
      west/m--east.yaml#/spec/allowedIPs/0 the kernel refuses it
    ");
    let stolen = bits().edit(
        WEST_OF_EAST,
        "  - \"10.1.1.0/24\"\n",
        "  - \"10.1.1.0/24\"\n  - \"10.2.1.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
    ambiguous: the kernel refuses the route 10.1.2.1/24 of the Peer m--east--n2: Kilo stops there, so other routes of west/m1 may be missing
      west/m--east.yaml#/spec/allowedIPs/0 the kernel refuses it
    ");
    let looped = bits().edit(
        WEST_OF_EAST,
        "  - \"10.1.1.0/24\"\n",
        "  - \"10.1.1.0/24\"\n  - \"198.18.0.11/32\"\n",
    );
    insta::assert_snapshot!(looped.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
    ambiguous: the kernel refuses the route 10.1.2.1/24 of the Peer m--east--n2: Kilo stops there, so other routes of west/m1 may be missing
      west/m--east.yaml#/spec/allowedIPs/0 the kernel refuses it
    ");
}

#[test]
fn a_node_that_kilo_does_not_count_has_no_tunnel() {
    let stale = EAST_NODES.replace("n1 ", "n1 stale ");
    let stale = lab().later("east", &stale);
    insta::assert_snapshot!(stale.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    not-ready: Kilo ignores east/n1: its agent stopped sending heartbeats
    ");
    insta::assert_snapshot!(stale.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
    not-ready: Kilo ignores east/n1: its agent stopped sending heartbeats
    ");
}

#[test]
fn an_answer_may_not_get_back() {
    let stolen = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"10.2.2.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
      east/n1 accepts source 10.2.2.2 from this key (by 10.2.2.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 (by 10.2.2.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
    return-fails: the packet arrives, but the reply does not (stolen-by): west/m1 routes 10.2.2.2 (by 10.2.2.0/25) to the Peer m--east--n2 (the key of east/n2) instead of west/m2
      west/m--east.yaml#/spec/allowedIPs/1 contains the destination
    ");
}

#[test]
fn what_the_receiver_is_connected_to_is_not_sent_on() {
    let wide = lab().add(
        "east",
        "wide",
        "allowedIPs: [192.168.0.0/16], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(wide.trace("west/m1", "192.168.1.77"), @"
    10.2.1.2 -> 192.168.1.77
      west/m1 routes 192.168.1.77 (by 192.168.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 forwards it to 192.168.1.77, outside the cluster
        if east/n1 has a route to 192.168.1.77
    192.168.1.77 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 192.168.1.77 from this key (by 192.168.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
    let narrow = lab().add(
        "east",
        "narrow",
        "allowedIPs: [192.168.1.64/26], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(narrow.trace("west/m1", "192.168.1.77"), @"
    10.2.1.2 -> 192.168.1.77
      west/m1 routes 192.168.1.77 (by 192.168.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
    stolen-by: east/n1 routes 192.168.1.77 (by 192.168.1.64/26) to the Peer narrow instead of east
      east/narrow.yaml#/spec/allowedIPs/0 contains the destination
    ");
}

#[test]
fn ends_without_a_way_are_none() {
    let lab = lab();
    let site = Site::new(
        &lab.meshes[0].entries[0],
        &lab.snapshots[&lab.meshes[0].entries[0].name].snapshot,
        &[],
    );
    let fabric = Fabric::new(vec![site]);
    let mut finder = EndFinder::new(&fabric);
    let mut text = String::new();
    for (end, class) in [
        ("n1", None),
        ("west/n1", None),
        ("east/n9", None),
        ("east/n1", Some(AddressClass::Service)),
        ("10.9.9.9", None),
        ("east/10.9.9.9", None),
    ] {
        writeln!(text, "{}", finder.find(end, class).unwrap_err()).unwrap();
    }
    let node = finder.find("east/n1", None).unwrap().end;
    let service = finder.find("10.11.0.1", None).unwrap().end;
    writeln!(text, "{}", fabric.trace(service, node).unwrap_err()).unwrap();
    writeln!(text, "{}", fabric.trace(node, service).unwrap_err()).unwrap();
    insta::assert_snapshot!(text, @"
    `n1` is neither a cluster, nor `CLUSTER/NODE`, nor an address
    unknown cluster `west`
    east has no node `n9`
    `east/n1` has no address for traffic of the class `service`
    10.9.9.9 belongs to no node and to no range of any cluster
    10.9.9.9 belongs to no node and to no range of east
    10.11.0.1 cannot be a source: it is not the address of a pod or a node
    both ends are in east; clustermesh does not check traffic within a cluster
    ");
}

/// `west` with the LAN of its nodes, and a Peer of its own with this range.
fn with_a_live_peer(range: &str) -> Lab {
    let west = format!("{WEST}, additionalCIDRs: [192.168.2.0/24]");
    let lab = Lab::new(&[("east", EAST, EAST_NODES), ("west", &west, WEST_NODES)]);
    let key = crate::testing::key("E");
    let spec = format!(
        "allowedIPs: ['{range}'], publicKey: {key}, endpoint: {{ dnsOrIP: {{ ip: 198.18.9.9 }}, port: 51820 }}"
    );
    lab.add("west", "laptop", &spec)
}

#[test]
fn a_peer_takes_the_lan_over_which_a_leader_reaches_the_others() {
    let lab = with_a_live_peer("192.168.2.0/24");
    insta::assert_snapshot!(lab.trace("east/n1", "west/192.168.2.2"), @"
    10.1.1.2 -> 192.168.2.2
      east/n1 routes 192.168.2.2 (by 192.168.2.2/32) to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
    stolen-by: west/m1 routes 192.168.2.2 (by 192.168.2.0/24) to the Peer laptop instead of west/m2
      west/laptop.yaml#/spec/allowedIPs/0 contains the destination
    ");
    let host = lab.trace_of("west/m2", "east/n1", Some(AddressClass::Node));
    insta::assert_snapshot!(host, @"
    192.168.2.2 -> 192.168.1.1
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 192.168.1.1 (by 192.168.1.1/32) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
      east/n1 accepts source 192.168.2.2 from this key (by 192.168.2.2/32)
      east/n1 delivers it to 192.168.1.1
    192.168.1.1 -> 192.168.2.2
      east/n1 routes 192.168.2.2 (by 192.168.2.2/32) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 192.168.1.1 from this key (by 192.168.1.1/32)
    return-fails: the packet arrives, but the reply does not (stolen-by): west/m1 routes 192.168.2.2 (by 192.168.2.0/24) to the Peer laptop instead of west/m2
      west/laptop.yaml#/spec/allowedIPs/0 contains the destination
    ");
    insta::assert_snapshot!(lab.trace("east/n1", "west/m2"), @"
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 (by 10.2.2.0/24) to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 forwards it to west/m2, which delivers it to the pod 10.2.2.2
        if Kilo does not encapsulate packets from west/m1 to west/m2 (`--encapsulate=never`), whose LAN the Peer laptop takes with 192.168.2.0/24
    10.2.2.2 -> 10.1.1.2
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      through the existing tunnel
      east/n1 accepts source 10.2.2.2 from this key (by 10.2.2.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    delivered: delivered in both directions
    ");
    // The leader needs no route to itself.
    let to_leader = lab.trace("east/n1", "west/192.168.2.1");
    assert!(to_leader.ends_with("delivered in both directions\n"), "{to_leader}");
}

#[test]
fn only_a_range_that_is_not_wider_takes_the_lan() {
    for (range, verdict) in [
        ("192.168.0.0/16", "delivered"),
        ("192.168.2.0/25", "stolen-by"),
        ("192.168.2.2/32", "stolen-by"),
        ("192.168.2.128/25", "delivered"),
    ] {
        let trace = with_a_live_peer(range).trace("east/n1", "west/192.168.2.2");
        let ending = trace.lines().find(|it| it.starts_with(verdict));
        assert!(ending.is_some(), "{range}: {trace}");
    }
}
