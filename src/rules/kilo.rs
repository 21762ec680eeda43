//! Does Kilo on the nodes fit?

use super::Finding;
use super::command::with_access;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::plan::Plan;
use crate::snapshot::Node;
use inspected_cluster::InspectedCluster;

mod inspected_cluster;
mod mixed_families;
mod annotations;
mod family;
mod granularity;
mod keepalive;
mod location;
mod location_ranges;
mod mtu;
mod occupied_port;
mod pod_addresses;
mod spelling;
mod subnet;
mod unlocated;

pub(super) use family::separation;
pub(super) use pod_addresses::finding as mismatched_pod_addresses;
pub use pod_addresses::unrouted as unrouted_pods;
pub(super) use unlocated::unlocated_leader;

rules! {
    "Kilo's settings on the nodes" in "kilo" about Plan;
    NO_WIREGUARD_IP = "missing-wireguard-ip" Warning "NodeNoWireguardIP";
    INVALID_WIREGUARD_IP = "invalid-wireguard-ip" Warning "WGIPInvalid";
    FULL_SUBNET = "full-subnet" Warning;
    MIXED_GRANULARITY = "mixed-granularity" Warning;
    UNCONFIRMED_CROSS = "unconfirmed-cross" Warning;
    MISSING_GRANULARITY = "missing-granularity" Notice;
    NODE_NOT_READY = "node-not-ready" Warning;
    LEADER_LEFT_OUT = "leader-left-out" Warning;
    SEVERAL_LEADERS = "several-leaders" Notice;
    UNCERTAIN_LEADER = "uncertain-leader" Warning;
    MISREAD_LEADER = "misread-leader" Warning;
    MISSING_LOCATION = "missing-location" Notice;
    EMPTY_LOCATION = "empty-location" Notice;
    MISSING_INTERNAL_IP = "missing-internal-ip" Warning;
    MISSING_KEEPALIVE = "missing-keepalive" Warning;
    UNDECLARED_KEEPALIVE = "undeclared-keepalive" Notice;
    ANNOTATION_AS_LABEL = "annotation-as-label" Warning;
    UNKNOWN_ANNOTATION = "unknown-annotation" Warning;
    SIMILAR_LOCATIONS = "similar-locations" Warning;
    IGNORED_ANNOTATION = "ignored-annotation" Warning;
    IGNORED_LOCATION_RANGE = "ignored-location-range" Warning;
    CONTESTED_LOCATION_RANGE = "contested-location-range" Warning;
    UNDECLARED_LOCATION_RANGE = "undeclared-location-range" Notice;
    MASQUERADED_LOCATION_RANGE = "masqueraded-location-range" Warning;
    UNROUTABLE_FAMILY = "unroutable-family" Notice;
    MISMATCHED_SUBNET = "mismatched-subnet" Warning;
    DIFFERENT_FAMILIES = "different-families" Warning;
    EXCEEDED_MTU = "exceeded-mtu" Warning;
    MISMATCHED_POD_ADDRESSES = "mismatched-pod-addresses" Warning;
    OCCUPIED_PORT = "occupied-port" Warning;
}

/// Returns findings about Kilo on the nodes. Without a plan, the Peers of their clusters are not known.
pub(super) fn findings(fleet: &Fleet, plan: Option<&Plan>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in fleet.first_memberships() {
        let inspected = InspectedCluster::new(member);
        findings.extend(granularity::finding(&inspected));
        findings.extend(subnet::finding(&inspected));
        findings.extend(family::of_nodes(fleet, &inspected));
        findings.extend(family::of_partners(fleet, &inspected));
        findings.extend(pod_addresses::finding(&member.cluster));
        findings.extend(occupied_port::finding(&inspected));
        findings.extend(location::findings(&inspected));
        findings.extend(spelling::findings(&inspected));
        findings.extend(annotations::findings(&inspected));
        findings.extend(location_ranges::findings(fleet, plan, &inspected));
        let memberships = fleet.memberships(&member.entry.name);
        findings.extend(memberships.flat_map(keepalive::findings));
    }
    findings.extend(mtu::findings(fleet));
    super::once(findings)
}

/// Returns the findings about locations of which it is uncertain who leads them.
pub fn uncertain_leaders(fleet: &Fleet, config: &Config) -> Vec<Finding> {
    let members = fleet.first_memberships();
    let findings = members.flat_map(|it| location::findings(&InspectedCluster::new(it)));
    let findings = findings.filter(|it| it.rule == &UNCERTAIN_LEADER);
    findings.map(|it| with_access(it, config)).collect()
}

/// Returns a node's annotation.
fn annotated<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.annotations.get(key)
}

#[cfg(test)]
mod tests {
    use super::{Finding, Fleet};

    pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
        let plan = crate::plan::plan(fleet).unwrap();
        super::findings(fleet, Some(&plan))
    }
}
