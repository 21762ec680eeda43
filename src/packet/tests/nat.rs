//! Packets to and from nodes behind NAT whose own LAN is among the ranges of Peers.

use crate::mesh::AddressClass;
use crate::testing::lab::{EAST, Lab, WEST};

/// A node behind NAT, and one that others can dial.
const ROAMING: &str = "
n1 pod=10.1.1.0/24 endpoint=192.168.1.1:51820 internal-ip=192.168.1.1/24 key=A wg=10.101.0.1/24 granularity=full persistent-keepalive=25
n2 pod=10.1.2.0/24 external=198.18.0.12 endpoint=198.18.0.12:51820 internal-ip=192.168.1.2/24 key=B wg=10.101.0.2/24 granularity=full persistent-keepalive=25
";

const DIALLED: &str = "
m1 pod=10.2.1.0/24 external=198.18.0.21 endpoint=198.18.0.21:51820 internal-ip=192.168.2.1/24 key=C wg=10.102.0.1/24 location=a granularity=location
m2 pod=10.2.2.0/24 external=198.18.0.22 endpoint=198.18.0.22:51820 internal-ip=192.168.2.2/24 key=JCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQ= wg=10.102.0.2/24 location=b granularity=location
";

/// Two clusters, with these nodes of the one that is behind NAT and of the other one.
fn lab(roaming: &str, dialled: &str) -> Lab {
    let fields = format!("{EAST}, persistentKeepalive: 25");
    Lab::new(&[("east", &fields, roaming), ("west", WEST, dialled)])
}

/// Returns the results of packets between two nodes, in each direction.
fn endings(lab: &Lab, from: &str, to: &str, class: AddressClass) -> [String; 2] {
    [(from, to), (to, from)].map(|(from, to)| {
        let text = lab.trace_of(from, to, Some(class));
        let ending = text.lines().find(|it| !it.starts_with(' ') && it.contains(": "));
        ending.unwrap().split(':').next().unwrap().to_owned()
    })
}

#[test]
fn a_private_endpoint_in_a_range_is_not_where_a_node_is_seen() {
    let lab = lab(ROAMING, DIALLED);
    assert!(lab.files["west/m--east.yaml"].contains("192.168.1.1/32"));
    for (from, to) in [("east/n1", "west/m1"), ("east/n1", "west/m2")] {
        let ends = endings(&lab, from, to, AddressClass::Pod);
        assert_eq!(ends, ["delivered", "delivered"], "{from} {to}");
    }
    insta::assert_snapshot!(lab.trace("west/m1", "east/192.168.1.1"), @"
    10.2.1.2 -> 192.168.1.1
      west/m1 routes 192.168.1.1 (by 192.168.1.1/32) to the Peer m--east--n1, the key of east/n1
      east/n1 dials 198.18.0.21:51820 to open the tunnel
      east/n1 accepts source 10.2.1.2 from this key (by 10.2.1.0/24)
      east/n1 delivers it to 192.168.1.1
    192.168.1.1 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
      through the existing tunnel
      west/m1 accepts source 192.168.1.1 from this key (by 192.168.1.1/32)
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered in both directions
    ");
}

#[test]
fn on_the_lan_of_a_node_its_private_endpoint_is_where_it_is_seen() {
    let on_lan = DIALLED.replace("192.168.2.1/24", "192.168.1.21/24");
    let lab = lab(ROAMING, DIALLED).later("west", &on_lan);
    let ends = endings(&lab, "west/m2", "east/n1", AddressClass::Pod);
    assert_eq!(ends, ["delivered", "delivered"]);
    insta::assert_snapshot!(lab.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    loops: west/m1 cannot dial east/n1 (192.0.2.1:9 of the Peer m--east--n1 is the placeholder for nodes without an endpoint) and would answer it at 192.168.1.1, which is in 192.168.1.1/32 of the Peer m--east--n1, so the answers would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/2 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
    insta::assert_snapshot!(lab.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 (by 10.2.1.0/24) to the Peer m--west--m1, the key of west/m1
    loops: west/m1 cannot dial east/n1 (192.0.2.1:9 of the Peer m--east--n1 is the placeholder for nodes without an endpoint) and would answer it at 192.168.1.1, which is in 192.168.1.1/32 of the Peer m--east--n1, so the answers would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/2 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}

/// A route to a wider range than that of the LAN takes nothing from it.
#[test]
fn on_the_lan_of_a_node_a_wider_range_is_no_loop() {
    let on_lan = DIALLED.replace("192.168.2.1/24", "192.168.1.21/24");
    let lab = lab(ROAMING, DIALLED).later("west", &on_lan);
    let without_lan = lab.edit("west/m--east.yaml", "  - \"192.168.1.0/24\"\n", "");
    let wider = without_lan.edit("west/m--east.yaml", "192.168.1.1/32", "192.168.0.0/16");
    let ends = endings(&wider, "west/m1", "east/n1", AddressClass::Pod);
    assert_eq!(ends, ["delivered", "delivered"]);
}

#[test]
fn a_public_endpoint_is_where_a_node_is_seen_although_the_entry_does_not_name_it() {
    let public = ROAMING.replace("endpoint=192.168.1.1:", "endpoint=198.18.7.1:");
    let lab = lab(ROAMING, DIALLED).later("east", &public);
    let lab = lab.edit("west/m--east.yaml", "192.168.1.1/32", "198.18.7.0/24");
    insta::assert_snapshot!(lab.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
    loops: west/m1 cannot dial east/n1 (192.0.2.1:9 of the Peer m--east--n1 is the placeholder for nodes without an endpoint) and would answer it at 198.18.7.1, which is in 198.18.7.0/24 of the Peer m--east--n1, so the answers would loop into the tunnel
      west/m--east.yaml#/spec/allowedIPs/2 contains the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}
