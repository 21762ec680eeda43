//! Has every node an identity of its own?

use super::Finding;
use crate::diagnostic::Label;
use crate::fleet::Fleet;
use crate::place::Place;
use crate::plan::Plan;

mod endpoint;
mod internal;
mod key;
mod object;

rules! {
    "identity" about Plan;
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
    NODE_IN_TWO_CLUSTERS = "node-in-two-clusters" Warning;
}

/// Returns findings about identities, except those from the plan.
pub(super) fn findings(fleet: &Fleet, plan: Option<&Plan>) -> Vec<Finding> {
    let shared = object::shared(fleet);
    let mut findings = object::findings(&shared);
    findings.extend(key::findings(fleet, plan, &shared));
    findings.extend(endpoint::findings(fleet, &shared));
    findings.extend(internal::findings(fleet));
    findings
}

fn label(place: Place, text: impl Into<String>) -> Label {
    let text = text.into();
    Label { place, text }
}

#[cfg(test)]
mod tests;
