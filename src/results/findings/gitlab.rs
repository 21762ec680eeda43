//! Findings as a Code Quality report, which GitLab shows in merge requests.

use crate::diagnostic::{Severity, plain_json};
use serde::Serialize;

use super::entry::ReportEntry;
use super::fingerprint::Fingerprints;
use super::repository_place::RepositoryPlaces;
use super::{Report, wording};

/// The longest text of a finding, in characters.
const SHOWN: usize = 2000;

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: IssueLocation,
}

#[derive(Serialize)]
struct IssueLocation {
    path: String,
    lines: IssueLines,
}

#[derive(Serialize)]
struct IssueLines {
    begin: usize,
}

/// Returns the array.
pub(super) fn text(report: &Report) -> serde_json::Result<String> {
    let places = RepositoryPlaces::new(report.files);
    let mut fingerprints = Fingerprints::default();
    let entries = report.entries();
    let issues: Vec<Issue> =
        entries.iter().map(|entry| issue(entry, &places, &mut fingerprints)).collect();
    let mut text = serde_json::to_string_pretty(&issues)?;
    text.push('\n');
    Ok(plain_json(text))
}

fn issue(entry: &ReportEntry, places: &RepositoryPlaces, fingerprints: &mut Fingerprints) -> Issue {
    let finding = entry.finding;
    let place = places.first(finding);
    Issue {
        description: wording::text(entry, SHOWN),
        check_name: finding.rule.name(),
        fingerprint: fingerprints.next(finding, &place),
        severity: match entry.severity() {
            Severity::Error => "critical",
            Severity::Warning => "major",
            Severity::Notice => "info",
        },
        location: IssueLocation {
            path: place.path,
            lines: IssueLines {
                // A report without a line is refused as a whole.
                begin: place.positions.map_or(1, |positions| positions.start.line),
            },
        },
    }
}
