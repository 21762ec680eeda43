//! Source addresses of nodes that their cluster does not advertise.

use super::UNADVERTISED_SOURCE;
use crate::fleet::Member;
use crate::mesh::WireguardAddresses;
use crate::rules::{Finding, bare};
use crate::text::{count, listed};

/// Returns a finding about nodes of which no address is advertised although the entry does not keep them: those that
/// send from their address in Kilo's subnet, because they have no internal address (`kilo.md` §6.3), or all of a cluster that
/// declares no network with their internal addresses.
pub(super) fn finding(member: &Member) -> Option<Finding> {
    let advertise = member.entry.advertise;
    if advertise.wireguard != WireguardAddresses::None || !advertise.node_addresses {
        return None;
    }
    let candidates = &member.membership.candidates;
    if !candidates.is_empty() && candidates.iter().all(|it| it.hosts.is_empty()) {
        let message = "other clusters get no address of a node: no WireGuard address is advertised, and no internal \
                       IP is in a declared range";
        return Some(about(
            member,
            message.to_owned(),
            "if only pods should be connected, write `nodeAddresses: false`; otherwise, write `wireguardAddresses: PerNode`",
        ));
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
    Some(about(
        member,
        message,
        "write `wireguardAddresses: PerNode`, or annotate each of these nodes with `kilo.squat.ai/force-internal-ip`",
    ))
}

fn about(member: &Member, message: String, help: &str) -> Finding {
    let entry = member.entry;
    let place = entry.field("advertise").key("wireguardAddresses");
    let finding = Finding::on_cluster(&UNADVERTISED_SOURCE, &entry.name, message);
    finding.at(place, "").help(help)
}

#[cfg(test)]
mod tests {
    use crate::testing::{findings, mesh_of};

    #[test]
    fn nodes_without_an_advertised_address_are_reported() {
        let declaring = |advertise: &str, lan: &str| {
            let a = format!(
                "name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, {lan}advertise: {{ {advertise} }}"
            );
            let b = "name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24";
            let nodes = "
n1 pod=10.1.1.0/24 wg=10.101.0.1/16 key=A external=198.18.113.1 endpoint=198.18.113.1:51820 location=x
n2 pod=10.1.2.0/24 wg=10.101.0.2/16 key=B external=198.18.113.2 endpoint=198.18.113.2:51820 location=y internal-ip=192.168.0.2/24";
            let other = "n pod=10.2.1.0/24 wg=10.102.0.1/16 key=C external=198.18.113.3 endpoint=198.18.113.3:51820 location=z";
            let found = findings(&mesh_of("m", &[&a, b]), &[("a", nodes), ("b", other)]);
            let lines = found.lines().filter(|it| it.contains("unadvertised-source"));
            lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        let report = |advertise: &str| declaring(advertise, "additionalCIDRs: [192.168.0.0/24], ");
        insta::assert_snapshot!(declaring("wireguardAddresses: None", ""), @"warning[unadvertised-source] a: other clusters get no address of a node: no WireGuard address is advertised, and no internal IP is in a declared range");
        insta::assert_snapshot!(report("wireguardAddresses: None"), @"
        warning[unadvertised-source] a: other clusters drop packets from 1 node without an internal IP (n1), because no WireGuard address is advertised
        ");
        assert_eq!(report("wireguardAddresses: Carrier"), "");
        assert_eq!(report("nodeAddresses: false"), "");
        // The entry requests it.
        assert_eq!(report("wireguardAddresses: None, nodeAddresses: false"), "");
    }
}
