//! Subnets: has Kilo an address for every tunnel end?

use super::FULL_SUBNET;
use crate::analysis::inspected_cluster::InspectedCluster;
use crate::diagnostic::Label;
use crate::kilo::node::annotation;
use crate::net::Cidr;
use crate::rules::Finding;

/// Returns a finding about a cluster with more segments than addresses in its subnet.
pub(super) fn finding(inspected: &InspectedCluster) -> Option<Finding> {
    let (node, subnet) = inspected
        .all_nodes()
        .find_map(|(node, kilo)| Some((node, kilo.wireguard_ip()?.network)))?;
    let room = room(subnet)?;
    let segments = inspected.cluster().topology.segments.len();
    if segments <= room {
        return None;
    }
    let message =
        format!("Kilo's subnet {subnet} has addresses for only {room} of {segments} segments");
    let mut finding = Finding::on_cluster(&FULL_SUBNET, &inspected.member.entry.name, message);
    finding.labels.push(Label {
        place: inspected.annotation(node, annotation::WIREGUARD_IP),
        text: "has the length of the subnet".to_owned(),
    });
    finding.help = Some(
        "run all Kilo pods of the cluster with a larger `--subnet`, and declare the same range in \
         the mesh"
            .to_owned(),
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

    fn report_on(first: &str, second: &str) -> String {
        let node = |name: &str, number: u8, key: &str, wg: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} endpoint=198.18.0.{number}:51820 granularity=full wg={wg}\n"
            )
        };
        let nodes = node("a", 1, "A", first) + &node("b", 2, "B", second);
        report(
            super::super::findings,
            &[("east", "", &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn the_first_address_is_nobody_s() {
        insta::assert_snapshot!(report_on("10.101.0.1/31", ""), @"
        warning[full-subnet] east: Kilo's subnet 10.101.0.0/31 has addresses for only 1 of 2 segments
          east.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip has the length of the subnet
          help: run all Kilo pods of the cluster with a larger `--subnet`, and declare the same range in the mesh
        ");
        assert_eq!(report_on("10.101.0.1/30", "10.101.0.2/30"), "");
        assert_eq!(report_on("fd00::1/64", ""), "");
    }
}
