//! Folding: many nodes of a cluster with one problem and one remedy are one finding, and so are all nodes whose problem
//! causes another finding about their cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::clusters::INVALID_KUBECONFIG;
use super::command::command_name;
use super::consequences::{Common, ConsequenceRow};
use super::costs::PAUSE_AFTER_CHANGE;
use super::endpoints::{
    DISTANT_ANCHOR, FEWER_ANCHORS, LOOPING_ENDPOINT, NO_ANCHOR, NO_ENDPOINT, PRIVATE_ENDPOINT,
    ROAMING_NODE, SILENT_ANCHOR, UNDECLARED_PORT,
};
use super::gitops::{EDITED_FILE, OUTDATED_GUARD, REFUSED_PEER, UNREADABLE_MANIFEST};
use super::identity::KEY_OF_TARGET_NODE;
use super::kilo::{ANNOTATION_AS_LABEL, MISSING_KEEPALIVE, NO_WIREGUARD_IP, UNKNOWN_ANNOTATION};
use super::nodes::{CONTRADICTED, NODE_NOT_SELECTED, SILENT_CLUSTER};
use super::ranges::{
    OVERLAPPING_SUBNET, PUBLIC_RANGE, UNACCEPTED_RANGE, UNDONE_SELECTOR, UNROUTABLE_RANGE,
    UNUSED_ADDRESS,
};
use super::rendered::MOVED_ANCHOR;
use super::services::{MISSING_SERVICES, UNCARRIED_SERVICE};
use super::snapshots::STALE_NODE;
use super::{Finding, Rule, bare, consequences, rendered};
use crate::diagnostic::mistake::{
    CONTRADICTING_FIELDS, DUPLICATE_SNAPSHOT, INVALID_VALUE, MISSING_SNAPSHOT, NO_MESH,
    OVERLAPPING_RANGES, UNKNOWN_CLUSTER, UNUSED_SNAPSHOT,
};
use crate::diagnostic::{Alike, FindingCause, Label, Quoted, Severity};
use crate::place::Place;
use crate::proof::rule::{EMPTY_EXPECTATION, UNPROMISED_REACH, UNPROVED_CLUSTER, UNPROVED_NODES};
use crate::text::{NAMED, count, listed};

/// The number of nodes with the same problem that still have a finding each.
const APART: usize = 2;

/// The rules of which findings that differ only in their places are one finding.
static AT_ALL_PLACES: [&Rule; 5] = [
    &UNKNOWN_CLUSTER,
    &UNREADABLE_MANIFEST,
    &CONTRADICTING_FIELDS,
    &EMPTY_EXPECTATION,
    &INVALID_VALUE,
];

/// The largest number of places of one finding.
const AT_PLACES: usize = 8;

/// The number of nodes that a command names.
const IN_COMMAND: usize = 20;

