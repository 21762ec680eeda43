//! Findings of all commands, each once: by severity, with what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::command_documents::{PageCause, PageFinding, PagePlace};
use super::documents::PageDocuments;
use super::markup::blocks;
use crate::diagnostic::Rule;
use crate::proof::rule::OUTDATED_TREE;
use crate::rules;
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
    /// The numbers of the findings about nodes, by cluster and node.
    #[serde(skip)]
    of_nodes: BTreeMap<(&'d str, &'d str), usize>,
    /// The names of all rules.
    #[serde(skip)]
    pub(super) rules: BTreeSet<&'d str>,
}

/// The findings of one severity.
#[derive(Serialize)]
struct FindingGroup<'d> {
    severity: &'static str,
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
    rule: &'d str,
    subject: Option<String>,
    cluster: Option<&'d str>,
    message: &'d str,
    help: Option<&'d str>,
    places: &'d [PagePlace],
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
type FirstFinding<'d> = (Option<String>, &'d PageFinding);

/// Findings with those that follow from them.
type RootFinding<'d> = (&'d PageFinding, Vec<&'d PageFinding>);

impl PageFinding {
    /// Returns whether it is the refusal of a guard.
    fn is_of_guard(&self) -> bool {
        GUARDS.iter().any(|guard| guard.name() == self.rule)
    }

    fn is_outdated_tree(&self) -> bool {
        self.rule == OUTDATED_TREE.name()
    }

    /// Returns whether something else must be corrected first, if nodes of a cluster are missing.
    pub(super) fn follows_from_nodes(&self) -> bool {
        self.is_of_guard() || self.is_outdated_tree()
    }

    /// Returns whether it is the same finding as another one.
    fn is_like(&self, other: &Self) -> bool {
        (&self.rule, &self.cluster, &self.node) == (&other.rule, &other.cluster, &other.node)
    }

    /// Returns whom it concerns.
    pub(super) fn subject(&self) -> Option<String> {
        let cluster = self.cluster.as_ref()?;
        Some(match &self.node {
            Some(node) => format!("{cluster}/{node}"),
            None => cluster.clone(),
        })
    }
}

impl<'d> FindingList<'d> {
    /// Collects the findings of all commands.
    pub(super) fn new(documents: &'d PageDocuments) -> Self {
        let findings = unique(documents);
        let mut entries = entries(&findings);
        entries.sort_by_key(|(finding, _)| finding.rank());
        let first = first(documents, &entries);
        let more = entries.len().saturating_sub(SHOWN);
        entries.truncate(SHOWN);
        let of_nodes = entries.iter().zip(1..).filter_map(|((finding, _), number)| {
            Some(((finding.cluster.as_deref()?, finding.node.as_deref()?), number))
        });
        let of_nodes = of_nodes.collect();
        let mut groups = [("error", "✗"), ("warning", "!"), ("notice", "i")]
            .map(|(severity, sign)| FindingGroup { severity, sign, count: 0, bundles: Vec::new() });
        let numbered: Vec<(usize, RootFinding)> = (1..).zip(entries).collect();
        let key = |it: &(usize, RootFinding<'d>)| (it.1.0.rule.as_str(), it.1.0.cluster.as_deref());
        for bundle in numbered.chunk_by(|left, right| key(left) == key(right)) {
            let rank = bundle.first().map_or(0, |it| it.1.0.rank());
            if let Some(group) = groups.get_mut(rank) {
                group.count += bundle.len();
                group.bundles.push(FindingBundle::new(bundle));
            }
        }
        Self {
            groups: groups.into_iter().filter(|it| 0 < it.count).collect(),
            more,
            first,
            of_nodes,
            rules: findings.iter().map(|it| it.rule.as_str()).collect(),
        }
    }

    /// Returns how many there are of a severity.
    pub(super) fn count(&self, severity: &str) -> usize {
        let group = self.groups.iter().find(|it| it.severity == severity);
        group.map_or(0, |it| it.count)
    }

    /// Returns how many there are of a rule.
    pub(super) fn count_of(&self, rule: &str) -> usize {
        let bundles = self.groups.iter().flat_map(|it| &it.bundles);
        let views = bundles.flat_map(|it| it.shown.iter().chain(&it.folded));
        views.filter(|it| it.rule == rule).count()
    }

    /// Returns the finding to act on first, and its id; none if there are only notices.
    pub(super) fn worst(&self) -> Option<FirstFinding<'d>> {
        self.first.clone()
    }

    /// Returns the number of a finding about a node, if there is one.
    pub(super) fn of_node(&self, cluster: &str, node: &str) -> Option<usize> {
        self.of_nodes.get(&(cluster, node)).copied()
    }
}

