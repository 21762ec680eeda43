//! Findings of all commands, each once: by severity, with what follows from them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::markup::{blocks, has_command};
use super::mesh_results::MeshResults;
use crate::diagnostic::{Finding, Rule, Severity};
use crate::proof::rule::OUTDATED_TREE;
use crate::results::findings::entry;
use crate::results::findings::json::{WrittenFinding, WrittenPlace};
use crate::rules::rendered::{EMPTY_TARGET, LOST_SOURCE, LOST_TARGET, SHRUNK_SOURCE};

/// The most findings that are shown.
const SHOWN: usize = 500;

/// The most findings of one rule and cluster that are not folded.
const UNFOLDED: usize = 3;

/// The most consequences of a finding, and places of it, that are shown.
const CONSEQUENCES: usize = 20;
const PLACES: usize = 4;

/// The rules of the guards of `render`. Their findings have a cause, which is corrected first.
static GUARDS: [&Rule; 4] = [&EMPTY_TARGET, &LOST_SOURCE, &LOST_TARGET, &SHRUNK_SOURCE];

/// All findings.
#[derive(Serialize)]
pub(super) struct FindingList<'d> {
    groups: Vec<FindingGroup<'d>>,
    /// The number of findings that are not shown.
    more: usize,
    #[serde(skip)]
    first: Option<FirstFinding<'d>>,
    /// The first finding that has a command.
    #[serde(skip)]
    advised: Option<FirstFinding<'d>>,
    /// The numbers of the findings about nodes, by cluster and node.
    #[serde(skip)]
    of_nodes: BTreeMap<(&'d str, &'d str), usize>,
    /// All rules, by name.
    #[serde(skip)]
    rules: BTreeSet<&'static Rule>,
}

/// The findings of one severity.
#[derive(Serialize)]
struct FindingGroup<'d> {
    severity: Severity,
    sign: &'static str,
    /// With its consequences not counted.
    count: usize,
    bundles: Vec<FindingBundle<'d>>,
}

/// Findings of one rule about one cluster.
#[derive(Serialize)]
struct FindingBundle<'d> {
    shown: Vec<FindingView<'d>>,
    folded: Vec<FindingView<'d>>,
}

/// A finding.
#[derive(Serialize)]
struct FindingView<'d> {
    number: usize,
    rule: &'static str,
    subject: Option<String>,
    cluster: Option<&'d str>,
    message: &'d str,
    help: Option<&'d str>,
    places: &'d [WrittenPlace],
    consequences: Vec<Consequence<'d>>,
    more_consequences: usize,
}

/// A finding that follows from another one.
#[derive(Serialize)]
struct Consequence<'d> {
    subject: Option<String>,
    message: &'d str,
}

/// A finding, and its id if it is shown.
type FirstFinding<'d> = (Option<String>, &'d WrittenFinding);

/// Findings with those that follow from them.
type RootFinding<'d> = (&'d WrittenFinding, Vec<&'d WrittenFinding>);

/// Returns the severity of the most severe of a finding and those that follow from it.
fn severity((finding, consequences): &RootFinding) -> Severity {
    let consequences = consequences.iter().map(|it| it.finding.severity);
    consequences.fold(finding.finding.severity, Severity::max)
}

/// Returns whether a finding is the refusal of a guard.
fn is_of_guard(finding: &Finding) -> bool {
    GUARDS.contains(&finding.rule)
}

fn is_outdated_tree(finding: &Finding) -> bool {
    finding.rule == &OUTDATED_TREE
}

/// Returns whether something else must be corrected first, if nodes of a cluster are missing.
pub(super) fn follows_from_nodes(finding: &Finding) -> bool {
    is_of_guard(finding) || is_outdated_tree(finding)
}

impl<'d> FindingList<'d> {
    /// Collects the findings of all commands.
    pub(super) fn new(results: &'d MeshResults<'d>) -> Self {
        let findings = unique(results);
        let entries = entry::entries(&findings).into_iter();
        let mut entries: Vec<RootFinding> = entries
            .map(|it| (*it.finding, it.consequences.into_iter().copied().collect()))
            .collect();
        entries.sort_by_key(|it| Reverse(severity(it)));
        let (first, advised) = (first(results, &entries), advised(&entries));
        let more = entries.len().saturating_sub(SHOWN);
        entries.truncate(SHOWN);
        let of_nodes = entries.iter().zip(1..).filter_map(|((it, _), number)| {
            Some(((it.finding.cluster.as_deref()?, it.finding.node.as_deref()?), number))
        });
        let of_nodes = of_nodes.collect();
        let mut groups =
            [(Severity::Error, "✗"), (Severity::Warning, "!"), (Severity::Notice, "i")].map(
                |(severity, sign)| FindingGroup { severity, sign, count: 0, bundles: Vec::new() },
            );
        let numbered: Vec<(usize, RootFinding)> = (1..).zip(entries).collect();
        let key = |(_, it): &(usize, RootFinding<'d>)| {
            (it.0.finding.rule, &it.0.finding.cluster, severity(it))
        };
        for bundle in numbered.chunk_by(|left, right| key(left) == key(right)) {
            let severity = bundle.first().map(|it| severity(&it.1));
            if let Some(group) = groups.iter_mut().find(|it| Some(it.severity) == severity) {
                group.count += bundle.len();
                group.bundles.push(FindingBundle::new(bundle));
            }
        }
        Self {
            groups: groups.into_iter().filter(|it| 0 < it.count).collect(),
            more,
            first,
            advised,
            of_nodes,
            rules: findings.iter().map(|it| it.finding.rule).collect(),
        }
    }

