//! Words for what a membership holds: which nodes and which of their ranges are left out, and why.

use super::command::resolved;
use super::identity::DUPLICATE_ADDRESS;
use super::kilo::{MIXED_GRANULARITY, NODE_NOT_READY};
use super::nodes::{NODE_NOT_SELECTED, contradicted};
use super::ranges::{
    ADDRESS_IN_POD_CIDR, OVERLAPPING_NODE_POD_CIDR, UNUSED_ADDRESS, UNUSED_POD_CIDR,
};
use super::{Finding, bare};
use crate::diagnostic::{MetadataChange, Quoted, Severity};
use crate::fleet::Member;
use crate::kilo::node::annotation;
use crate::membership::{
    Contradicted, Contradiction, ExcludedNode, ExcludedReason, PeerCandidate, Unready,
    WithheldRange, WithheldReason,
};
use crate::mesh::{Networks, State};
use crate::net::Cidr;
use crate::snapshot::Node;
use crate::text::listed;

mod contradiction;
mod excluded;
mod reasons;
mod silent;

use contradiction::contradiction;
pub use contradiction::granularity_advice;
pub(super) use excluded::excluded;
pub use excluded::excluded_by_line;
use excluded::overlap;
pub(super) use excluded::split_locations;
use excluded::{of_line, split_nodes};
pub use excluded::{part, rule_of};
use reasons::foreign;
pub use reasons::words;
pub(super) use silent::silent;

/// Returns the findings about one cluster in one mesh, given whether it has Peers in any.
pub(super) fn findings(member: &Member, has_peers: bool) -> Vec<Finding> {
    let membership = &member.membership;
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(contradictions(member));
    let corrections = membership.contradictions.iter().zip(&findings);
    let corrections: Vec<(Contradicted, Option<String>)> =
        corrections.map(|(it, finding)| (it.what, finding.help.clone())).collect();
    let split = split_nodes(member);
    if membership.candidates.is_empty() && member.entry.state == State::Joined {
        findings.push(silent::without_candidates(member, has_peers));
    }
    findings.extend(not_selected(member));
    let is_selected = |it: &&ExcludedNode| it.reason != ExcludedReason::NotSelected;
    let excluded_nodes = membership.excluded.iter().filter(is_selected);
    let is_running = runs_on_most(member);
    findings.extend(excluded_nodes.map(|it| {
        let mut finding = excluded(member, it);
        let correction = corrections.iter().find(|line| of_line(line.0, &it.reason));
        finding.help = finding.help.or_else(|| correction?.1.clone());
        if split.contains(&*it.node) {
            finding = finding.at(member.entry.field("topologyLabel"), "declared here");
        }
        if is_running && is_new(member, it) {
            // Kilo will soon run there.
            finding.severity = Severity::Notice;
            finding.help = None;
            finding.changes.clear();
        }
        finding
    }));
    findings.extend(membership.candidates.iter().filter_map(|it| without_endpoint(member, it)));
    let is_undeclared = |it: &&WithheldRange| !is_of_undeclared_family(member, it);
    let withheld_ranges = membership.withheld.iter().filter(is_undeclared);
    findings.extend(withheld_ranges.map(|it| withheld(member, it)));
    findings.extend(membership.overlaps.iter().map(|it| overlap(member, it)));
    let cluster = &member.entry.name;
    findings.extend(membership.dissenters.iter().map(|it| {
        let rendered = member.cluster.granularity;
        let is_decided = member.entry.granularity.or(member.cluster.voted).is_some();
        let (why, help) = if is_decided {
            let start = rendered.to_string().to_lowercase();
            ("the", format!("start Kilo on {} with `--mesh-granularity={start}`", Quoted(&it.node)))
        } else {
            let help = format!(
                "start Kilo on all nodes of `{cluster}` with the same `--mesh-granularity`, and set it as `granularity` in its entry"
            );
            ("most nodes of the cluster do not have the same one, so the", help)
        };
        let message = format!("has granularity {}, but {why} cluster is rendered with {rendered}", it.says);
        let finding = Finding::on_node(&MIXED_GRANULARITY, cluster, &it.node, message)
            .at(it.place.clone(), "")
            .help(help);
        finding.with_cause(contradicted(member, |it| matches!(it, Contradicted::Granularity(_))))
    }));
    findings
}

/// Returns the finding about a node that has a Peer although Kilo has no endpoint for it and does not count it.
fn without_endpoint(member: &Member, candidate: &PeerCandidate) -> Option<Finding> {
    let cluster = &member.entry.name;
    let message = "Kilo has no endpoint for it, so no path of this node works".to_owned();
    let finding = Finding::on_node(&NODE_NOT_READY, cluster, candidate.leader.as_str(), message)
        .at(candidate.place.key("name"), "")
        .help(format!(
            "check that Kilo runs there, or annotate the node with `{}`, then run `clustermesh snapshot {cluster}`",
            annotation::FORCE_ENDPOINT
        ));
    (candidate.unready == Some(Unready::NoEndpoint)).then_some(finding)
}

/// Returns the findings about declarations that most nodes contradict.
pub(super) fn contradictions(member: &Member) -> impl Iterator<Item = Finding> {
    member.membership.contradictions.iter().map(|it| contradiction(member, it))
}

