//! Findings a line each, for editors and for grep.

use std::fmt::Write as _;

use clustermesh::document::Position;

use super::wording::title;
use super::{Report, line_start};

/// Returns the lines.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for entry in report.entries() {
        let finding = entry.finding;
        let place = finding.labels.first().map(|label| &label.place);
        if let Some(place) = place {
            text.push_str(&line_start(&place.source));
            if let Some(positions) = report.files.positions(place) {
                let Position { line, column } = positions.start;
                let _ = write!(text, ":{line}:{column}");
            }
            text.push_str(": ");
        }
        let (severity, rule) = (finding.severity, finding.rule.name);
        let _ = writeln!(text, "{severity}[{rule}] {}", title(&entry));
    }
    text
}
