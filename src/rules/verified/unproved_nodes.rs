//! Words for nodes of which no path can be proved.

use std::collections::BTreeMap;

use crate::config::Limits;
use crate::diagnostic::Label;
use crate::fleet::{Fleet, Member};
use crate::membership::{Contradicted, ExcludedReason, Unready};
use crate::plan::Plan;
use crate::proof::rule::UNPROVED_NODES;
use crate::rules::kilo::{MIXED_GRANULARITY, UNCERTAIN_LEADER};
use crate::rules::membership::rule_of;
use crate::rules::nodes::contradicted;
use crate::rules::{Finding, Rule, bare, excluded, plan};
use crate::text::{count, first};
use left_nodes::{Unproved, UnprovedNode, UnprovedNodes};

pub mod left_nodes;

/// The number of nodes with the same reason that are named.
const SHOWN: usize = 20;

/// Returns a finding for each cluster with such nodes: an error if more are left out than the limits of
/// lost nodes allow.
pub(in crate::rules) fn findings(
    fleet: &Fleet,
    plan: Option<&Plan>,
    limits: &Limits,
) -> Vec<Finding> {
    let found = left_nodes::unproved_nodes(fleet, plan);
    found.iter().map(|it| finding(it, limits)).collect()
}

fn finding(unproved: &UnprovedNodes, limits: &Limits) -> Finding {
    let UnprovedNodes { member, nodes, of } = unproved;
    let what = "not part of this proof";
    let verb = if nodes.len() == 1 { "is" } else { "are" };
    let of_nodes = match *of {
        1 => "its only node".to_owned(),
        of => format!("{} of {}", nodes.len(), count(of, "node")),
    };
    let message = format!("{of_nodes} {verb} {what}: {}", reasons(nodes));
    let mut finding = Finding::on_cluster(&UNPROVED_NODES, &member.entry.name, message)
        .with_alike(format!("nodes are {what}"), None)
        .with_cause(contradicted(member, |it| {
            matches!(it, Contradicted::Granularity(_))
        }));
    finding.labels = labels(member, nodes);
    if limits.are_exceeded(100 * unproved.left_out(), *of) {
        finding = finding.of_nodes();
    }
    let cluster = &member.entry.name;
    if unproved.left_out() == 0 && unproved.has_other_granularity() {
        return finding.help(format!(
            "give all Kilo agents of `{cluster}` the same `--mesh-granularity`, then run `clustermesh snapshot {cluster}`"
        ));
    }
    if unproved.left_out() == 0 {
        return finding.help(format!(
            "wait until Kilo has elected its leaders, then run `clustermesh snapshot {cluster}`"
        ));
    }
    let is_stale = |it: &UnprovedNode| {
        matches!(
            it.why,
            Unproved::Excluded(ExcludedReason::NotReady(Unready::Stale))
        )
    };
    if nodes.iter().all(is_stale) {
        return finding.help(format!(
            "check that Kilo runs on these nodes, then run `clustermesh snapshot {cluster}`"
        ));
    }
    if nodes.len() == *of {
        return finding.help(format!(
            "correct what `clustermesh validate` reports about the nodes of `{cluster}`"
        ));
    }
    finding.help(format!(
        "correct what `clustermesh validate` reports about these nodes, or leave them out with the \
         `nodeSelector` of `{cluster}`"
    ))
}

/// Names the nodes with the reasons: that of a single one in full, those of several by their rules.
fn reasons(nodes: &[UnprovedNode]) -> String {
    if let [
        UnprovedNode {
            node,
            why: Unproved::Excluded(reason),
            ..
        },
    ] = nodes
    {
        return format!("{} ({})", bare(&node.name), excluded(reason));
    }
    let mut by_rule: BTreeMap<&Rule, Vec<String>> = BTreeMap::new();
    for UnprovedNode { node, why, .. } in nodes {
        let rule = match why {
            Unproved::Excluded(reason) => rule_of(reason),
            Unproved::Withheld(withheld) => plan::rule_of(withheld),
            Unproved::UncertainLeader => &UNCERTAIN_LEADER,
            Unproved::OtherGranularity => &MIXED_GRANULARITY,
        };
        by_rule.entry(rule).or_default().push(bare(&node.name));
    }
    let groups = by_rule
        .into_iter()
        .map(|(rule, names)| format!("{} ({})", first(SHOWN, names), rule.name()));
    groups.collect::<Vec<_>>().join(", ")
}

fn labels(member: &Member, nodes: &[UnprovedNode]) -> Vec<Label> {
    let labels = nodes.iter().map(|it| Label {
        place: member.node_at(it.id).1.key("name"),
        text: String::new(),
    });
    labels.collect()
}
