//! Wording: findings as text, for every output format.

use std::collections::BTreeSet;

use crate::diagnostic::{Severity, escaped};
use crate::rules::{Finding, Rule};
use crate::text;

use super::entry::ReportEntry;

/// Returns whom it concerns and what is the matter, and how much follows from it.
pub(super) fn title(entry: &ReportEntry) -> String {
    format!("{}{}", alone(entry.finding), followed(entry))
}

/// Returns whom a finding concerns and what is the matter.
pub(super) fn alone(finding: &Finding) -> String {
    match finding.subject() {
        Some(subject) => format!("{subject}: {}", finding.message),
        None => finding.message.to_string(),
    }
}

/// Returns how much follows from a finding, and which rules make the entry more severe than the finding.
fn followed(entry: &ReportEntry) -> String {
    let consequences = &entry.consequences;
    let severity = entry.severity();
    let graver: BTreeSet<&str> = consequences
        .iter()
        .filter(|it| it.severity == severity && entry.finding.severity < severity)
        .map(|it| it.rule.name())
        .collect();
    let graver = match graver.len() {
        0 => String::new(),
        1 => format!(": {severity}[{}]", text::list(&graver)),
        _ => format!(": {severity}s[{}]", text::list(&graver)),
    };
    let node = |finding: &&&Finding| Some((finding.cluster.clone()?, finding.node.clone()?));
    let nodes: BTreeSet<(String, String)> =
        consequences.iter().filter_map(|it| node(&it)).collect();
    let others = consequences.iter().filter(|it| it.node.is_none()).count();
    let of_nodes = format!("findings about {}", text::count(nodes.len(), "node"));
    let others_of = text::count(others, "other finding");
    match (nodes.len(), others) {
        (0, 0) => String::new(),
        (0, 1) => format!(" ({others_of} follows from it{graver})"),
        (0, _) => format!(" ({others_of} follow from it{graver})"),
        (_, 0) => format!(" ({of_nodes} follow from it{graver})"),
        _ => format!(" ({of_nodes} and {others_of} follow from it{graver})"),
    }
}

/// Returns the same for where no excerpt is beside it: with what to do on a line of its own, each
/// of at most `limit` characters.
pub(super) fn text(entry: &ReportEntry, limit: usize) -> String {
    let title = escaped(&title(entry), limit);
    match &entry.finding.help {
        Some(help) => format!("{title}\nhelp: {}", escaped(help, limit)),
        None => title,
    }
}

/// Returns what a rule finds, in a sentence.
pub(super) fn description(rule: &Rule) -> String {
    rule.page().summary().replace('\n', " ")
}

/// Returns how many entries there are of each severity.
pub(super) fn counts(entries: &[ReportEntry]) -> Option<String> {
    let count = |severity: Severity| {
        let entries = entries.iter();
        entries.filter(|it| it.severity() == severity).count()
    };
    let kinds = [Severity::Error, Severity::Warning, Severity::Notice];
    let counts = kinds.map(|severity| (count(severity), severity.to_string()));
    let there = counts.iter().filter(|(count, _)| 0 < *count);
    Some(text::list(there.map(|(count, noun)| text::count(*count, noun))))
        .filter(|it| !it.is_empty())
}
