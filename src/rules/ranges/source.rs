//! Source addresses of nodes that their cluster does not advertise.

use super::UNADVERTISED_SOURCE;
use crate::fleet::Member;
use crate::mesh::WireguardAddresses;
use crate::rules::{Finding, bare};
use crate::text::{count, listed};

/// Returns a finding about nodes without an internal address: they send from their address in Kilo's subnet
/// (`kilo.md` §6.3).
pub(super) fn finding(member: &Member) -> Option<Finding> {
    let entry = member.entry;
    if entry.advertise.wireguard != WireguardAddresses::None {
        return None;
    }
    let nodes = member.cluster.nodes.iter();
    let without = nodes.filter(|it| {
        member.membership.usable.contains(&it.node.name) && it.kilo.internal_address().is_none()
    });
    let names: Vec<_> = without.map(|it| bare(&it.node.name)).collect();
    if names.is_empty() {
        return None;
    }
    let message = format!(
        "other clusters drop packets from {} without an internal IP ({}), because no WireGuard address is \
         advertised",
        count(names.len(), "node"),
        listed(names.iter())
    );
    let place = entry.place.key("advertise").key("wireguardAddresses");
    let finding = Finding::on_cluster(&UNADVERTISED_SOURCE, &entry.name, message).at(place, "");
    Some(finding.help(
        "write `wireguardAddresses: PerNode`, or annotate each of these nodes with `kilo.squat.ai/force-internal-ip`",
    ))
}

#[cfg(test)]
mod tests {
    use crate::testing::{findings, mesh_of};

    #[test]
    fn only_nodes_without_an_internal_address_are_reported() {
        let report = |advertise: &str| {
            let a = format!(
                "name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, advertise: {{ {advertise} }}"
            );
            let b = "name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24";
            let nodes = "
n1 pod=10.1.1.0/24 wg=10.101.0.1/16 key=A external=198.18.113.1 endpoint=198.18.113.1:51820 location=x
n2 pod=10.1.2.0/24 wg=10.101.0.2/16 key=B external=198.18.113.2 endpoint=198.18.113.2:51820 location=y internal-ip=192.168.0.2/24";
            let other = "n pod=10.2.1.0/24 wg=10.102.0.1/16 key=C external=198.18.113.3 endpoint=198.18.113.3:51820 location=z";
            let found = findings(&mesh_of("m", &[&a, b]), &[("a", nodes), ("b", other)]);
            let lines = found
                .lines()
                .filter(|it| it.contains("unadvertised-source"));
            lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(report("wireguardAddresses: None"), @"
        warning[unadvertised-source] a: other clusters drop packets from 1 node without an internal IP (n1), because no WireGuard address is advertised
        ");
        assert_eq!(report("wireguardAddresses: Carrier"), "");
        assert_eq!(report("nodeAddresses: false"), "");
    }
}