    /// Returns how many there are of a severity.
    pub(super) fn count(&self, severity: Severity) -> usize {
        let group = self.groups.iter().find(|it| it.severity == severity);
        group.map_or(0, |it| it.count)
    }

    /// Returns how many there are of a rule.
    pub(super) fn count_of(&self, rule: &Rule) -> usize {
        let bundles = self.groups.iter().flat_map(|it| &it.bundles);
        let views = bundles.flat_map(|it| it.shown.iter().chain(&it.folded));
        views.filter(|it| it.rule == rule.name()).count()
    }

    /// Returns the finding to act on first, and its id; none if there are only notices.
    pub(super) fn worst(&self) -> Option<FirstFinding<'d>> {
        self.first.clone()
    }

    /// Returns the first finding that has a command, and its id.
    pub(super) fn advised(&self) -> Option<FirstFinding<'d>> {
        self.advised.clone()
    }

    /// Returns the number of a finding about a node, if there is one.
    pub(super) fn of_node(&self, cluster: &str, node: &str) -> Option<usize> {
        self.of_nodes.get(&(cluster, node)).copied()
    }
}

/// Returns the finding to act on first. An outdated tree comes before what is found in it, but it cannot be rendered
/// while there are errors in the inputs.
fn first<'d>(results: &MeshResults, entries: &[RootFinding<'d>]) -> Option<FirstFinding<'d>> {
    let of_inputs = || results.findings.iter().map(|it| &it.finding).filter(|it| !is_of_guard(it));
    let is_refused = of_inputs().any(|it| it.severity == Severity::Error);
    // Nodes that are left out are the reason for most losses, and the next render would lose them.
    let is_lost = |it: &Finding| {
        it.severity == Severity::Warning
            && it.node.is_some()
            && of_inputs().any(|other| other.as_cause() == it.as_cause())
    };
    let findings = || entries.iter().map(|it| it.0).zip(1..);
    let find = |is_it: &dyn Fn(&Finding) -> bool| findings().find(|(it, _)| is_it(&it.finding));
    let is_losing = find(&follows_from_nodes).is_some();
    let input = find(&|it| is_refused && it.severity == Severity::Error && !follows_from_nodes(it));
    let cause = || find(&|it| is_losing && is_lost(it));
    let (finding, number) = input
        .or_else(cause)
        .or_else(|| find(&is_outdated_tree))
        .or_else(|| find(&|it| it.severity != Severity::Notice))?;
    Some((id_of(number), finding))
}

/// Returns the first finding that has a command.
fn advised<'d>(entries: &[RootFinding<'d>]) -> Option<FirstFinding<'d>> {
    entries.iter().zip(1..).find_map(|((root, consequences), number)| {
        let mut findings = [root].into_iter().chain(consequences);
        let advised = findings.find(|it| it.finding.help.as_deref().is_some_and(has_command))?;
        Some((id_of(number), *advised))
    })
}

/// Returns the id of a finding, if it is shown.
fn id_of(number: usize) -> Option<String> {
    (number <= SHOWN).then(|| format!("finding-{number}"))
}

/// Returns the findings of all commands, in their order.
fn unique<'d>(results: &'d MeshResults) -> Vec<&'d WrittenFinding> {
    let proved = match &results.verification {
        Ok(verification) => &verification.findings,
        Err(refusal) => &refusal.findings,
    };
    let mut known = BTreeSet::new();
    let mut findings: Vec<&WrittenFinding> = results.findings.iter().chain(proved).collect();
    findings.retain(|WrittenFinding { finding, .. }| {
        known.insert((finding.as_cause(), &finding.message))
    });
    findings
}

impl<'d> FindingBundle<'d> {
    fn new(entries: &[(usize, RootFinding<'d>)]) -> Self {
        // One more than the limit takes a line anyway.
        let unfolded = if entries.len() <= UNFOLDED + 1 { entries.len() } else { UNFOLDED };
        let (shown, folded) = entries.split_at(unfolded);
        let views = |entries: &[(usize, RootFinding<'d>)]| {
            let views = entries.iter().map(|(number, it)| FindingView::new(*number, it));
            views.collect()
        };
        Self { shown: views(shown), folded: views(folded) }
    }
}

impl<'d> FindingView<'d> {
    fn new(number: usize, (finding, consequences): &RootFinding<'d>) -> Self {
        let shown =
            consequences.iter().take(CONSEQUENCES).map(|WrittenFinding { finding: it, .. }| {
                Consequence { subject: it.subject(), message: it.message.shown() }
            });
        let WrittenFinding { finding, places } = finding;
        Self {
            number,
            rule: finding.rule.name(),
            subject: finding.subject(),
            cluster: finding.cluster.as_deref(),
            message: finding.message.shown(),
            help: finding.help.as_deref(),
            places: places.get(..PLACES).unwrap_or(places),
            consequences: shown.collect(),
            more_consequences: consequences.len().saturating_sub(CONSEQUENCES),
        }
    }
}

/// The explanation of a rule.
#[derive(Serialize)]
pub(super) struct RuleNote {
    name: &'static str,
    sections: Vec<NoteSection>,
}

/// A part of it.
#[derive(Serialize)]
struct NoteSection {
    title: &'static str,
    /// HTML.
    text: String,
}

/// The sections of a page that are about a problem in general.
const LEFT_OUT: &str = "Example";

/// Returns the rules that found something.
pub(super) fn rule_notes(findings: &FindingList) -> Vec<RuleNote> {
    let notes = findings.rules.iter().map(|rule| {
        let sections = rule.page().sections.into_iter().filter(|it| it.title != LEFT_OUT);
        RuleNote {
            name: rule.name(),
            sections: sections
                .map(|it| NoteSection { title: it.title, text: blocks(it.text) })
                .collect(),
        }
    });
    notes.collect()
}
