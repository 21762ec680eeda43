//! Cloned keys: those that more than one node has, although no plan has had to choose between them.

use std::collections::BTreeSet;

use super::CLONED_KEY;
use super::shared_nodes::SharedNodes;
use crate::fleet::{Claimant, Fleet};
use crate::kilo::node::annotation;
use crate::membership::ExcludedReason;
use crate::plan::{Plan, TargetReason};
use crate::rules::{Finding, bare};

/// Clusters and nodes.
type NamedNodes<'a> = BTreeSet<(&'a str, &'a str)>;

/// Returns findings about the claimants of a key that no other finding names.
pub(super) fn findings(fleet: &Fleet, plan: Option<&Plan>, nodes: &[SharedNodes]) -> Vec<Finding> {
    let named = named(fleet, plan);
    let is_named = |it: &Claimant| {
        named.contains(&(it.cluster.as_str(), it.node))
            || nodes.iter().any(|nodes| nodes.has(it.cluster, it.node))
    };
    let mut findings = Vec::new();
    for claimants in fleet.contested() {
        let Some(other) = claimants.iter().find(|it| is_named(it)).or(claimants.first()) else {
            continue;
        };
        let rest = claimants
            .iter()
            .filter(|it| !std::ptr::eq(*it, other) && !is_named(it))
            // The gate of meshes has refused two external peers with one key.
            .filter(|it| !it.cluster.is_external() || !other.cluster.is_external());
        findings.extend(rest.map(|claimant| finding(claimant, other)));
    }
    findings
}

/// Reports a node with the key of another one.
fn finding(claimant: &Claimant, other: &Claimant) -> Finding {
    let whose = format!("{}/{}", other.cluster, bare(other.node));
    let message = format!("same public key as {whose}");
    let is_host = claimant.cluster.is_external() || other.cluster.is_external();
    let key = |it: &Claimant| it.place.key("annotations").key(annotation::KEY);
    Finding::on_node(&CLONED_KEY, claimant.cluster, claimant.node, message)
        .at(key(claimant), "second here")
        .at(key(other), format!("of {whose}"))
        .help(if is_host {
            "write the `publicKey` that `wg pubkey` prints on the external peer; if it is this node, remove it from \
             `externalPeers`"
        } else {
            "delete `/var/lib/kilo/key` on the cloned machine, and restart its Kilo pod"
        })
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
            TargetReason::SharedKey { node, keeper, keeper_node, .. } => {
                named.insert((withheld.source.as_str(), node.as_str()));
                named.insert((keeper.as_str(), keeper_node.as_str()));
            }
            _ => {}
        }
    }
    named
}