/// The causes of findings that are not about changes.
static CONSEQUENCES: [ConsequenceRow; 39] = [
    (&REFUSED_PEER, &EDITED_FILE, Common::File),
    (&OVERLAPPING_SUBNET, &CONTRADICTED, Common::Place),
    (&OVERLAPPING_SUBNET, &OVERLAPPING_RANGES, Common::Place),
    (&SILENT_ANCHOR, &STALE_NODE, Common::Place),
    (&OVERLAPPING_RANGES, &CONTRADICTED, Common::Place),
    (&FEWER_ANCHORS, &CONTRADICTED, Common::Cluster),
    (&NODE_NOT_SELECTED, &CONTRADICTED, Common::Cluster),
    (&SILENT_CLUSTER, &CONTRADICTED, Common::Cluster),
    (&UNDONE_SELECTOR, &CONTRADICTED, Common::Cluster),
    (&UNDONE_SELECTOR, &SILENT_CLUSTER, Common::Cluster),
    (&UNDECLARED_PORT, &CONTRADICTED, Common::Place),
    (&NO_ANCHOR, &LOOPING_ENDPOINT, Common::Cluster),
    (&NO_ANCHOR, &KEY_OF_TARGET_NODE, Common::Cluster),
    (&PRIVATE_ENDPOINT, &LOOPING_ENDPOINT, Common::Cluster),
    (&UNACCEPTED_RANGE, &UNROUTABLE_RANGE, Common::Cluster),
    (&UNACCEPTED_RANGE, &LOOPING_ENDPOINT, Common::Cluster),
    (&OUTDATED_GUARD, &UNACCEPTED_RANGE, Common::Name),
    (&PUBLIC_RANGE, &UNUSED_ADDRESS, Common::Place),
    (&NO_ENDPOINT, &UNKNOWN_ANNOTATION, Common::Node),
    (&NO_ENDPOINT, &ANNOTATION_AS_LABEL, Common::Node),
    (&NO_WIREGUARD_IP, &UNKNOWN_ANNOTATION, Common::Node),
    (&NO_WIREGUARD_IP, &ANNOTATION_AS_LABEL, Common::Node),
    (&UNUSED_SNAPSHOT, &UNKNOWN_CLUSTER, Common::Name),
    (&DUPLICATE_SNAPSHOT, &MISSING_SNAPSHOT, Common::Name),
    (&MISSING_SERVICES, &DUPLICATE_SNAPSHOT, Common::Name),
    (&EMPTY_EXPECTATION, &MISSING_SNAPSHOT, Common::Name),
    (&EMPTY_EXPECTATION, &CONTRADICTED, Common::Name),
    (&EMPTY_EXPECTATION, &SILENT_CLUSTER, Common::Name),
    (&EMPTY_EXPECTATION, &UNKNOWN_CLUSTER, Common::Name),
    (&EMPTY_EXPECTATION, &NO_MESH, Common::Run),
    (&UNKNOWN_CLUSTER, &NO_MESH, Common::Run),
    (&UNPROVED_CLUSTER, &UNPROVED_NODES, Common::Cluster),
    (&UNPROMISED_REACH, &UNKNOWN_CLUSTER, Common::Run),
    (&PAUSE_AFTER_CHANGE, &ROAMING_NODE, Common::Name),
    (&PAUSE_AFTER_CHANGE, &MISSING_KEEPALIVE, Common::Name),
    (&DISTANT_ANCHOR, &MOVED_ANCHOR, Common::Cluster),
    (&UNCARRIED_SERVICE, &UNACCEPTED_RANGE, Common::Name),
    (&UNCARRIED_SERVICE, &LOOPING_ENDPOINT, Common::Name),
    (&UNCARRIED_SERVICE, &NO_ANCHOR, Common::Name),
];

/// The common parts of findings that are folded: the rule, the severity, the cluster, the problem and
/// the remedy.
type FoldKind<'a> = (&'static str, Severity, &'a str, &'a str, Option<String>);

/// Puts findings together that are about nodes of one cluster and differ only in the node and its value.
/// Every node keeps its place. A consequence of another finding is listed with that one instead.
pub(super) fn folded(findings: Vec<Finding>) -> Vec<Finding> {
    let mut findings = at_all_places(with_one_kubeconfig(findings));
    link_looping(&mut findings);
    consequences::link_all(&mut findings, &CONSEQUENCES);
    consequences::link_all(&mut findings, &rendered::CONSEQUENCES);
    let mut alike: BTreeMap<FoldKind, Vec<usize>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate() {
        if let Some(kind) = kind(finding) {
            alike.entry(kind).or_default().push(index);
        }
    }
    let causes: BTreeSet<&FindingCause> =
        findings.iter().filter_map(|it| it.cause.as_ref()).filter(|it| it.node.is_none()).collect();
    let is_cause = |of: &Finding| causes.contains(&FindingCause { node: None, ..of.as_cause() });
    let many = alike.into_values().filter(|all| {
        let is_cause = || all.iter().any(|it| findings.get(*it).is_some_and(is_cause));
        APART < all.len() || 1 < all.len() && is_cause()
    });
    let first_of: BTreeMap<usize, usize> = many
        .flat_map(|all| {
            let first = all.first().copied().unwrap_or_default();
            all.into_iter().map(move |it| (it, first))
        })
        .collect();
    let mut slots: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    for (index, finding) in findings.into_iter().enumerate() {
        let slot = first_of.get(&index).copied().unwrap_or(index);
        slots.entry(slot).or_default().push(finding);
    }
    let mut causes: BTreeMap<FindingCause, FindingCause> = BTreeMap::new();
    let mut folded: Vec<Finding> = Vec::new();
    for slot in slots.into_values() {
        let Some(finding) = together(&slot) else {
            folded.extend(slot);
            continue;
        };
        causes.extend(slot.iter().map(|it| (it.as_cause(), finding.as_cause())));
        folded.push(finding);
    }
    let reported: Vec<FindingCause> = folded.iter().map(Finding::as_cause).collect();
    for cause in folded.iter_mut().filter_map(|it| it.cause.as_mut()) {
        let named = causes.get(cause).unwrap_or(cause).clone();
        if let Some(named) = named.reported_in(&reported) {
            *cause = named;
        }
    }
    folded
}

