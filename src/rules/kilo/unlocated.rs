//! Nodes without a location among others that have one.

use super::MISSING_LOCATION;
use super::inspected_cluster::InspectedCluster;
use crate::diagnostic::FindingCause;
use crate::fleet::Member;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::annotation;
use crate::membership::ExcludedReason;
use crate::mesh::DEFAULT_TOPOLOGY_LABEL;
use crate::rules::Finding;
use crate::rules::command::{blank, changing, run};
use crate::snapshot::Node;

/// Returns the finding about a leader without a location, if the only node that leads without a WireGuard address is on its
/// LAN: that node leads only because of this.
pub(in crate::rules) fn unlocated_leader(member: &Member) -> Option<FindingCause> {
    let others = member.membership.excluded.iter();
    let mut others = others.filter(|it| it.reason == ExcludedReason::NoWireguardIp);
    let other = others.next().filter(|_| others.next().is_none())?;
    let nodes = &member.cluster.nodes;
    let other = nodes.iter().find(|it| it.node.name == other.node)?;
    let address = other.kilo.internal_address().filter(|_| !other.kilo.location.is_empty())?;
    let is_unlocated =
        |it: &&ClusterNode| it.kilo.location.is_empty() && it.kilo.has_wireguard_ip();
    let mut unlocated = nodes.iter().filter(is_unlocated);
    let leader = unlocated.next().filter(|_| unlocated.next().is_none())?;
    let is_on_lan = leader.kilo.lan.is_some_and(|lan| lan.holds(address));
    let of_cluster = FindingCause::of(&MISSING_LOCATION, &member.entry.name);
    is_on_lan.then(|| FindingCause { node: Some(leader.node.name.clone()), ..of_cluster })
}

pub(super) fn without_location(inspected: &InspectedCluster, node: &Node) -> Finding {
    let entry = &inspected.member.entry;
    let message = format!(
        "has no location, unlike other nodes: annotation {} and label {} are missing",
        annotation::LOCATION,
        entry.topology_label
    );
    let mut change = blank(annotation::LOCATION);
    if entry.topology_label != DEFAULT_TOPOLOGY_LABEL {
        change.key.clone_from(&entry.topology_label);
        change = change.of_label();
    }
    Finding::on_node(&MISSING_LOCATION, &entry.name, &node.name, message)
        .at(inspected.place(node).key("name"), "")
        .resolved_by(&change, &entry.name, [&*node.name])
        .help(format!(
            "if it belongs to a location, {}",
            run(&changing(node, &change), &entry.name)
        ))
}
