//! Do ranges overlap, or lie outside of what was declared?

use super::Finding;
use crate::fleet::Fleet;

rules! {
    "ranges" about Plan;
    NO_POD_CIDR = "missing-pod-cidr" Warning "NodeNoPodCIDR";
    INVALID_POD_CIDR = "invalid-pod-cidr" Warning "NodeNoPodCIDR";
    POD_CIDR_OUT_OF_RANGE = "undeclared-pod-cidr" Warning "NodePodCIDROutOfRange";
    WIREGUARD_IP_OUT_OF_RANGE = "undeclared-wireguard-ip" Warning "WGIPOutOfRange";
    UNUSED_POD_CIDR = "unused-pod-cidr" Warning;
    UNUSED_ADDRESS = "unused-address" Notice;
    OVERLAPPING_NODE_POD_CIDR = "overlapping-node-pod-cidr" Warning;
    ADDRESS_IN_POD_CIDR = "address-in-pod-cidr" Warning;
}

/// Returns what there is to tell about the ranges of clusters and nodes.
pub(super) fn findings(_fleet: &Fleet) -> Vec<Finding> {
    Vec::new()
}
