//! Findings a line each, for editors and for grep.

use std::fmt::Write as _;

use clustermesh::document::Position;

use super::Report;
use super::wording::title;

/// Returns the lines.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in report.findings {
        let place = finding.labels.first().map(|label| &label.place);
        if let Some(place) = place {
            text.push_str(&place.source);
            if let Some(positions) = report.files.positions(place) {
                let Position { line, column } = positions.start;
                let _ = write!(text, ":{line}:{column}");
            }
            text.push_str(": ");
        }
        let (severity, rule) = (finding.severity, finding.rule.name);
        let _ = writeln!(text, "{severity}[{rule}] {}", title(finding));
    }
    text
}
