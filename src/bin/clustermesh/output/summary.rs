//! The last lines of a render: which targets changed and how, and how much there is in all.

use std::collections::BTreeMap;

use clustermesh::changes::PeerCounts;
use clustermesh::diagnostic::escaped;
use clustermesh::plan::{Plan, Target};
use clustermesh::text;

use super::checked;
use crate::disk::tree::TreeSurvey;
use crate::tree_comparison::{CountsByTarget, target_of};
use clustermesh::results::diff::counts;

/// The number of changed targets that have a line each.
const SHOWN: usize = 20;

/// The longest name of a folder that is shown, in characters.
const NAME: usize = 253;

/// Returns the lines of the summary.
pub(super) fn lines(
    plan: &Plan,
    left_out: usize,
    survey: &TreeSurvey,
    counts: &CountsByTarget,
) -> Vec<String> {
    let mut lines = targets(plan, survey, counts);
    let changes = changes(survey);
    let is_same = |it: &&Target| !changes.contains_key(it.cluster.as_str());
    let unchanged = plan.targets.iter().filter(is_same).count();
    if 0 < unchanged {
        lines.push(format!("{} unchanged", text::count(unchanged, "target")));
    }
    lines.push(total(plan, left_out));
    lines
}

/// Returns a line for each target that changes.
pub(super) fn targets(plan: &Plan, survey: &TreeSurvey, counts: &CountsByTarget) -> Vec<String> {
    let changes = changes(survey);
    let mut shown = changes.iter();
    let mut lines: Vec<String> = shown
        .by_ref()
        .take(SHOWN)
        .map(|(name, change)| line(plan, name, *change, counts.get(*name)))
        .collect();
    let more = shown.count();
    if 0 < more {
        lines.push(format!("… and {} changed", text::count(more, "more target")));
    }
    lines
}

/// Returns how many files change, by target.
fn changes(survey: &TreeSurvey) -> BTreeMap<&str, PeerCounts> {
    let mut changes: BTreeMap<&str, PeerCounts> = BTreeMap::new();
    for path in &survey.missing {
        changes.entry(target_of(path)).or_default().added += 1;
    }
    for path in &survey.changed {
        changes.entry(target_of(path)).or_default().changed += 1;
    }
    for path in &survey.stale {
        changes.entry(target_of(path)).or_default().removed += 1;
    }
    changes
}

/// Returns what becomes of one target.
fn line(plan: &Plan, name: &str, files: PeerCounts, peers: Option<&PeerCounts>) -> String {
    let target = plan.targets.iter().find(|it| it.cluster.as_str() == name);
    let now = target.map_or_else(
        || "no longer a target".to_owned(),
        |target| {
            let sources = text::count(target.peer_sets.len(), "cluster");
            format!("{} of {sources}", text::count(checked::peers(plan, target), "Peer"))
        },
    );
    let peers = peers.map_or_else(String::new, |it| format!(" ({})", counts(*it)));
    let name = escaped(name, NAME);
    format!("{name}: {} files, {now}{peers}", counts(files))
}

fn total(plan: &Plan, left_out: usize) -> String {
    let total: usize = plan.targets.iter().map(|it| checked::peers(plan, it)).sum();
    let targets = text::count(plan.targets.len(), "target");
    let total = format!("{} in {targets}", text::count(total, "Peer"));
    match left_out {
        0 => total,
        left_out => format!("{total}; {} left out", text::count(left_out, "node")),
    }
}
