//! Statistics: how many findings there are of each rule, most frequent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use clustermesh::diagnostic::Severity;
use clustermesh::report::json::JsonDocument;
use clustermesh::rules::Finding;
use serde::Serialize;

use super::ReportFormat;

/// The findings of a rule with the same severity.
#[derive(Serialize)]
struct Row {
    rule: &'static str,
    severity: String,
    count: usize,
}

/// All of them.
#[derive(Serialize)]
struct Statistics {
    rules: Vec<Row>,
}

/// Returns the counts as JSON, or as a table.
pub(super) fn text(findings: &[Finding], format: ReportFormat) -> anyhow::Result<String> {
    let counts = counts(findings);
    if format == ReportFormat::Json {
        return Ok(JsonDocument::named("Statistics", Statistics { rules: counts }).text()?);
    }
    let width = counts.iter().map(|it| it.count.to_string().len()).max().unwrap_or_default();
    let mut text = String::new();
    for Row { rule, severity, count } in &counts {
        let _ = writeln!(text, "{count:width$}  {severity:<7}  {rule}");
    }
    Ok(text)
}

fn counts(findings: &[Finding]) -> Vec<Row> {
    let mut counts: BTreeMap<(&str, Severity), usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry((finding.rule.name(), finding.severity)).or_default() += 1;
    }
    let mut counts: Vec<Row> = counts
        .into_iter()
        .map(|((rule, severity), count)| Row { rule, severity: severity.to_string(), count })
        .collect();
    counts.sort_by_key(|it| Reverse(it.count));
    counts
}
