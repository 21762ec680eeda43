//! Cloned keys: those that more than one node has, although no plan has had to choose between them.

use std::collections::BTreeSet;

use super::shared_nodes::SharedNodes;
use crate::fleet::{Claimant, Fleet};
use crate::membership::ExcludedReason;
use crate::plan::{Plan, TargetReason};

/// Clusters and nodes.
type NamedNodes<'a> = BTreeSet<(&'a str, &'a str)>;

/// A node with the key of another one.
pub(super) struct ClonedKey<'f> {
    /// The node.
    pub(super) claimant: &'f Claimant<'f>,
    /// Another node with the key.
    pub(super) other: &'f Claimant<'f>,
}

/// Finds the claimants of a key that no other finding names.
pub(super) fn cloned<'f>(
    fleet: &'f Fleet,
    plan: Option<&Plan>,
    nodes: &[SharedNodes],
) -> Vec<ClonedKey<'f>> {
    let named = named(fleet, plan);
    let is_named = |it: &Claimant| {
        named.contains(&(it.cluster.as_str(), it.node))
            || nodes.iter().any(|nodes| nodes.has(it.cluster, it.node))
    };
    let mut cloned = Vec::new();
    for claimants in fleet.contested() {
        let Some(other) = claimants
            .iter()
            .find(|it| is_named(it))
            .or(claimants.first())
        else {
            continue;
        };
        let rest = claimants
            .iter()
            .filter(|it| !std::ptr::eq(*it, other) && !is_named(it));
        cloned.extend(rest.map(|claimant| ClonedKey { claimant, other }));
    }
    cloned
}

/// Returns the nodes whose keys are reported already.
fn named<'a>(fleet: &'a Fleet, plan: Option<&'a Plan>) -> NamedNodes<'a> {
    let mut named = NamedNodes::new();
    for member in fleet.members() {
        let cluster = member.entry.name.as_str();
        for excluded in &member.membership.excluded {
            if let ExcludedReason::DuplicateKey(owner) = &excluded.reason {
                named.extend([(cluster, excluded.node.as_str()), (cluster, owner)]);
            }
        }
    }
    for withheld in plan.iter().flat_map(|plan| &plan.withheld) {
        match &*withheld.reason {
            TargetReason::OwnKey { node, own, .. } => {
                named.insert((withheld.source.as_str(), node.as_str()));
                named.insert((withheld.target.as_str(), own));
            }
            TargetReason::SharedKey {
                node,
                keeper,
                keeper_node,
                ..
            } => {
                named.insert((withheld.source.as_str(), node.as_str()));
                named.insert((keeper.as_str(), keeper_node.as_str()));
            }
            _ => {}
        }
    }
    named
}
