//! Findings a line each, for editors and for grep.

use std::fmt::Write as _;

use clustermesh::document::Position;

use super::entry::ReportEntry;
use super::wording::title;
use super::{Report, line_start};

/// Returns the lines.
pub(super) fn text(report: &Report) -> String {
    let lines = report.entries().into_iter().map(|it| line(report, &it));
    lines.map(|line| line + "\n").collect()
}

/// Returns the line of an entry.
pub(super) fn line(report: &Report, entry: &ReportEntry) -> String {
    let mut line = String::new();
    let finding = entry.finding;
    let place = finding.labels.first().map(|label| &label.place);
    if let Some(place) = place {
        line.push_str(&line_start(&place.source));
        if let Some(positions) = report.files.positions(place) {
            let Position { line: row, column } = positions.start;
            let _ = write!(line, ":{row}:{column}");
        }
        line.push_str(": ");
    }
    let (severity, rule) = (finding.severity, finding.rule.name());
    let _ = write!(line, "{severity}[{rule}] {}", title(entry));
    line
}
