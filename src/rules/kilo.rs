//! Does Kilo on the nodes fit?

use super::Finding;
use crate::fleet::Fleet;

rules! {
    "kilo" about Plan;
    NO_WIREGUARD_IP = "missing-wireguard-ip" Warning "NodeNoWireguardIP";
    INVALID_WIREGUARD_IP = "invalid-wireguard-ip" Warning "WGIPInvalid";
    MIXED_GRANULARITY = "mixed-granularity" Warning;
    NODE_NOT_READY = "node-not-ready" Warning;
    LEADER_LEFT_OUT = "leader-left-out" Warning;
    UNROUTABLE_FAMILY = "unroutable-family" Notice;
}

/// Returns what there is to tell about how Kilo runs on the nodes.
pub(super) fn findings(_fleet: &Fleet) -> Vec<Finding> {
    Vec::new()
}
