//! Decisions where a packet is sent.

use crate::testing::lab::{EAST, EAST_NODES, Lab, WEST, WEST_NODES, WEST_OF_EAST, lab};

#[test]
fn nothing_takes_it() {
    let cut = lab().edit(WEST_OF_EAST, "  - \"10.1.1.0/24\"\n", "");
    insta::assert_snapshot!(cut.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    no-route: no Peer of west contains 10.1.1.2: it is missing from the Peer m--east--n1 of east/n1
      west/m--east.yaml#/spec/allowedIPs lacks the address
    ");
    let mut none = lab();
    none.files.remove(WEST_OF_EAST);
    insta::assert_snapshot!(none.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    no-route: west has no Peers
    ");
}

#[test]
fn the_cluster_has_the_address_itself() {
    let twin = WEST_NODES.replace("10.2.1.0/24", "10.1.1.0/24");
    let twin = lab().later("west", &twin);
    insta::assert_snapshot!(twin.trace("west/m1", "east/10.1.1.2"), @"
    10.1.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
    source-rejected: east/n1 drops it: the Peer m--west--m1 of west/m1 does not contain the source 10.1.1.2
      east/m--west.yaml#/spec/allowedIPs lacks the address
    ");
    insta::assert_snapshot!(twin.trace("west/m2", "east/10.1.1.2"), @"
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
fn what_a_mate_has_is_not_sent_to_another_cluster() {
    let narrow = WEST_NODES.replace("10.2.2.0/24", "10.1.1.0/25");
    let narrow = lab().later("west", &narrow);
    insta::assert_snapshot!(narrow.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
    local-shadow: west/m1 is itself connected to 10.1.1.0/25, which contains 10.1.1.2, and does not send the packet through a tunnel
      mesh.yaml#/spec/clusters/1 also uses the address
    ");
    let same = WEST_NODES.replace("10.2.2.0/24", "10.1.1.0/24");
    let same = lab().later("west", &same);
    insta::assert_snapshot!(same.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: 10.1.1.0/24 on west/m1 belongs to the location that west/m1 leads or the Peer m--east--n1, depending on which was applied last
      west/m--east.yaml#/spec/allowedIPs/0 claims the range
    ");
    let wide = WEST_NODES.replace("10.2.2.0/24", "10.1.0.0/16");
    let wide = lab().later("west", &wide);
    insta::assert_snapshot!(wide.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820 to open the tunnel
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
fn services_of_its_own_are_not_sent_to_another_cluster() {
    let west = WEST.replace("granularity", "serviceCIDR: 10.11.0.0/16, granularity");
    let east = EAST.replace("serviceCIDR: 10.11.0.0/16, ", "");
    let mut other = Lab::new(&[("west", &west, WEST_NODES), ("east", &east, EAST_NODES)]);
    let mut twin = lab();
    twin.meshes[0].entries[1] = other.meshes[0].entries.remove(0);
    insta::assert_snapshot!(twin.trace("west/m1", "east/10.11.0.10"), @"
    10.2.1.2 -> 10.11.0.10
    local-shadow: 10.11.0.10 is also a service address of west, so the packet does not leave west/m1
      mesh.yaml#/spec/clusters/0/serviceCIDR also uses the address
    ");
}

#[test]
fn an_address_of_the_node_itself_is_never_routed() {
    let twin = WEST_NODES.replace("192.168.2.1/24", "192.168.1.1/24");
    let twin = lab().later("west", &twin);
    insta::assert_snapshot!(twin.trace("west/m1", "east/192.168.1.1"), @"
    10.2.1.2 -> 192.168.1.1
    local-shadow: west/m1 is itself connected to 192.168.1.1/32, which contains 192.168.1.1, and does not send the packet through a tunnel
      mesh.yaml#/spec/clusters/1 also uses the address
    ");
}

#[test]
fn somebody_else_takes_it() {
    let stolen = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"10.1.1.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    stolen-by: west/m1 routes 10.1.1.2 (by 10.1.1.0/25) to the Peer m--east--n2 (the key of east/n2) instead of east/n1
      west/m--east.yaml#/spec/allowedIPs/1 contains the destination
    ");
}

#[test]
fn nobody_has_the_key() {
    let rekeyed = EAST_NODES.replace("key=A", "key=RUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUU=");
    insta::assert_snapshot!(lab().later("east", &rekeyed).trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    unknown-key: west/m1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer m--east--n1, whose key belongs to no node
      west/m--east.yaml#/spec/publicKey no node has this key
    ");
}
