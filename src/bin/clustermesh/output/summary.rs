//! The last lines of a render: who got how much, and which files that took.

use std::collections::BTreeMap;

use clustermesh::plan::Plan;

use super::plural;
use crate::disk::tree::Survey;

/// How many targets are listed separately before similar ones are listed together.
const TOLD_SINGLY: usize = 20;

/// Returns the lines of the summary.
pub(super) fn lines(plan: &Plan, left_out: usize, survey: &Survey) -> Vec<String> {
    let peers = |target: &clustermesh::plan::Target| -> usize {
        let peer_sets = target
            .peer_sets
            .iter()
            .filter_map(|&it| plan.peer_sets.get(it));
        peer_sets.map(|peer_set| peer_set.peers.len()).sum()
    };
    let mut by_count: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut lines = Vec::new();
    for target in &plan.targets {
        let name = target.cluster.as_str();
        if plan.targets.len() <= TOLD_SINGLY {
            let sources = plural(target.peer_sets.len(), "cluster");
            lines.push(format!(
                "{name}: {} of {sources}",
                plural(peers(target), "Peer")
            ));
        } else {
            by_count.entry(peers(target)).or_default().push(name);
        }
    }
    lines.extend(by_count.iter().rev().map(|(number, names)| {
        let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(3) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{shown}{more}: {}", plural(*number, "Peer"))
    }));
    let total: usize = plan.targets.iter().map(peers).sum();
    let written = survey.missing.len() + survey.changed.len();
    lines.push(format!(
        "{} for {}; {} left out; {written} written, {} unchanged, {} removed",
        plural(total, "Peer"),
        plural(plan.targets.len(), "cluster"),
        plural(left_out, "node"),
        survey.same.len(),
        survey.stale.len(),
    ));
    lines
}
