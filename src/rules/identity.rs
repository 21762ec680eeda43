//! Has every node an identity of its own?

use super::Finding;
use crate::fleet::Fleet;

rules! {
    "identity" about Plan;
    NO_PUBLIC_KEY = "missing-public-key" Warning "NodeNoPublicKey";
    INVALID_PUBLIC_KEY = "invalid-public-key" Warning;
    DUPLICATE_KEY = "duplicate-key" Warning;
    KEY_IN_TWO_CLUSTERS = "key-in-two-clusters" Warning;
    KEY_OF_TARGET_NODE = "key-of-target-node" Warning;
    INVALID_NODE_NAME = "invalid-node-name" Warning;
    DUPLICATE_PEER_NAME = "duplicate-peer-name" Warning;
    DUPLICATE_ADDRESS = "duplicate-address" Warning "WGIPDuplicate";
}

/// Returns what there is to tell about who is who.
pub(super) fn findings(_fleet: &Fleet) -> Vec<Finding> {
    Vec::new()
}
