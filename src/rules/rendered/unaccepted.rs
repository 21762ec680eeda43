//! Ranges that targets have, and that their lists do not accept any more.

use std::collections::BTreeSet;

use crate::diagnostic::Severity;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::plan::{Plan, TargetReason};
use crate::rules::Finding;
use crate::rules::ranges::UNACCEPTED_RANGE;
use crate::tree_diff::OnDiskTree;

/// Makes findings about ranges that lists do not accept warnings where Peers of the tree still have them.
pub(in crate::rules) fn raise_lost(findings: &mut [Finding], plan: &Plan, tree: &OnDiskTree) {
    let is_meant = |it: &&mut Finding| it.rule == &UNACCEPTED_RANGE;
    let mut unaccepted = findings.iter_mut().filter(is_meant).peekable();
    if unaccepted.peek().is_none() || tree.files.is_empty() {
        return;
    }
    let lost = lost(plan, tree);
    for finding in unaccepted {
        let declared = finding.labels.first().map(|it| it.place.clone());
        let source = finding.cluster.clone().unwrap_or_default();
        if declared.is_some_and(|it| lost.contains(&(source, it))) {
            finding.severity = finding.severity.max(Severity::Warning);
            finding.message = format!("{}, where Peers have them now", finding.message).into();
        }
    }
}

/// Returns the sources and the declared lines of ranges that targets lose because their lists do not accept them.
fn lost(plan: &Plan, tree: &OnDiskTree) -> BTreeSet<(String, Place)> {
    let mut held: BTreeSet<(&str, &str, Cidr)> = BTreeSet::new();
    for file in &tree.files {
        let (target, _) = file.parts();
        for peer in file.peers() {
            let source = peer.source.as_deref().unwrap_or_default();
            held.extend(peer.ranges.iter().map(|it| (target, source, *it)));
        }
    }
    let lost = plan.withheld.iter().filter_map(|it| {
        let TargetReason::Unaccepted { ranges, .. } = &*it.reason else {
            return None;
        };
        let [target, source] = [&it.target, &it.source].map(ClusterName::as_str);
        let is_held = ranges.cidrs.iter().any(|range| held.contains(&(target, source, *range)));
        is_held.then(|| ranges.declared.clone().map(|it| (source.to_owned(), it)))?
    });
    lost.collect()
}
