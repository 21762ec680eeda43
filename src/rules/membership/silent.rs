//! Words for clusters that no other cluster can reach.

use std::collections::{BTreeMap, BTreeSet};

use super::excluded::{cause, rule_of};
use super::has_run;
use crate::diagnostic::{FindingCause, Quoted};
use crate::fleet::Member;
use crate::membership::{ExcludedNode, ExcludedReason};
use crate::plan::{Plan, TargetReason, Withheld};
use crate::rules::nodes::SILENT_CLUSTER;
use crate::rules::{Finding, plan};
use crate::text::listed;

/// Returns the finding about a cluster that gives no other cluster a Peer, as a plan shows.
pub(in crate::rules) fn silent(member: &Member, plan: &Plan) -> Finding {
    if member.membership.candidates.is_empty() {
        return without_candidates(member, false);
    }
    let cluster = &member.entry.name;
    let of_source = plan.withheld.iter().filter(|it| it.source == *cluster);
    let withheld: Vec<&Withheld> = of_source.filter(|it| it.reason.withholds()).collect();
    let unaccepted = withheld.iter().map(|it| match &*it.reason {
        TargetReason::Unaccepted { accepted, .. } => Some(Quoted(&accepted.source).to_string()),
        _ => None,
    });
    let unaccepted: Option<BTreeSet<String>> = unaccepted.collect();
    let (why, help) = if withheld.is_empty() {
        (
            "its nodes have no ranges that other clusters could get".to_owned(),
            "correct what is reported about its nodes and ranges".to_owned(),
        )
    } else if let Some(files) = unaccepted {
        let files = listed(files);
        (
            "no cluster accepts the ranges of its nodes".to_owned(),
            format!(
                "add its ranges to `acceptedNetworks` of the clusters that should reach `{cluster}`, in {files}"
            ),
        )
    } else {
        let rules = plan::rules_of(withheld.iter().copied());
        (
            format!("no cluster gets its Peers ({rules})"),
            format!("correct what is reported as {rules}"),
        )
    };
    let message = format!("no other cluster can reach it: {why}");
    let finding = Finding::on_cluster(&SILENT_CLUSTER, cluster, message);
    finding.with_cause(plan::cause_of(withheld.into_iter())).help(help)
}

/// Returns the finding about a cluster without any node that could have a Peer, in this mesh alone if it
/// has Peers in another.
pub(super) fn without_candidates(member: &Member, has_peers: bool) -> Finding {
    let excluded = &member.membership.excluded;
    let why = match excluded.len() {
        0 => "its snapshot has no nodes".to_owned(),
        1 => format!("its only node is left out ({})", reasons_by_rule(excluded)),
        nodes => format!("all {nodes} nodes are left out ({})", reasons_by_rule(excluded)),
    };
    let cluster = &member.entry.name;
    let message = if has_peers {
        let mesh = &member.mesh.name;
        format!("no other cluster of mesh `{mesh}` can reach it: {why}")
    } else {
        format!("no other cluster can reach it: {why}")
    };
    let finding = Finding::on_cluster(&SILENT_CLUSTER, cluster, message);
    let nodes = &member.file.snapshot.nodes;
    let finding = if nodes.is_empty() {
        finding.help(format!("run `clustermesh snapshot {cluster}`"))
    } else if nodes.iter().any(has_run) {
        finding.help("correct what is reported about its nodes")
    } else {
        finding.help(format!(
            "check that Kilo runs in the cluster, then run `clustermesh snapshot {cluster}`"
        ))
    };
    finding.with_cause(common_cause(member))
}

/// Returns the finding that all nodes are left out for, if there is one.
fn common_cause(member: &Member) -> Option<FindingCause> {
    let excluded = member.membership.excluded.iter();
    let is_selected = |it: &&ExcludedNode| it.reason != ExcludedReason::NotSelected;
    let are_none_selected = !excluded.clone().any(|it| is_selected(&it));
    // Nodes that the entry does not select are left out on purpose, and some follow from their leaders, which are among
    // them.
    let own = excluded.filter(|it| are_none_selected || is_selected(it));
    let own = own.filter(|it| !matches!(it.reason, ExcludedReason::LeaderExcluded(_)));
    let cluster = &member.entry.name;
    let of_rule = |it: &ExcludedNode| FindingCause::of(rule_of(&it.reason), cluster);
    let mut causes = own.map(|it| cause(member, &it.reason).unwrap_or_else(|| of_rule(it)));
    let first = causes.next()?;
    causes.all(|it| it == first).then_some(first)
}

/// Returns the rules about the excluded nodes of a cluster, each with the number of these nodes.
fn reasons_by_rule(excluded: &[ExcludedNode]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in excluded {
        *counts.entry(rule_of(&node.reason).name()).or_default() += 1;
    }
    let names: Vec<String> = match counts.len() {
        1 => counts.into_keys().map(str::to_owned).collect(),
        _ => counts.into_iter().map(|(name, count)| format!("{count} × {name}")).collect(),
    };
    names.join(", ")
}
