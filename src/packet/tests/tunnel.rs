//! Packets between two ends of a tunnel.

use crate::testing::lab::{EAST_NODES, EAST_OF_WEST, Lab, WEST_NODES, WEST_OF_EAST, lab};

#[test]
fn the_other_side_does_not_know_the_sender() {
    let mut one_sided = lab();
    one_sided.files.remove(EAST_OF_WEST);
    insta::assert_snapshot!(one_sided.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    not-accepted: east/n1 rejects west/m1: no Peer of east has its key
    ");
}

#[test]
fn the_key_is_of_one_who_does_not_lead() {
    let nodes = WEST_NODES.replace("wg=10.102.0.1/24", "").replace(
        "endpoint=192.168.2.2:51820",
        "endpoint=198.18.0.22:51820 leader= wg=10.102.0.1/24",
    );
    insta::assert_snapshot!(lab().later("west", &nodes).trace("east/n1", "west/m2"), @"
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 (by 10.2.2.0/24) to the Peer m--west--m1, the key of west/m1
    not-accepted: west/m1 does not listen because it is not the leader of its location; west/m2 is its leader
    ");
}

#[test]
fn the_two_have_different_secrets() {
    let secret = format!("  presharedKey: {}\n  publicKey", crate::testing::key("B"));
    let secret = lab().edit(EAST_OF_WEST, "  publicKey", &secret);
    insta::assert_snapshot!(secret.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    not-accepted: east/n1 and west/m1 have different pre-shared keys for each other
      east/m--west.yaml#/spec/presharedKey differs from the other side
    ");
}

/// Takes the endpoint out of Peers.
fn without_endpoint(lab: Lab, path: &str, address: &str) -> Lab {
    let endpoint = format!("  endpoint:\n    dnsOrIP:\n      ip: \"{address}\"\n    port: 51820\n");
    lab.edit(path, &endpoint, "")
}

#[test]
fn nobody_can_dial_the_other() {
    let west = || without_endpoint(lab(), WEST_OF_EAST, "198.18.0.11");
    let mute = without_endpoint(west(), EAST_OF_WEST, "198.18.0.21");
    insta::assert_snapshot!(mute.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    no-initiator: west/m1 and east/n1 cannot dial each other: the Peer m--east--n1 has no endpoint, and the Peer m--west--m1 has no endpoint
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
    let quiet = west().trace("west/m1", "east/n1");
    insta::assert_snapshot!(quiet, @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    no-initiator: nothing gets from west/m1 to east/n1 until east/n1 has sent something: west/m1 cannot dial it (the Peer m--east--n1 has no endpoint), and east/n1 sends no keepalives because it has no annotation `kilo.squat.ai/persistent-keepalive`
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
    insta::assert_snapshot!(west().trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
    flapping: Kilo on west/m1 cuts the tunnel with east/n1 twice a minute: the Peer m--east--n1 has no endpoint, and Kilo restores this each time because the Peer has no `persistentKeepalive`
      west/m--east.yaml#/spec/endpoint differs from its current address
    ");
    let nodes = EAST_NODES.replace("key=A", "key=A persistent-keepalive=25");
    let expected = "  persistentKeepalive: 25\n  publicKey";
    let expected = west().edit(WEST_OF_EAST, "  publicKey", expected);
    let loud = expected.later("east", &nodes).trace("west/m1", "east/n1");
    insta::assert_snapshot!(loud, @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
}

#[test]
fn whoever_dials_must_have_an_address_of_the_family() {
    let v6 = || lab().edit(WEST_OF_EAST, "198.18.0.11", "2001:db8::11");
    let nodes = EAST_NODES.replace("key=A", "key=A clustermesh-endpoint=[2001:db8::11]:51820");
    let assumed = v6().later("east", &nodes).trace("west/m1", "east/n1");
    insta::assert_snapshot!(assumed, @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials [2001:db8::11]:51820 to open the tunnel
        if west/m1 has an IPv6 address (not in its snapshot) from which it can dial [2001:db8::11]:51820 of the Peer m--east--n1
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
    // The other side calls, and is expected to.
    let expected = "  persistentKeepalive: 25\n  publicKey";
    let expected = v6().edit(WEST_OF_EAST, "  publicKey", expected);
    let nodes = nodes.replace("key=A", "key=A persistent-keepalive=25");
    let loud = expected.later("east", &nodes).trace("west/m1", "east/n1");
    assert!(!loud.contains("must have"), "{loud}");
}

#[test]
fn an_endpoint_of_somebody_else_is_no_door() {
    let wrong = lab().edit(WEST_OF_EAST, "198.18.0.11", "198.18.0.12");
    insta::assert_snapshot!(wrong.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    no-initiator: nothing gets from west/m1 to east/n1 until east/n1 has sent something: west/m1 cannot dial it (198.18.0.12:51820 in the Peer m--east--n1 is not an address of east/n1), and east/n1 sends no keepalives because it has no annotation `kilo.squat.ai/persistent-keepalive`
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
}

#[test]
fn what_is_not_known_is_assumed_and_told() {
    let balancer = lab().edit(WEST_OF_EAST, "ip: \"198.18.0.11\"", "ip: \"198.18.9.9\"");
    insta::assert_snapshot!(balancer.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.9.9:51820 to open the tunnel
        if 198.18.9.9:51820 of the Peer m--east--n1, which is not the address of any node, leads to the other side, for example through a load balancer or NAT
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
    let name = lab().edit(WEST_OF_EAST, "ip: \"198.18.0.11\"", "dns: wg.example.com");
    insta::assert_snapshot!(name.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials wg.example.com:51820 to open the tunnel
        if `wg.example.com` resolves on every node of west: Kilo applies no changes on nodes that cannot resolve it
        if wg.example.com:51820 of the Peer m--east--n1 leads to the other side: `endpointDomains` does not list this whole name
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
}

#[test]
fn the_carrier_goes_into_the_tunnel_again() {
    let looped = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"198.18.0.11/32\"\n",
    );
    insta::assert_snapshot!(looped.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    loops: west/m1 would send encrypted packets to 198.18.0.11:51820, the endpoint of the Peer m--east--n1, which is in 198.18.0.11/32 of the Peer m--east--n2, so they would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/1 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}

#[test]
fn an_answer_to_a_caller_goes_into_the_tunnel_again() {
    let held = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"198.18.0.0/24\"\n",
    );
    let held = without_endpoint(held, WEST_OF_EAST, "198.18.0.11");
    let nodes = EAST_NODES.replace("key=A", "key=A persistent-keepalive=25");
    let loud = held.later("east", &nodes);
    insta::assert_snapshot!(loud.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    loops: west/m1 cannot dial east/n1 (the Peer m--east--n1 has no endpoint) and would answer it at 198.18.0.11, which is in 198.18.0.0/24 of the Peer m--east--n2, so the answers would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/1 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
    insta::assert_snapshot!(loud.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
    loops: west/m1 cannot dial east/n1 (the Peer m--east--n1 has no endpoint) and would answer it at 198.18.0.11, which is in 198.18.0.0/24 of the Peer m--east--n2, so the answers would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/1 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}