/// Returns the finding about a declared granularity that most nodes contradict.
pub(super) fn contradicted_granularity(member: &Member) -> Option<Finding> {
    let mut contradictions = member.membership.contradictions.iter();
    let is_meant = |it: &&Contradiction| matches!(it.what, Contradicted::Granularity(_));
    let found = contradictions.find(is_meant)?;
    Some(contradiction(member, found))
}

/// Returns one finding about all nodes that the entry does not select.
fn not_selected(member: &Member) -> Option<Finding> {
    let excluded = member.membership.excluded.iter();
    let nodes: Vec<&ExcludedNode> =
        excluded.filter(|it| it.reason == ExcludedReason::NotSelected).collect();
    let first = nodes.first()?;
    let names = listed(nodes.iter().map(|it| Quoted(&it.node).to_string()));
    let message = match nodes.len() {
        1 => format!("1 node is not selected by `nodeSelector`: {names}"),
        count => format!("{count} nodes are not selected by `nodeSelector`: {names}"),
    };
    let finding = Finding::on_cluster(&NODE_NOT_SELECTED, &member.entry.name, message);
    let selector = member.entry.field("nodeSelector");
    Some(finding.at(selector, "").at(first.place.key("name"), ""))
}

/// Returns whether a further pod CIDR is of a family in which the entry declares no range: people
/// then want only the other family, and a declaration would only lead to ranges that Kilo does not
/// route.
fn is_of_undeclared_family(member: &Member, withheld: &WithheldRange) -> bool {
    let Ok(cidr) = withheld.range.parse::<Cidr>() else {
        return false;
    };
    let pods = match &member.entry.networks {
        Networks::Typed { pods, .. } => pods,
        Networks::Flat { allowed } => allowed,
    };
    withheld.reason == WithheldReason::OutOfRange
        && pods.iter().all(|range| range.cidr.family() != cidr.family())
}

/// Returns whether Kilo has written anything on a node.
fn has_run(node: &Node) -> bool {
    let mut keys = annotation::BY_AGENT.iter();
    keys.any(|key| node.annotations.contains_key(*key))
}

fn runs_on_most(member: &Member) -> bool {
    let nodes = &member.file.snapshot.nodes;
    nodes.len() < 2 * nodes.iter().filter(|node| has_run(node)).count()
}

/// Returns whether Kilo has not run on a node yet. If it runs on most nodes of the cluster, this is
/// normal: autoscalers add nodes all the time.
fn is_new(member: &Member, excluded: &ExcludedNode) -> bool {
    excluded.reason == ExcludedReason::NoWireguardIp
        && member.node(&excluded.node).is_some_and(|it| !has_run(it))
}

/// Returns the finding about a range of a node that is left out although the node is not.
pub fn withheld(member: &Member, withheld: &WithheldRange) -> Finding {
    let range = bare(&withheld.range);
    let (rule, why) = match &withheld.reason {
        WithheldReason::Invalid(error) => (&UNUSED_POD_CIDR, foreign(error)),
        WithheldReason::OutOfRange => (&UNUSED_POD_CIDR, "outside the declared ranges".to_owned()),
        WithheldReason::SecondOfFamily => {
            (&UNUSED_POD_CIDR, "the node already has one of this address family".to_owned())
        }
        WithheldReason::SecondAddress => (
            &UNUSED_ADDRESS,
            "the node already has another internal address of this address family".to_owned(),
        ),
        WithheldReason::Overridden { by } => (
            &UNUSED_ADDRESS,
            format!("Kilo uses {by} instead, which is outside the declared ranges"),
        ),
        WithheldReason::PodCidrTaken { other, node } => {
            (&OVERLAPPING_NODE_POD_CIDR, format!("overlaps {other} of {}", Quoted(node)))
        }
        WithheldReason::Taken { node } => {
            (&DUPLICATE_ADDRESS, format!("{} has the same address", Quoted(node)))
        }
        WithheldReason::InPodCidr { cidr, node } => {
            (&ADDRESS_IN_POD_CIDR, format!("inside pod CIDR {cidr} of {}", Quoted(node)))
        }
    };
    let message = format!("{range} left out: {why}");
    let finding = Finding::on_node(rule, &member.entry.name, &withheld.node, message)
        .at(withheld.place.clone(), "");
    let finding = finding.with_alike(format!("a range is left out: {why}"), Some(range.clone()));
    let finding = match &withheld.reason {
        WithheldReason::Taken { .. } => finding.help(format!(
            "run `clustermesh snapshot {}` again in a minute; if both nodes keep the address, check that Kilo runs on them",
            member.entry.name
        )),
        _ => finding,
    };
    let forced = member.node(&withheld.node).filter(|node| {
        matches!(withheld.reason, WithheldReason::Overridden { .. })
            && node.annotations.contains_key(annotation::FORCE_INTERNAL_IP)
    });
    match forced {
        Some(node) => {
            let removal = MetadataChange::removal(annotation::FORCE_INTERNAL_IP);
            resolved(finding, &removal, &member.entry.name, node)
        }
        None => finding,
    }
}
