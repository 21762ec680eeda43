//! Findings as workflow commands, which a GitHub job shows beside the lines.

use std::fmt::Write as _;

use crate::diagnostic::Severity;

use super::entry::{ReportEntry, at_most, select};
use super::repository_place::{RepositoryPlace, RepositoryPlaces};
use super::{Report, wording};

/// The longest text of an annotation, in characters.
const SHOWN: usize = 2000;

/// The number of annotations of a severity that a job shows.
pub(in crate::results) const ANNOTATIONS: usize = 10;

/// Returns a command for each finding, the most severe first, and first of all those that a job has
/// room for.
pub(super) fn text(report: &Report) -> String {
    let places = RepositoryPlaces::new(report.files);
    let entries = report.entries();
    let mut commands = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Notice] {
        let of_severity: Vec<&ReportEntry> =
            entries.iter().filter(|it| it.severity() == severity).collect();
        let selection = select(&of_severity, at_most(ANNOTATIONS));
        for entry in selection.shown.into_iter().chain(selection.left_out) {
            commands.push_str(&command(entry, &places.first(entry.finding)));
        }
    }
    commands
}

fn command(entry: &ReportEntry, place: &RepositoryPlace) -> String {
    let finding = entry.finding;
    // GitHub has the same words for severities.
    let mut command = format!("::{} file={}", entry.severity(), property(&place.path));
    if let Some(positions) = &place.positions {
        let (start, end) = (positions.start, positions.end);
        let _ = write!(command, ",line={},endLine={}", start.line, end.line);
        if start.line == end.line {
            // GitHub drops columns that are not of one line.
            let _ = write!(command, ",col={},endColumn={}", start.column, end.column);
        }
    }
    let title = property(finding.rule.name());
    let message = data(&wording::text(entry, SHOWN));
    command + &format!(",title={title}::{message}\n")
}

/// Returns a command for an error that is in no file of the new version.
pub(in crate::results) fn error(title: &str, message: &str) -> String {
    format!("::error title={}::{}\n", property(title), data(message))
}

fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_property_or_a_command() {
        assert_eq!(property("a%:,\r\n::b"), "a%25%3A%2C%0D%0A%3A%3Ab");
        assert_eq!(data("50%0A\n::error::b"), "50%250A%0A::error::b");
    }
}
