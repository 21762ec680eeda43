//! Has every node an identity of its own?

use super::Finding;
use crate::fleet::Fleet;
use crate::plan::Plan;
use shared_nodes::SharedNodes;

mod captured_endpoint;
mod cloned_key;
mod shared_endpoint;
mod shared_internal_ip;
mod shared_nodes;

rules! {
    "Identity of nodes: names, keys, endpoints" in "identity" about Plan;
    NO_PUBLIC_KEY = "missing-public-key" Warning "NodeNoPublicKey";
    INVALID_PUBLIC_KEY = "invalid-public-key" Warning;
    DUPLICATE_KEY = "duplicate-key" Warning;
    KEY_IN_TWO_CLUSTERS = "key-in-two-clusters" Warning;
    KEY_OF_TARGET_NODE = "key-of-target-node" Warning;
    CLONED_KEY = "cloned-key" Warning;
    INVALID_NODE_NAME = "invalid-node-name" Warning;
    DUPLICATE_PEER_NAME = "duplicate-peer-name" Warning;
    DUPLICATE_ADDRESS = "duplicate-address" Warning "WGIPDuplicate";
    SHARED_INTERNAL_IP = "shared-internal-ip" Warning;
    SHARED_ENDPOINT = "shared-endpoint" Warning;
    CAPTURED_ENDPOINT = "captured-endpoint" Warning;
    NODE_IN_TWO_CLUSTERS = "node-in-two-clusters" Warning;
}

/// Adds findings about identities, except those from the plan.
pub(super) fn add(fleet: &Fleet, plan: Option<&Plan>, findings: &mut Vec<Finding>) {
    let nodes = SharedNodes::all(fleet);
    let mut found = [
        nodes.iter().filter_map(SharedNodes::finding).collect(),
        cloned_key::findings(fleet, plan, &nodes),
        shared_endpoint::findings(fleet, &nodes),
        shared_internal_ip::findings(fleet),
        captured_endpoint::findings(fleet),
    ]
    .concat();
    findings.append(&mut found);
    shared_nodes::link(&nodes, findings);
}

#[cfg(test)]
mod tests;
