//! Can one side of every pair dial the other?

use super::Finding;
use crate::fleet::Fleet;

rules! {
    "endpoints" about Plan;
    INVALID_ENDPOINT = "invalid-endpoint" Warning "NodeEndpointInvalid";
    NO_ENDPOINT = "missing-endpoint" Warning "NodeNoEndpoint";
    ROAMING_NODE = "roaming-node" Warning;
    NO_INITIATOR = "no-initiator" Warning;
    NO_ANCHOR = "no-anchor" Warning;
}

/// Returns what there is to tell about who can dial whom.
pub(super) fn findings(_fleet: &Fleet) -> Vec<Finding> {
    Vec::new()
}
