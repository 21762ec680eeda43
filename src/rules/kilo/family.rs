//! Families: are the addresses that Kilo routes between, and through, of one kind?

use std::collections::BTreeSet;

use super::{DIFFERENT_FAMILIES, MISMATCHED_SUBNET};
use crate::analysis::inspected_cluster::InspectedCluster;
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::{KiloNode, annotation};
use crate::name::ClusterName;
use crate::net::{Family, Interface, family};
use crate::rules::{Finding, bare};
use crate::snapshot::Node;
use crate::text::listed;

/// Returns a finding about nodes whose WireGuard address is of another family than their internal IP.
pub(super) fn of_subnet(inspected: &InspectedCluster) -> Option<Finding> {
    let is_split = |(node, kilo): &(&Node, &KiloNode)| {
        let families = wireguard(node).zip(kilo.internal_address().map(family));
        families.is_some_and(|(wireguard, internal)| wireguard != internal)
    };
    let nodes: Vec<(&Node, &KiloNode)> = inspected.nodes().filter(is_split).collect();
    let &(first, kilo) = nodes.first()?;
    let (wireguard, internal) = (wireguard(first)?, kilo.internal_address().map(family)?);
    let (whose, theirs) = match nodes.len() {
        1 => (
            format!("the WireGuard address of {} is", bare(&first.name)),
            "its internal IP is",
        ),
        count => (
            format!("the WireGuard addresses of {count} nodes are"),
            "their internal IPs are",
        ),
    };
    let message = format!(
        "{whose} {wireguard}, but {theirs} {internal}: the kernel refuses Kilo's routes between \
         its own nodes, and other routes may be missing"
    );
    let example = match internal {
        Family::V4 => "10.4.0.0/16",
        Family::V6 => "fd00:10:4::/112",
    };
    let finding = Finding::on_cluster(&MISMATCHED_SUBNET, &inspected.member.entry.name, message);
    let place = inspected.annotation(first, annotation::WIREGUARD_IP);
    Some(finding.at(place, "").help(format!(
        "run all Kilo pods of the cluster with an {internal} subnet, such as `--subnet {example}`, \
         and declare the same range in the mesh"
    )))
}

/// Returns a finding about linked clusters whose Kilo routes only the other family. It is about the
/// cluster that routes IPv6.
pub(super) fn of_partners(fleet: &Fleet, inspected: &InspectedCluster) -> Option<Finding> {
    let name = &inspected.member.entry.name;
    let routed = |cluster: &ClusterName| fleet.family(cluster);
    if routed(name) != Some(Family::V6) {
        return None;
    }
    let mut partners: Vec<&ClusterName> = fleet
        .memberships(name)
        .flat_map(Member::targets)
        .filter(|it| routed(it) == Some(Family::V4))
        .collect();
    partners.sort();
    partners.dedup();
    let plural = partners.len();
    let first = partners.first()?;
    let member = fleet.memberships(first).next()?;
    let partners = listed(partners.iter());
    let route = if plural == 1 { "routes" } else { "route" };
    let message = format!(
        "Kilo routes only IPv6 here, and {partners} {route} only IPv4: no packet between them gets \
         a reply"
    );
    let finding = Finding::on_cluster(&DIFFERENT_FAMILIES, name, message);
    Some(
        finding
            .at(inspected.member.entry.place.key("name"), "routes IPv6")
            .at(member.entry.place.key("name"), "routes IPv4")
            .help(
                "annotate all nodes of one cluster with `kilo.squat.ai/force-internal-ip` and an \
                 address of the other family, then take a new snapshot",
            ),
    )
}

/// Returns the finding of [`of_partners`] as the cause of something else, if it separates a cluster from all
/// clusters that it is linked to.
pub(in crate::rules) fn separation(fleet: &Fleet, cluster: &ClusterName) -> Option<FindingCause> {
    let partners = fleet.memberships(cluster).flat_map(Member::targets);
    let partners: BTreeSet<&ClusterName> = partners.collect();
    let has_nodes = |it: &ClusterName| {
        let mut memberships = fleet.memberships(it);
        memberships.any(|it| !it.membership.candidates.is_empty())
    };
    let own = fleet.family(cluster).filter(|_| has_nodes(cluster))?;
    let is_other =
        |it: &&ClusterName| has_nodes(it) && fleet.family(it).is_some_and(|family| family != own);
    // It is about the cluster that routes IPv6.
    let six = match own {
        Family::V6 => cluster,
        Family::V4 => partners.first()?,
    };
    let is_alone = !partners.is_empty() && partners.iter().all(is_other);
    is_alone.then(|| FindingCause {
        rule: &DIFFERENT_FAMILIES,
        cluster: Some(six.to_string()),
        node: None,
    })
}

/// Returns the family of the WireGuard address that Kilo gave to a node.
fn wireguard(node: &Node) -> Option<Family> {
    let text = node.annotations.get(annotation::WIREGUARD_IP)?;
    let interface: Interface = text.parse().ok()?;
    Some(interface.network.family())
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const WEST: &str = "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2 internal-ip=10.2.200.1/24";

    fn report_on(fields: &str, nodes: &str) -> String {
        let clusters = [("east", fields, nodes), ("west", "", WEST)];
        let report = report(super::super::findings, &clusters);
        let lines = report.lines();
        let meant = lines
            .filter(|it| it.contains("[mismatched-subnet]") || it.contains("[different-families]"));
        meant.collect::<Vec<_>>().join("\n")
    }

    const DUAL: &str = "podCIDRs: ['fd00:1::/48', 10.1.0.0/16], wireguardCIDR: 10.101.0.0/24";

    fn node(number: u8, wireguard: &str, internal: &str) -> String {
        let key = ["A", "C"][usize::from(number)];
        format!(
            "n{number} pod=fd00:1:0:{number}::/64 key={key} granularity=full external=198.18.1.{number} wg={wireguard} internal-ip={internal}\n"
        )
    }

    #[test]
    fn an_ipv6_node_in_an_ipv4_subnet_is_reported() {
        let one = node(0, "10.101.0.1/24", "fd00:9::1/64");
        insta::assert_snapshot!(report_on(DUAL, &one), @"
        warning[mismatched-subnet] east: the WireGuard address of n0 is IPv4, but its internal IP is IPv6: the kernel refuses Kilo's routes between its own nodes, and other routes may be missing
        warning[different-families] east: Kilo routes only IPv6 here, and west routes only IPv4: no packet between them gets a reply
        ");
        let two = one.clone() + &node(1, "10.101.0.2/24", "fd00:9::2/64");
        insta::assert_snapshot!(report_on(DUAL, &two), @"
        warning[mismatched-subnet] east: the WireGuard addresses of 2 nodes are IPv4, but their internal IPs are IPv6: the kernel refuses Kilo's routes between its own nodes, and other routes may be missing
        warning[different-families] east: Kilo routes only IPv6 here, and west routes only IPv4: no packet between them gets a reply
        ");
    }

    #[test]
    fn one_family_for_everything_is_quiet_about_the_subnet() {
        let fields = "podCIDRs: ['fd00:1::/48'], wireguardCIDR: 'fd00:10:4::/112'";
        let six = node(0, "fd00:10:4::1/112", "fd00:9::1/64");
        insta::assert_snapshot!(report_on(fields, &six), @"warning[different-families] east: Kilo routes only IPv6 here, and west routes only IPv4: no packet between them gets a reply");
        let four = WEST
            .replace("10.2.", "10.1.")
            .replace("10.102", "10.101")
            .replace("key=B", "key=A");
        assert_eq!(report_on("", &four), "");
    }
}
