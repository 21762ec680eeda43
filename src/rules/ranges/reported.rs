//! Declared ranges that do not match what the nodes report, although no node is left out for that.

use crate::diagnostic::Severity;
use crate::fleet::{Fleet, Member};
use crate::mesh::{Networks, WireguardAddresses};
use crate::rules::Finding;
use crate::rules::nodes::CONTRADICTED;

pub(super) fn findings(fleet: &Fleet, member: &Member) -> Vec<Finding> {
    subnet(fleet, member).into_iter().chain(services(member)).collect()
}

/// Returns the finding about a declared part of Kilo's subnet, in which the next nodes may have no address.
fn subnet(fleet: &Fleet, member: &Member) -> Option<Finding> {
    let entry = member.entry;
    let subnet = member.cluster.topology.subnet?;
    let ranges = entry.networks.all().into_iter();
    let part = ranges.filter(|it| it.cidr != subnet && subnet.contains(it.cidr)).find(|it| {
        let mut nodes = member.cluster.nodes.iter().filter_map(|it| it.kilo.wireguard_ip());
        nodes.any(|node| it.cidr.holds(node.address))
    })?;
    let all = member.mesh.entries.iter().flat_map(|it| it.networks.all());
    let declared = all.filter(|it| it.place != part.place).map(|it| it.cidr);
    let others = fleet.members().iter().filter(|it| it.entry.name != entry.name);
    let mut others = declared.chain(others.filter_map(|it| it.cluster.topology.subnet));
    let is_kept = entry.advertise.wireguard == WireguardAddresses::None;
    if is_kept || others.any(|it| it.overlaps(subnet)) {
        return None;
    }
    let message = format!(
        "Kilo gives WireGuard addresses of {subnet}, of which only {} is declared: other nodes would be left out",
        part.cidr
    );
    let finding = Finding::on_cluster(&CONTRADICTED, &entry.name, message);
    let help = format!("write {subnet} instead of {} in the entry of `{}`", part.cidr, entry.name);
    Some(Finding { severity: Severity::Notice, ..finding.at(part.place.clone(), "").help(help) })
}

/// Returns the finding about a range of Services that is the network of the nodes.
fn services(member: &Member) -> Option<Finding> {
    let Networks::Typed { services: Some(range), .. } = &member.entry.networks else {
        return None;
    };
    let nodes = &member.cluster.nodes;
    let inside = nodes.iter().filter(|it| it.internal_addresses().any(|it| range.cidr.holds(it)));
    let inside = inside.count();
    if 2 * inside <= nodes.len() {
        return None;
    }
    let cidr = range.cidr;
    let message = format!(
        "`serviceCIDR` {cidr} contains the internal IPs of {inside} of {} nodes, so it is not the range of Services",
        nodes.len()
    );
    let finding = Finding::on_cluster(&CONTRADICTED, &member.entry.name, message);
    Some(finding.at(range.place.clone(), "").help(format!(
        "write the range of Services in `serviceCIDR`, and {cidr} in `additionalCIDRs` if other clusters should reach the nodes"
    )))
}
