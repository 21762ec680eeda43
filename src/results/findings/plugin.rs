//! Failures for Argo CD, which shows standard error of a plugin beside the Application: without colours
//! and excerpts, and short.

use std::fmt::Write as _;

use crate::diagnostic::{Finding, escaped};

use super::entry::{ReportEntry, select};
use super::{Report, concise, wording};

/// The most bytes of a failure.
const LIMIT: usize = 8 << 10;

/// The number of them in the last lines.
const END: usize = 200;

/// The number of findings that do not fail by themselves and are shown.
const OTHERS: usize = 10;

/// The most characters of a line.
const LINE: usize = 1000;

/// Returns why nothing is delivered: the most severe findings, each with what to do, and how many
/// more there are.
pub fn refusal(report: &Report, fails: impl Fn(&Finding) -> bool) -> String {
    let entries = report.entries();
    let all: Vec<&ReportEntry> = entries.iter().collect();
    let (mut room, mut others) = (LIMIT - END, 0);
    let selection = select(&all, |entry| {
        others += usize::from(!fails(entry.finding));
        let lines = lines(report, entry, None);
        let fits = lines.len() <= room && others <= OTHERS;
        room = room.saturating_sub(lines.len());
        fits
    });
    let mut text = String::new();
    let shown = selection.shown.iter();
    let next = selection.shown.iter().skip(1).map(Some).chain([None]);
    for (entry, next) in shown.zip(next) {
        text.push_str(&lines(report, entry, next.copied()));
    }
    let left_out = selection.left_out.len();
    if 0 < left_out {
        let _ = writeln!(text, "and {left_out} more; run `clustermesh validate`");
    }
    let counts = wording::counts(&entries);
    text.extend(counts.map(|it| it + "\n"));
    bounded(text)
}

/// Returns why it could not be done.
pub fn failure(error: &str) -> String {
    bounded(format!("error: {}\n", escaped(error, LIMIT)))
}

/// Returns the lines of an entry; its help only if the next one has another.
fn lines(report: &Report, entry: &ReportEntry, next: Option<&ReportEntry>) -> String {
    let mut text = escaped(&concise::line(report, entry), LINE);
    text.push('\n');
    let help = entry
        .finding
        .help
        .as_ref()
        .filter(|it| next.is_none_or(|next| next.finding.help.as_ref() != Some(*it)));
    if let Some(help) = help {
        let _ = writeln!(text, "  help: {}", escaped(help, LINE));
    }
    text
}

/// Cuts a text at the limit.
fn bounded(mut text: String) -> String {
    let boundary = (0..=LIMIT).rev().find(|it| text.is_char_boundary(*it));
    text.truncate(boundary.unwrap_or_default());
    text
}
