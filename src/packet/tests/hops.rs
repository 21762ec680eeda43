//! Packets between the leader of a location and its other nodes, by the addresses that these report.

use crate::mesh::AddressClass;
use crate::testing::lab::{EAST, EAST_NODES, Lab};

const WEST: &str = "podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24, granularity: Location, \
                    additionalCIDRs: [192.168.2.0/24]";

/// Returns the verdicts about packets to a node and back, given pod CIDR, internal address and location of each node.
fn verdicts(nodes: &[[&str; 3]], to: &str, class: AddressClass) -> Vec<String> {
    let keys = ["C", "D", "E", "JCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQ="];
    let mut seen: Vec<&str> = Vec::new();
    let lines = nodes.iter().zip(keys).zip(1..).map(|(([pods, internal, location], key), number)| {
        let wireguard = if seen.contains(location) {
            String::new()
        } else {
            seen.push(location);
            format!("wg=10.102.0.{}/24", seen.len())
        };
        format!(
            "m{number} pod={pods} internal-ip={internal}/24 location={location} key={key} {wireguard} granularity=location \
             external=198.18.0.2{number} endpoint=198.18.0.2{number}:51820\n"
        )
    });
    let lines: String = lines.collect();
    let lab = Lab::new(&[("east", EAST, EAST_NODES), ("west", WEST, &lines)]);
    let verdict = |from: &str, to: &str| {
        let text = lab.trace_of(from, to, Some(class));
        text.lines().find(|it| !it.starts_with(' ') && it.contains(": ")).unwrap().to_owned()
    };
    vec![verdict("east/n1", to), verdict(to, "east/n1")]
}

fn pods(nodes: &[[&str; 3]], to: &str) -> Vec<String> {
    verdicts(nodes, to, AddressClass::Pod)
}

const LEADER: [&str; 3] = ["10.2.1.0/24", "192.168.2.1", "a"];
const MEMBER: [&str; 3] = ["10.2.2.0/24", "192.168.2.2", "a"];
const DELIVERED: &str = "delivered: delivered in both directions";

fn with<'a>([pods, internal, location]: [&'a str; 3], part: usize, value: &'a str) -> [&'a str; 3] {
    let mut parts = [pods, internal, location];
    parts[part] = value;
    parts
}

#[test]
fn addresses_of_their_own_are_reached() {
    let nodes = [LEADER, MEMBER, ["10.2.3.0/24", "192.168.2.3", "a"]];
    assert_eq!(pods(&nodes, "west/m3"), [DELIVERED; 2]);
    assert_eq!(verdicts(&nodes, "west/m3", AddressClass::Node), [DELIVERED; 2]);
}

#[test]
fn the_internal_address_of_the_leader_has_no_route() {
    let nodes = [LEADER, with(MEMBER, 1, "192.168.2.1")];
    insta::assert_snapshot!(pods(&nodes, "west/m2").join("\n"), @"
    no-route: west/m1 has no route to west/m2: both have the internal address 192.168.2.1
    no-route: west/m2 has no route to west/m1: both have the internal address 192.168.2.1
    ");
    assert_eq!(pods(&nodes, "west/m1"), [DELIVERED; 2]);
}

#[test]
fn two_nodes_with_one_internal_address_are_ambiguous() {
    for location in ["a", "b"] {
        let other = ["10.2.3.0/24", "192.168.2.2", location];
        let verdicts = pods(&[LEADER, MEMBER, other], "west/m2");
        assert_eq!(
            verdicts[0],
            "ambiguous: west/m1 reaches only one of the nodes with the internal address 192.168.2.2: west/m2, west/m3"
        );
        assert!(verdicts[1].starts_with("return-fails: "), "{}", verdicts[1]);
    }
    // The gateway of the members is the address of their leader.
    let other = ["10.2.3.0/24", "192.168.2.1", "b"];
    let nodes = [LEADER, MEMBER, other];
    let [there, back] = &*pods(&nodes, "west/m2") else { panic!() };
    assert!(there.starts_with("return-fails: "), "{there}");
    assert_eq!(
        back,
        "ambiguous: west/m2 reaches only one of the nodes with the internal address 192.168.2.1: west/m1, west/m3"
    );
    assert_eq!(pods(&nodes, "west/m1"), [DELIVERED; 2]);
    assert_eq!(pods(&nodes, "west/m3"), [DELIVERED; 2]);
}

#[test]
fn the_narrower_pod_cidr_takes_packets_and_equal_ones_are_ambiguous() {
    let equal = [LEADER, MEMBER, ["10.2.2.0/24", "192.168.2.3", "a"]];
    assert_eq!(
        pods(&equal, "west/m3")[0],
        "ambiguous: west/m1 reaches only one of the nodes with the pod CIDR 10.2.2.0/24: west/m2, west/m3"
    );
    let nested = [LEADER, MEMBER, ["10.2.2.0/25", "192.168.2.3", "a"]];
    assert_eq!(
        pods(&nested, "west/m2")[0],
        "stolen-by: west/m1 routes 10.2.2.0/25 to west/m3 of the same location, although it is inside the pod CIDR of west/m2"
    );
    assert_eq!(pods(&nested, "west/m3"), [DELIVERED; 2]);
    let of_leader = [LEADER, with(MEMBER, 0, "10.2.1.0/24")];
    assert!(pods(&of_leader, "west/m1")[0].starts_with("ambiguous: "));
}
