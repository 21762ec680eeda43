//! Packets that arrive, and whose answers arrive.

use crate::mesh::AddressClass;
use crate::testing::lab::lab;

#[test]
fn a_pod_gets_to_a_pod_through_the_leaders() {
    insta::assert_snapshot!(lab().trace("west/m2", "east/n1"), @"
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
      west/m1 forwards it to west/m2, which delivers it to the pod 10.2.2.2
    delivered: delivered in both directions
    ");
}

#[test]
fn a_node_gets_to_a_node_where_its_address_is_declared() {
    let trace = lab().trace_of("east/n2", "west/m1", Some(AddressClass::Node));
    insta::assert_snapshot!(trace, @"
    192.168.1.2 -> 192.168.2.1
    no-route: no Peer of east contains 192.168.2.1: it is missing from the Peer m--west--m1 of west/m1
      east/m--west.yaml#/spec/allowedIPs lacks the address
    ");
    let trace = lab().trace("west/m2", "192.168.1.2");
    insta::assert_snapshot!(trace, @"
    10.2.2.2 -> 192.168.1.2
      west/m2 forwards it to west/m1, the leader of its location
      west/m1 routes 192.168.1.2 (by 192.168.1.2/32) to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820 to open the tunnel
      east/n2 accepts source 10.2.2.2 from this key (by 10.2.2.0/24)
      east/n2 delivers it to 192.168.1.2
    192.168.1.2 -> 10.2.2.2
      east/n2 routes 10.2.2.2 (by 10.2.2.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 192.168.1.2 from this key (by 192.168.1.2/32)
      west/m1 forwards it to west/m2, which delivers it to the pod 10.2.2.2
    delivered: delivered in both directions
    ");
}

#[test]
fn a_service_is_behind_its_anchor() {
    insta::assert_snapshot!(lab().trace("west/m1", "10.11.0.10"), @"
    10.2.1.2 -> 10.11.0.10
      west/m1 routes 10.11.0.10 (by 10.11.0.0/16) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 replaces the service address 10.11.0.10 with a backend
        if east/n1 is the only entry point to the services of its cluster, and its proxy masquerades outside callers so that replies return through it
    10.11.0.10 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 10.11.0.10 from this key (by 10.11.0.0/16)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
}

#[test]
fn a_network_is_behind_its_anchor() {
    insta::assert_snapshot!(lab().trace("west/m1", "192.168.1.77"), @"
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
}
