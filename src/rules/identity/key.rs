//! Keys that more than one node has, although no plan has had to choose between them.

use std::collections::BTreeSet;

use super::object::Twins;
use super::{CLONED_KEY, label};
use crate::fleet::{Claimant, Fleet};
use crate::kilo::node::annotation;
use crate::membership::ExcludedReason;
use crate::plan::{Plan, TargetReason};
use crate::rules::{Finding, bare};

/// Clusters and nodes.
type NamedNodes<'a> = BTreeSet<(&'a str, &'a str)>;

/// Returns the claimants of a key that nothing else names.
pub(super) fn findings(fleet: &Fleet, plan: Option<&Plan>, twins: &[Twins]) -> Vec<Finding> {
    let named = named(fleet, plan);
    let is_named = |it: &Claimant| {
        named.contains(&(it.cluster.as_str(), it.node))
            || twins.iter().any(|twins| twins.has(it.cluster, it.node))
    };
    let mut findings = Vec::new();
    for claimants in fleet.contested() {
        let Some(other) = claimants
            .iter()
            .find(|it| is_named(it))
            .or(claimants.first())
        else {
            continue;
        };
        let rest = claimants.iter().filter(|it| !std::ptr::eq(*it, other));
        findings.extend(rest.filter(|it| !is_named(it)).map(|it| finding(it, other)));
    }
    findings
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

fn finding(claimant: &Claimant, other: &Claimant) -> Finding {
    let whose = format!("{}/{}", other.cluster, bare(other.node));
    let message = format!("same public key as {whose}");
    let mut finding = Finding::on_node(&CLONED_KEY, claimant.cluster, claimant.node, message);
    let key = |it: &Claimant| it.place.key("annotations").key(annotation::KEY);
    finding.labels = vec![
        label(key(claimant), "second here"),
        label(key(other), format!("of {whose}")),
    ];
    let help = "delete `/var/lib/kilo/key` on the cloned machine, and restart its Kilo pod";
    finding.help = Some(help.to_owned());
    finding
}
