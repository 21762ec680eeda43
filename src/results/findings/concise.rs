//! Findings a line each, for editors and for grep.

use std::fmt::Write as _;

use super::Report;
use super::entry::ReportEntry;
use super::wording::title;

/// Returns the lines.
pub(super) fn text(report: &Report) -> String {
    let lines = report.entries().into_iter().map(|it| line(report, &it));
    lines.map(|line| line + "\n").collect()
}

/// Returns the line of an entry.
pub(super) fn line(report: &Report, entry: &ReportEntry) -> String {
    let mut line = String::new();
    let finding = entry.finding;
    if let Some(label) = finding.labels.first() {
        let place = line_start(&report.files.shown_place(&label.place));
        let _ = write!(line, "{place}: ");
    }
    let (severity, rule) = (entry.severity(), finding.rule.name());
    let _ = write!(line, "{severity}[{rule}] {}", title(entry));
    line
}

/// Returns a foreign text that begins a line, such that no runner of a CI job takes the line for a
/// command.
pub fn line_start(text: &str) -> String {
    match text.trim_start().strip_prefix("::") {
        Some(rest) => format!("\\u{{3a}}:{rest}"),
        None => text.to_owned(),
    }
}