/// Puts findings about one kubeconfig together, which is missing or wrong for all clusters that are read with it.
fn with_one_kubeconfig(findings: Vec<Finding>) -> Vec<Finding> {
    let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in findings.iter().filter(|it| it.rule == &INVALID_KUBECONFIG) {
        let of_message = clusters.entry(finding.message.to_string()).or_default();
        of_message.extend(finding.cluster.clone());
    }
    clusters.retain(|_, it| 1 < it.len());
    let mut reported = BTreeSet::new();
    let folded = findings.into_iter().filter_map(|finding| {
        let message = finding.message.to_string();
        let Some(clusters) = clusters.get(&message).filter(|_| finding.rule == &INVALID_KUBECONFIG)
        else {
            return Some(finding);
        };
        let counted = count(clusters.len(), "cluster");
        let of_all = format!("{counted} ({}) {message}", listed(clusters)).into();
        reported.insert(message).then_some(Finding {
            cluster: None,
            group: String::new(),
            message: of_all,
            ..finding
        })
    });
    folded.collect()
}

/// Puts findings of some rules that differ only in their places together, unless there are many.
fn at_all_places(findings: Vec<Finding>) -> Vec<Finding> {
    let of = |it: &Finding| {
        let is_meant = AT_ALL_PLACES.contains(&it.rule) && it.node.is_none();
        let kind = (
            it.rule.name(),
            it.severity,
            it.cluster.clone(),
            it.what().to_owned(),
            it.help.clone(),
        );
        is_meant.then_some(kind)
    };
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for kind in findings.iter().filter_map(of) {
        *counts.entry(kind).or_default() += 1;
    }
    let mut first: BTreeMap<_, usize> = BTreeMap::new();
    let mut apart: Vec<Finding> = Vec::new();
    for finding in findings {
        let kind = of(&finding).filter(|it| counts.get(it).is_some_and(|it| *it <= AT_PLACES));
        let earlier = kind.as_ref().and_then(|it| apart.get_mut(*first.get(it)?));
        if let Some(earlier) = earlier {
            earlier.labels.extend(finding.labels);
            if earlier.rule == &EMPTY_EXPECTATION {
                let of_all = kind.as_ref().and_then(|it| counts.get(it)).copied();
                let counted = count(of_all.unwrap_or_default(), "expectation");
                earlier.message = format!("{counted}: {}", earlier.what()).into();
            }
        } else {
            first.extend(kind.map(|it| (it, apart.len())));
            apart.push(finding);
        }
    }
    apart
}

