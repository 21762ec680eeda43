//! Subnets: has Kilo an address for every tunnel end?

use super::FULL_SUBNET;
use super::inspected_cluster::InspectedCluster;
use crate::kilo::node::{KiloNode, annotation};
use crate::net::Cidr;
use crate::rules::Finding;

/// Returns a finding about a cluster with more segments than addresses in its subnet.
pub(super) fn finding(inspected: &InspectedCluster) -> Option<Finding> {
    let topology = &inspected.cluster().topology;
    let subnet = topology.subnet?;
    let room = room(subnet)?;
    let segments = topology.segments.len();
    if segments <= room {
        return None;
    }
    let is_in = |kilo: &KiloNode| kilo.wireguard_ip().is_some_and(|it| it.network == subnet);
    let (node, _) = inspected.all_nodes().find(|it| is_in(it.1))?;
    let message =
        format!("Kilo's subnet {subnet} has addresses for only {room} of {segments} segments");
    let place = inspected.annotation(node, annotation::WIREGUARD_IP);
    let finding = Finding::on_cluster(&FULL_SUBNET, &inspected.member.entry.name, message)
        .at(place, "has the length of the subnet")
        .help(
            "run all Kilo pods of the cluster with a larger `--subnet`, and declare the same range in \
             the mesh",
        );
    Some(finding)
}

/// Returns how many addresses Kilo assigns: all but the first. `None` for more than any cluster
/// needs.
fn room(subnet: Cidr) -> Option<usize> {
    let bits = Cidr::host(subnet.first()).prefix_length() - subnet.prefix_length();
    let addresses = 1usize.checked_shl(u32::from(bits))?;
    Some(addresses - 1)
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    fn node(name: &str, number: u8, key: &str, wg: &str) -> String {
        format!(
            "{name} pod=10.1.{number}.0/24 key={key} endpoint=198.18.0.{number}:51820 granularity=full wg={wg}\n"
        )
    }

    fn report_on(nodes: &str) -> String {
        report(
            super::super::tests::findings,
            &[("east", "", nodes), ("west", "granularity: Full", "")],
        )
    }

    fn of_two(first: &str, second: &str) -> String {
        report_on(&(node("a", 1, "A", first) + &node("b", 2, "B", second)))
    }

    #[test]
    fn the_first_address_is_nobody_s() {
        insta::assert_snapshot!(of_two("10.101.0.1/31", ""), @"
        warning[full-subnet] east: Kilo's subnet 10.101.0.0/31 has addresses for only 1 of 2 segments
          east.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip has the length of the subnet
          help: run all Kilo pods of the cluster with a larger `--subnet`, and declare the same range in the mesh
        ");
        assert_eq!(of_two("10.101.0.1/30", "10.101.0.2/30"), "");
        assert_eq!(of_two("fd00::1/64", ""), "");
    }

    #[test]
    fn addresses_without_the_length_of_the_subnet_do_not_count() {
        assert_eq!(of_two("10.101.0.1/32", "10.101.0.2/32"), "");
        assert_eq!(of_two("10.101.0.1/32", "10.101.0.2/24"), "");
        assert_eq!(of_two("fd00::1/128", "fd00::2/128"), "");
    }

    #[test]
    fn one_node_does_not_decide() {
        let wide = node("b", 2, "B", "10.101.0.2/24") + &node("c", 3, "C", "10.101.0.3/24");
        assert_eq!(report_on(&(node("a", 1, "A", "10.101.0.1/31") + &wide)), "");
        let narrow = wide.replace("/24\n", "/31\n");
        let found = report_on(&(node("a", 1, "A", "10.101.0.1/24") + &narrow));
        assert!(found.contains("10.101.0.2/31 has addresses for only 1 of 3"), "{found}");
    }
}
