//! Consequences: findings that follow from a finding of another rule, because both are about the same thing.

use super::{Finding, Rule};
use crate::diagnostic::FindingCause;

/// What a consequence and its cause have in common.
#[derive(Clone, Copy)]
pub(super) enum Common {
    /// The run: there is one cause at most.
    Run,
    /// The cluster that they are about.
    Cluster,
    /// The file of their first places.
    File,
    /// The name that the consequence is about, which is the name or the cluster that the cause is about.
    Name,
}

/// A rule of which findings follow from those of another rule. No rule follows from itself over others.
pub(super) type ConsequenceRow = (&'static Rule, &'static Rule, Common);

/// Sets the causes of findings that have none among all that are reported.
pub(super) fn link(findings: &mut [Finding], reported: &[Finding], rows: &[ConsequenceRow]) {
    let subjects: Vec<FindingCause> = reported.iter().map(Finding::as_cause).collect();
    for finding in findings.iter_mut() {
        let known = finding.cause.clone().and_then(|it| it.reported_in(&subjects));
        if known.is_some() {
            continue;
        }
        let rows = rows.iter().filter(|it| it.0 == finding.rule);
        let cause = rows.filter_map(|row| cause(finding, row, reported)).next();
        if cause.is_some() {
            finding.cause = cause;
        }
    }
}

fn cause(
    finding: &Finding,
    &(_, rule, common): &ConsequenceRow,
    reported: &[Finding],
) -> Option<FindingCause> {
    let mut of_rule = reported.iter().filter(|it| it.rule == rule);
    let cause = of_rule.find(|it| is_common(common, finding, it))?.as_cause();
    // Of several with one subject, a consequence is listed below the first.
    let first = reported.iter().find(|it| it.as_cause() == cause)?;
    is_common(common, finding, first).then_some(cause)
}

fn is_common(common: Common, consequence: &Finding, cause: &Finding) -> bool {
    let file = |it: &Finding| it.labels.first().map(|it| it.place.source.clone());
    let is_one = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
    match common {
        Common::Run => true,
        Common::Cluster => is_one(&consequence.cluster, &cause.cluster),
        Common::File => file(consequence).is_some() && file(consequence) == file(cause),
        Common::Name => {
            is_one(&consequence.subject, &cause.subject)
                || is_one(&consequence.subject, &cause.cluster)
        }
    }
}
