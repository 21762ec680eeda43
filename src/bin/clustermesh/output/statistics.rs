//! Statistics: how many findings there are of each rule, most frequent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use clustermesh::diagnostic::Severity;
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
#[serde(rename_all = "camelCase")]
struct StatisticsDocument<'a> {
    api_version: &'static str,
    kind: &'static str,
    rules: &'a [Row],
}

/// Returns the counts as JSON, or as a table.
pub(super) fn text(findings: &[Finding], format: ReportFormat) -> anyhow::Result<String> {
    let counts = counts(findings);
    if format == ReportFormat::Json {
        let document = StatisticsDocument {
            api_version: "kilo-clustermesh.io/v1",
            kind: "Statistics",
            rules: &counts,
        };
        return Ok(serde_json::to_string_pretty(&document)? + "\n");
    }
    let width = counts
        .iter()
        .map(|it| it.count.to_string().len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for Row {
        rule,
        severity,
        count,
    } in &counts
    {
        let _ = writeln!(text, "{count:width$}  {severity:<7}  {rule}");
    }
    Ok(text)
}

fn counts(findings: &[Finding]) -> Vec<Row> {
    let mut counts: BTreeMap<(&str, Severity), usize> = BTreeMap::new();
    for finding in findings {
        *counts
            .entry((finding.rule.name(), finding.severity))
            .or_default() += 1;
    }
    let mut counts: Vec<Row> = counts
        .into_iter()
        .map(|((rule, severity), count)| Row {
            rule,
            severity: severity.to_string(),
            count,
        })
        .collect();
    counts.sort_by_key(|it| Reverse(it.count));
    counts
}
