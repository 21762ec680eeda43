//! Findings as Markdown, for comments on pull requests and summaries of jobs.
//!
//! All foreign text is in code spans, in which nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use crate::diagnostic::Severity;
use crate::report::markdown::code;
use crate::text;

use super::Report;
use super::entry::{ReportEntry, select};
use super::repository_place::RepositoryPlaces;
use super::wording::{counts, title};

/// The largest size of a comment, in bytes: GitHub accepts 65,536 characters, and the caller may add
/// some.
pub const COMMENT: usize = 60_000;

/// The number of findings of a severity that are shown unfolded.
const OPEN: usize = 10;

/// The room for the ends of all lists, in bytes.
const RESERVE: usize = 1000;

/// Returns the page, of at most `limit` bytes unless that is too few for anything.
pub(super) fn text(report: &Report, limit: usize) -> String {
    let counts = counts(&report.entries());
    let heading = counts.as_deref().unwrap_or("no problems found");
    format!("### clustermesh: {heading}\n") + &lists(report, limit)
}

/// Returns the findings without a heading.
pub fn lists(report: &Report, limit: usize) -> String {
    let places = RepositoryPlaces::new(report.files);
    let entries = report.entries();
    let mut page = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Notice] {
        let of_severity: Vec<&ReportEntry> =
            entries.iter().filter(|it| it.severity() == severity).collect();
        if !of_severity.is_empty() {
            list(&mut page, severity, &of_severity, &places, limit);
        }
    }
    page
}

/// Adds entries of one severity, as many as there is room for.
fn list(
    page: &mut String,
    severity: Severity,
    entries: &[&ReportEntry],
    places: &RepositoryPlaces,
    limit: usize,
) {
    let heading = text::count(entries.len(), &severity.to_string());
    let is_folded = OPEN < entries.len();
    let _ = if is_folded {
        // Inside HTML there is Markdown only after an empty line.
        write!(page, "\n<details>\n<summary>{heading}</summary>\n\n")
    } else {
        write!(page, "\n**{heading}**\n\n")
    };
    let mut length = page.len() + RESERVE;
    let selection = select(entries, |entry| {
        length += item(entry, places).len();
        length <= limit
    });
    for entry in selection.shown {
        page.push_str(&item(entry, places));
    }
    let left_out = selection.left_out.len();
    if 0 < left_out {
        let _ = writeln!(page, "- … and {left_out} more");
    }
    if is_folded {
        page.push_str("\n</details>\n");
    }
}

fn item(entry: &ReportEntry, places: &RepositoryPlaces) -> String {
    let finding = entry.finding;
    let place = places.first(finding);
    let place = match place.positions {
        Some(positions) => format!("{}:{}", place.path, positions.start.line),
        None => place.path,
    };
    let mut item =
        format!("- {} **{}** {}\n", code(&place), finding.rule.name(), code(&title(entry)));
    if let Some(help) = &finding.help {
        let _ = writeln!(item, "  - help: {}", code(help));
    }
    item
}
