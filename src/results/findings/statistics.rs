//! Statistics: how many findings there are of each rule, most frequent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::diagnostic::Severity;
use crate::report::json::JsonDocument;
use crate::rules::Finding;
use serde::Serialize;

/// The findings of a rule with the same severity.
#[derive(Serialize)]
struct Row {
    rule: &'static str,
    severity: String,
    count: usize,
}

/// All of them.
#[derive(Serialize)]
pub struct Statistics {
    rules: Vec<Row>,
}

impl Statistics {
    pub(super) fn count(findings: &[Finding]) -> Self {
        Self { rules: counts(findings) }
    }

    /// Returns a JSON document.
    pub fn json(&self) -> serde_json::Result<String> {
        JsonDocument::named("Statistics", self).text()
    }

    /// Returns a table for people.
    pub fn human(&self) -> String {
        let digits = |it: &Row| it.count.to_string().len();
        let width = self.rules.iter().map(digits).max().unwrap_or_default();
        let mut text = String::new();
        for Row { rule, severity, count } in &self.rules {
            let _ = writeln!(text, "{count:width$}  {severity:<7}  {rule}");
        }
        text
    }
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
