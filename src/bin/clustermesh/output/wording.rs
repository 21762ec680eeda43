//! Wording: findings in words, for every form in which they are told.

use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::rules::{Finding, Rule};

use super::plural;

/// Returns whom it concerns and what is the matter.
pub(super) fn title(finding: &Finding) -> String {
    match finding.subject() {
        Some(subject) => format!("{subject}: {}", finding.message),
        None => finding.message.clone(),
    }
}

/// Returns the same for where no excerpt is beside it: with what to do on a line of its own, each
/// of at most `limit` characters.
pub(super) fn text(finding: &Finding, limit: usize) -> String {
    // A finding is harmless already, but these texts go where nobody looks at them first.
    let title = escaped(&title(finding), limit);
    match &finding.help {
        Some(help) => format!("{title}\nhelp: {}", escaped(help, limit)),
        None => title,
    }
}

/// Returns what a rule finds, in a sentence.
pub(super) fn description(rule: &Rule) -> String {
    rule.page().summary().replace('\n', " ")
}

/// Returns how many findings there are of each severity.
pub(super) fn counts(findings: &[Finding]) -> String {
    let count = |severity: Severity| {
        let findings = findings.iter();
        findings.filter(|it| it.severity == severity).count()
    };
    let kinds = [Severity::Error, Severity::Warning, Severity::Notice];
    let counts = kinds.map(|severity| (count(severity), severity.to_string()));
    let there = counts.iter().filter(|(count, _)| 0 < *count);
    let told: Vec<String> = there.map(|(count, noun)| plural(*count, noun)).collect();
    if told.is_empty() {
        return "nothing to tell".to_owned();
    }
    told.join(", ")
}
