//! Leaders that lost their location, which then has another leader.

use super::MISSING_LOCATION;
use crate::diagnostic::FindingCause;
use crate::fleet::Member;
use crate::kilo::cluster::ClusterNode;
use crate::membership::ExcludedReason;

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
