//! Findings as Markdown, for comments on pull requests and summaries of jobs.
//!
//! All foreign text is in code spans, in which nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::text;

use super::Report;
use super::entry::{ReportEntry, select};
use super::site::RepositorySites;
use super::wording::{counts, title};

/// The largest size of a comment, in bytes: GitHub accepts 65,536 characters, and the caller may add
/// some.
pub(super) const COMMENT: usize = 60_000;

/// The number of findings of a severity that are shown unfolded.
const OPEN: usize = 10;

/// The longest text of a finding, in characters.
const SHOWN: usize = 500;

/// The room for the ends of all lists, in bytes.
const RESERVE: usize = 1000;

/// Returns the page, of at most `limit` bytes unless that is too few for anything.
pub(super) fn text(report: &Report, limit: usize) -> String {
    let sites = RepositorySites::new(report.files);
    let entries = report.entries();
    let counts = counts(&entries);
    let heading = counts.as_deref().unwrap_or("no problems found");
    let mut page = format!("### clustermesh: {heading}\n");
    for severity in [Severity::Error, Severity::Warning, Severity::Notice] {
        let of_severity: Vec<&ReportEntry> = entries
            .iter()
            .filter(|it| it.finding.severity == severity)
            .collect();
        if !of_severity.is_empty() {
            list(&mut page, severity, &of_severity, &sites, limit);
        }
    }
    page
}

/// Adds entries of one severity, as many as there is room for.
fn list(
    page: &mut String,
    severity: Severity,
    entries: &[&ReportEntry],
    sites: &RepositorySites,
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
        length += item(entry, sites).len();
        length <= limit
    });
    for entry in selection.shown {
        page.push_str(&item(entry, sites));
    }
    let left_out = selection.left_out.len();
    if 0 < left_out {
        let _ = writeln!(page, "- … and {left_out} more");
    }
    if is_folded {
        page.push_str("\n</details>\n");
    }
}

fn item(entry: &ReportEntry, sites: &RepositorySites) -> String {
    let finding = entry.finding;
    let site = sites.first(finding);
    let place = match site.positions {
        Some(positions) => format!("{}:{}", site.path, positions.start.line),
        None => site.path,
    };
    let mut item = format!(
        "- {} **{}** {}\n",
        code(&place),
        finding.rule.name,
        code(&title(entry))
    );
    if let Some(help) = &finding.help {
        let _ = writeln!(item, "  - help: {}", code(help));
    }
    item
}

/// Returns a text as a code span, from which nothing in it gets out.
pub(crate) fn code(text: &str) -> String {
    let text = escaped(text, SHOWN);
    let runs = text.split(|character| character != '`').map(str::len);
    match runs.max().unwrap_or(0) {
        0 => format!("`{text}`"),
        longest => {
            let fence = "`".repeat(longest + 1);
            // The spaces do not belong to it; they keep its own backticks off the fence.
            format!("{fence} {text} {fence}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_a_code_span() {
        for (text, span) in [
            ("a|b <img> @x", "`a|b <img> @x`"),
            ("`a`", "`` `a` ``"),
            ("a``` `b", "```` a``` `b ````"),
            ("a\n\n# b\u{202e}", "`a\\n\\n# b\\u{202e}`"),
        ] {
            assert_eq!(code(text), span);
        }
    }
}