/// Links findings about a range with endpoints in it: the mistake is an endpoint if there is one, and else the range.
fn link_looping(findings: &mut [Finding]) {
    let looping = findings.iter().filter(|it| it.rule == &LOOPING_ENDPOINT);
    let looping: Vec<Finding> = looping.cloned().collect();
    let (of_nodes, of_ranges): (Vec<&Finding>, Vec<&Finding>) =
        looping.iter().partition(|it| it.node.is_some());
    // The first place of one is the endpoint, and the other has that of the declared range.
    let at_first = |it: &&'_ Finding| it.labels.first().map(|label| label.place.clone());
    let endpoints: BTreeMap<Place, FindingCause> =
        of_nodes.iter().filter_map(|it| Some((at_first(it)?, it.as_cause()))).collect();
    let caused_by = |known: &BTreeMap<Place, FindingCause>, it: &Finding| {
        it.labels.iter().find_map(|label| known.get(&label.place)).cloned()
    };
    let ranges = of_ranges.iter().filter(|it| caused_by(&endpoints, it).is_none());
    let places = ranges.flat_map(|it| it.labels.iter().map(|at| (at.place.clone(), it.as_cause())));
    let ranges: BTreeMap<Place, FindingCause> = places.collect();
    let uncaused = |it: &&mut Finding| it.rule == &LOOPING_ENDPOINT && it.cause.is_none();
    for finding in findings.iter_mut().filter(uncaused) {
        let known = if finding.node.is_none() { &endpoints } else { &ranges };
        finding.cause = caused_by(known, finding);
    }
}

fn kind(finding: &Finding) -> Option<FoldKind<'_>> {
    let cluster = finding.cluster.as_deref()?;
    let node = finding.node.as_deref()?;
    let help = finding.help.as_ref().map(|it| commanded(it, command_name(node), "NODE"));
    let kind = (finding.rule.name(), finding.severity, cluster, finding.what(), help);
    finding.cause.is_none().then_some(kind)
}

/// Replaces the nodes of the commands in a help text.
fn commanded(help: &str, from: &str, to: &str) -> String {
    // Behind the nodes, the command continues or ends.
    [' ', '`'].iter().fold(help.to_owned(), |help, end| {
        help.replace(&format!(" node {from}{end}"), &format!(" node {to}{end}"))
    })
}

/// Returns one finding for several of one kind.
fn together(findings: &[Finding]) -> Option<Finding> {
    let first = findings.first().filter(|_| 1 < findings.len())?;
    let nodes = || findings.iter().filter_map(|it| it.node.as_deref());
    let names: Vec<String> = findings.iter().filter_map(named).collect();
    let what = first.what();
    let colon = if what.starts_with("left out") { "" } else { ":" };
    let count = findings.len();
    let message = format!("{count} nodes{colon} {what} ({})", listed(names));
    let names_of_all: Vec<&str> = nodes().map(command_name).collect();
    let all = match names_of_all.len() {
        0..=IN_COMMAND => names_of_all.join(" "),
        _ => "NODE".to_owned(),
    };
    let help = kind(first).and_then(|(.., help)| help);
    Some(Finding {
        node: None,
        message: message.into(),
        labels: labels(findings),
        changes: findings.iter().flat_map(|it| it.changes.clone()).collect(),
        help: help.map(|it| commanded(&it, "NODE", &all)),
        alike: Some(Box::new(Alike { what: what.to_owned(), value: None })),
        ..first.clone()
    })
}

/// Names a node and its value.
fn named(finding: &Finding) -> Option<String> {
    let node = Quoted(finding.node.as_deref()?).to_string();
    Some(match finding.value() {
        Some(value) => format!("{node}: {value}"),
        None => node,
    })
}

/// Returns the place of each node, those of the nodes that are named first, and behind these the places
/// that all have in common.
fn labels(findings: &[Finding]) -> Vec<Label> {
    let is_common = |label: &&Label| findings.iter().all(|it| it.labels.contains(label));
    let of_first = findings.first().into_iter().flat_map(|it| &it.labels);
    let common: Vec<&Label> = of_first.filter(is_common).collect();
    let own = findings.iter().filter_map(|finding| {
        let label = finding.labels.iter().find(|it| !common.contains(it))?;
        Some(Label {
            place: label.place.clone(),
            text: finding.node.as_deref().map(bare).unwrap_or_default(),
        })
    });
    let mut labels: Vec<Label> = own.collect();
    let at = NAMED.min(labels.len());
    labels.splice(at..at, common.into_iter().cloned());
    labels
}

#[cfg(test)]
mod tests;
