//! Do ranges overlap, or are outside of what was declared?

use super::Finding;
use crate::fleet::Fleet;

mod declared;
mod flat;
mod narrow;
pub(super) mod outside;
mod reported;
mod selector;
mod services;
mod source;
mod subnet;

rules! {
    "Address ranges" in "ranges" about Plan;
    NO_POD_CIDR = "missing-pod-cidr" Warning "NodeNoPodCIDR";
    INVALID_POD_CIDR = "invalid-pod-cidr" Warning "NodeNoPodCIDR";
    POD_CIDR_OUT_OF_RANGE = "undeclared-pod-cidr" Warning "NodePodCIDROutOfRange";
    WIREGUARD_IP_OUT_OF_RANGE = "undeclared-wireguard-ip" Warning "WGIPOutOfRange";
    UNUSED_POD_CIDR = "unused-pod-cidr" Warning;
    UNUSED_ADDRESS = "unused-address" Notice;
    OVERLAPPING_NODE_POD_CIDR = "overlapping-node-pod-cidr" Warning;
    ADDRESS_IN_POD_CIDR = "address-in-pod-cidr" Warning;
    UNROUTABLE_RANGE = "unroutable-range" Error;
    PUBLIC_RANGE = "public-range" Notice;
    UMBRELLA_RANGE = "umbrella-range" Notice;
    MISPLACED_WIREGUARD_IP = "misplaced-wireguard-ip" Warning;
    OVERLAPPING_SUBNET = "overlapping-subnet" Warning;
    CAPTURED_NETWORK = "captured-network" Warning;
    LOST_LAN = "lost-lan" Warning;
    UNDECLARED_SERVICES = "undeclared-services" Notice;
    UNACCEPTED_RANGE = "unaccepted-range" Notice;
    RANGELESS_PEER = "rangeless-peer" Warning;
    UNDONE_SELECTOR = "undone-selector" Warning;
    UNADVERTISED_SOURCE = "unadvertised-source" Warning;
}

/// Returns findings about the ranges of clusters and nodes.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    // All meshes have the same ranges of a cluster, so the first one is used.
    let mut findings: Vec<Finding> = fleet
        .first_memberships_of_all()
        .flat_map(|member| {
            let mut findings = declared::findings(member.entry);
            findings.extend(flat::findings(member));
            findings.extend(narrow::findings(member));
            findings.extend(outside::findings(member));
            findings.extend(source::finding(member));
            findings.extend(reported::findings(fleet, member));
            findings
        })
        .collect();
    findings.extend(subnet::findings(fleet));
    findings.extend(services::findings(fleet));
    // A selector may differ between meshes.
    let members = fleet.members().iter();
    findings.extend(super::once(members.flat_map(selector::findings).collect()));
    findings
}

#[cfg(test)]
mod tests;
