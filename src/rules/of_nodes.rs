//! Findings that only the nodes of one cluster cause.

use super::command::with_access;
use super::membership::{self, contradicted_granularity};
use super::plan::cut_off;
use super::verified::unproved_nodes;
use super::{Finding, defaults, once};
use crate::config::Config;
use crate::diagnostic::mistake::OVERLAPPING_RANGES;
use crate::fleet::Fleet;
use crate::plan::Plan;

/// Returns the findings of `verify` about the nodes of each cluster, which no rendered Peer has a part in: a
/// granularity that they contradict, a cluster that they cut off, and nodes of which no path can be proved.
/// Without a plan, the Peers that clusters do not get are unknown.
pub fn of_nodes(fleet: &Fleet, plan: Option<&Plan>, config: &Config) -> Vec<Finding> {
    let contradicted = fleet.members().iter().filter_map(contradicted_granularity);
    let cut_off = plan.into_iter().flat_map(cut_off::findings);
    let unproved = unproved_nodes::findings(fleet, plan, &config.limits);
    // A cluster in several meshes has most of these in each.
    let mut findings = once(contradicted.chain(cut_off).chain(unproved).collect());
    defaults::add(fleet, &mut findings);
    findings.into_iter().map(|it| with_access(it, config)).collect()
}

/// Returns the declarations that most nodes of their clusters contradict, if one may be why ranges overlap.
pub fn contradictions(fleet: &Fleet, mistakes: &[Finding]) -> Vec<Finding> {
    if !mistakes.iter().any(|it| it.rule == &OVERLAPPING_RANGES) {
        return Vec::new();
    }
    once(fleet.members().iter().flat_map(membership::contradictions).collect())
}
