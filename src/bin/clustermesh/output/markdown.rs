//! Findings as Markdown, for comments on pull requests and summaries of jobs.
//!
//! Everything foreign stands in code spans: there nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::rules::Finding;

use super::site::Sites;
use super::wording::{counts, title};
use super::{Report, plural};

/// What a comment may have, in bytes: GitHub takes 65,536 characters, and the caller may add some.
pub(super) const COMMENT: usize = 60_000;

/// How many findings of a severity are shown without being asked for.
const OPEN: usize = 10;

/// The longest text of a finding, in characters.
const SHOWN: usize = 500;

/// What is kept free for the ends of all lists, in bytes.
const RESERVE: usize = 1000;

/// Returns the page, of at most `limit` bytes unless that is too few for anything.
pub(super) fn text(report: &Report, limit: usize) -> String {
    let sites = Sites::new(report.files);
    let mut page = format!("### clustermesh: {}\n", counts(report.findings));
    for severity in [Severity::Error, Severity::Warning, Severity::Notice] {
        let findings = report.findings.iter();
        let findings: Vec<&Finding> = findings.filter(|it| it.severity == severity).collect();
        if !findings.is_empty() {
            list(&mut page, &findings, &sites, limit);
        }
    }
    page
}

/// Adds findings of one severity.
fn list(page: &mut String, findings: &[&Finding], sites: &Sites, limit: usize) {
    let severity = findings.first().map(|it| it.severity.to_string());
    let heading = plural(findings.len(), &severity.unwrap_or_default());
    let is_folded = OPEN < findings.len();
    let _ = if is_folded {
        // Inside HTML there is Markdown only after an empty line.
        write!(page, "\n<details>\n<summary>{heading}</summary>\n\n")
    } else {
        write!(page, "\n**{heading}**\n\n")
    };
    for (told, finding) in findings.iter().enumerate() {
        let item = item(finding, sites);
        if limit < page.len() + item.len() + RESERVE {
            let _ = writeln!(page, "- … and {} more", findings.len() - told);
            break;
        }
        page.push_str(&item);
    }
    if is_folded {
        page.push_str("\n</details>\n");
    }
}

fn item(finding: &Finding, sites: &Sites) -> String {
    let site = sites.first(finding);
    let place = match site.positions {
        Some(positions) => format!("{}:{}", site.path, positions.start.line),
        None => site.path,
    };
    let mut item = format!(
        "- {} **{}** {}\n",
        code(&place),
        finding.rule.name,
        code(&title(finding))
    );
    if let Some(help) = &finding.help {
        let _ = writeln!(item, "  - help: {}", code(help));
    }
    item
}

/// Returns a text as a code span, from which nothing in it gets out.
fn code(text: &str) -> String {
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