/// Returns the finding to act on first. An outdated tree comes before what is found in it, but it cannot be rendered
/// while there are errors in the inputs.
fn first<'d>(documents: &PageDocuments, entries: &[RootFinding<'d>]) -> Option<FirstFinding<'d>> {
    let of_inputs = documents.findings.iter().filter(|it| !it.is_of_guard());
    let is_refused = of_inputs.clone().any(|it| it.rank() == 0);
    // Nodes that are left out are the reason for most losses, and the next render would lose them.
    let is_lost = |it: &PageFinding| {
        it.rank() == 1 && it.node.is_some() && of_inputs.clone().any(|other| other.is_like(it))
    };
    let findings = || entries.iter().map(|it| it.0).zip(1..);
    let find = |is_it: &dyn Fn(&PageFinding) -> bool| findings().find(|(it, _)| is_it(it));
    let is_losing = find(&|it| it.follows_from_nodes()).is_some();
    let input = find(&|it| is_refused && it.rank() == 0 && !it.follows_from_nodes());
    let cause = || find(&|it| is_losing && is_lost(it));
    let (finding, number) = input
        .or_else(cause)
        .or_else(|| find(&|it| it.is_outdated_tree()))
        .or_else(|| find(&|it| it.rank() < 2))?;
    let id = (number <= SHOWN).then(|| format!("finding-{number}"));
    Some((id, finding))
}

/// Returns the findings of all commands, in their order.
fn unique(documents: &PageDocuments) -> Vec<&PageFinding> {
    let proved = match &documents.verification {
        Ok(verification) => &verification.findings,
        Err(refusal) => &refusal.findings,
    };
    let mut known = BTreeSet::new();
    let mut findings: Vec<&PageFinding> = documents.findings.iter().chain(proved).collect();
    findings.retain(|it| known.insert((&it.rule, &it.cluster, &it.node, &it.message)));
    findings
}

/// Returns findings, with those that follow from another one. A finding that is more severe than its cause is listed by
/// itself.
fn entries<'d>(findings: &[&'d PageFinding]) -> Vec<RootFinding<'d>> {
    let mut by_cause: BTreeMap<PageCause, &PageFinding> = BTreeMap::new();
    for &finding in findings {
        by_cause.entry(finding.as_cause()).or_insert(finding);
    }
    let mut consequences: BTreeMap<PageCause, Vec<&PageFinding>> = BTreeMap::new();
    let mut first = Vec::new();
    for &finding in findings {
        let root = root(&by_cause, finding).as_cause();
        if root == finding.as_cause() {
            first.push(finding);
        } else {
            consequences.entry(root).or_default().push(finding);
        }
    }
    let entries = first.into_iter();
    entries.map(|it| (it, consequences.remove(&it.as_cause()).unwrap_or_default())).collect()
}

/// Returns the first cause of a finding, or itself.
fn root<'d>(
    by_cause: &BTreeMap<PageCause, &'d PageFinding>,
    finding: &'d PageFinding,
) -> &'d PageFinding {
    let mut passed = BTreeSet::from([finding.as_cause()]);
    let mut root = finding;
    while let Some(cause) = root.cause.as_ref().and_then(|it| by_cause.get(it)) {
        if finding.rank() < cause.rank() || !passed.insert(cause.as_cause()) {
            break;
        }
        root = cause;
    }
    root
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
        let shown = consequences
            .iter()
            .take(CONSEQUENCES)
            .map(|it| Consequence { subject: it.subject(), message: &it.message });
        Self {
            number,
            rule: &finding.rule,
            subject: finding.subject(),
            cluster: finding.cluster.as_deref(),
            message: &finding.message,
            help: finding.help.as_deref(),
            places: finding.places.get(..PLACES).unwrap_or(&finding.places),
            consequences: shown.collect(),
            more_consequences: consequences.len().saturating_sub(CONSEQUENCES),
        }
    }
}

/// The explanation of a rule.
#[derive(Serialize)]
pub(super) struct RuleNote<'d> {
    name: &'d str,
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
pub(super) fn rule_notes<'d>(findings: &FindingList<'d>) -> Vec<RuleNote<'d>> {
    let notes = findings.rules.iter().map(|name| {
        let rules = rules::find(name);
        let sections = rules.into_iter().flat_map(|it| it.page().sections);
        let sections = sections.filter(|it| it.title != LEFT_OUT);
        RuleNote {
            name,
            sections: sections
                .map(|it| NoteSection { title: it.title, text: blocks(it.text) })
                .collect(),
        }
    });
    notes.collect()
}
