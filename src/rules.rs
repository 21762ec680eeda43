//! Rules: names, severities, documentation and words for the facts that others have found.
//!
//! Facts are decided once, where they matter; rules only report them. So the actions and the
//! reports of all commands agree.

use std::collections::BTreeSet;

use crate::fleet::{Fleet, Member};
use crate::plan::Plan;

pub mod access;
pub mod capacity;
pub mod clusters;
mod endpoints;
mod excused;
mod folding;
pub mod gitops;
mod identity;
mod check;
mod command;
mod consequences;
mod config;
mod defaults;
pub mod costs;
mod kilo;
mod levelled;
mod levels;
pub mod mesh;
mod manual;
mod nodes;
mod of_nodes;
mod plan;
mod ranges;
pub mod reach;
pub mod refusal;
mod registry;
pub mod proposal;
pub mod rendered;
mod membership;
pub mod services;
pub mod snapshots;
mod states;
mod swapped;
pub mod verified;

pub use crate::diagnostic::{Finding, Page, Question, Rule, Section, Subject};
use crate::diagnostic::{bare, gravest_first};
pub use check::{CheckInputs, CheckStandard, CheckedPlan, CheckedTree, check};
pub use command::{annotate_keepalive, annotate_nat, with_access};
pub use excused::excused;
pub(crate) use kilo::MIXED_GRANULARITY;
pub use kilo::{uncertain_leaders, unrouted_pods};
pub use levelled::LevelledFindings;
pub use levels::{Levels, Purpose};
pub use manual::{manual, page_of, page_of_term};
pub use membership::{
    excluded_by_line as node_left_out, granularity_advice, part as place_of_exclusion,
    rule_of as rule_of_exclusion, withheld as withheld_range, words as excluded,
};
pub use of_nodes::{contradictions, of_nodes};
pub use registry::{QUESTIONS, all, find};

/// Drops duplicates, such as findings about a cluster in two meshes.
fn once(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut known = BTreeSet::new();
    findings.retain(|finding| {
        let (subject, message) = (finding.subject(), finding.message.clone());
        known.insert((finding.rule, subject, message))
    });
    findings
}

/// Returns all findings about clusters and, if there is one, their plan: the most severe first, in
/// a fixed order.
pub fn findings(fleet: &Fleet, plan: Option<&Plan>) -> Vec<Finding> {
    let mut members: Vec<&Member> = fleet.members().iter().collect();
    members.sort_by_key(|member| (&member.entry.name, member.rank));
    // A cluster in several meshes has most of these in each.
    let of_roster = members.iter().flat_map(|member| {
        let mut memberships = fleet.memberships(&member.entry.name);
        let has_peers = memberships.any(|it| !it.membership.candidates.is_empty());
        membership::findings(member, has_peers)
    });
    let mut findings = once(of_roster.collect());
    let of_plan = plan.into_iter().flat_map(plan::findings);
    findings.extend(of_plan.map(|it| plan::with_endpoints(it, fleet)));
    findings.extend(plan.into_iter().flat_map(plan::cut_off::findings));
    findings.extend(ranges::findings(fleet));
    findings.extend(endpoints::findings(fleet));
    findings.extend(kilo::findings(fleet, plan));
    findings.extend(snapshots::silent_nodes(fleet));
    identity::add(fleet, plan, &mut findings);
    defaults::add(fleet, &mut findings);
    swapped::add(fleet, &mut findings);
    gravest_first(&mut findings);
    findings
}

#[cfg(test)]
mod tests;
