//! Findings as Markdown, for comments on pull requests and summaries of jobs.
//!
//! All foreign text is in code spans, in which nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use anstream::adapter::strip_str;
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::text;

use super::Report;
use super::entry::{ReportEntry, select};
use super::repository_place::RepositoryPlaces;
use super::wording::{counts, title};

/// The largest size of a comment, in bytes: GitHub accepts 65,536 characters, and the caller may add
/// some.
pub(crate) const COMMENT: usize = 60_000;

/// The number of findings of a severity that are shown unfolded.
const OPEN: usize = 10;

/// The longest text of a finding, in characters.
const SHOWN: usize = 500;

/// The room for the ends of all lists, in bytes.
const RESERVE: usize = 1000;

/// Returns the page, of at most `limit` bytes unless that is too few for anything.
pub(super) fn text(report: &Report, limit: usize) -> String {
    let counts = counts(&report.entries());
    let heading = counts.as_deref().unwrap_or("no problems found");
    format!("### clustermesh: {heading}\n") + &lists(report, limit)
}

/// Returns the findings without a heading.
pub(super) fn lists(report: &Report, limit: usize) -> String {
    let places = RepositoryPlaces::new(report.files);
    let entries = report.entries();
    let mut page = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Notice] {
        let of_severity: Vec<&ReportEntry> = entries
            .iter()
            .filter(|it| it.finding.severity == severity)
            .collect();
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
    let mut item = format!(
        "- {} **{}** {}\n",
        code(&place),
        finding.rule.name(),
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

/// Returns a sentence in which only values are code spans: those in backticks, and every word with a character that may
/// mean something in Markdown or HTML, or make a link or a mention.
pub(crate) fn prose(text: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || ",;()'?- …→".contains(it);
    let is_word = |word: &str| {
        let word = word.trim_end_matches(['.', ':']);
        word.chars().all(is_plain)
    };
    let mut page = String::new();
    let add_code = |page: &mut String, text: &str| {
        // Two spans beside each other would be one.
        if page.ends_with('`') {
            page.push(' ');
        }
        page.push_str(&code(text));
    };
    for (number, part) in escaped(text, SHOWN).split('`').enumerate() {
        if number % 2 == 1 {
            if !part.is_empty() {
                add_code(&mut page, part);
            }
            continue;
        }
        for (place, word) in part.split(' ').enumerate() {
            if 0 < place {
                page.push(' ');
            }
            if is_word(word) {
                page.push_str(word);
            } else {
                add_code(&mut page, word);
            }
        }
    }
    page
}

/// Returns a text without colours as a block of code, from which nothing in it gets out, of about `limit`
/// bytes at most; nothing if it is empty.
pub(crate) fn fenced(block: &str, limit: usize) -> String {
    let shown = strip_str(block.trim_matches('\n')).to_string();
    if shown.is_empty() {
        return String::new();
    }
    let runs = shown.split(|character| character != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let mut page = format!("\n{fence}text\n");
    let mut left_out = 0;
    for line in shown.lines() {
        if left_out == 0 && page.len() + line.len() <= limit {
            let _ = writeln!(page, "{line}");
        } else {
            left_out += 1;
        }
    }
    let _ = writeln!(page, "{fence}");
    if 0 < left_out {
        let _ = writeln!(page, "\n… and {}", text::count(left_out, "more line"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_a_block_of_code() {
        let text = "\n\u{1b}[1ma\u{1b}[0m\n```\n# b\n";
        assert_eq!(fenced(text, 100), "\n````text\na\n```\n# b\n````\n");
        assert_eq!(
            fenced("a\nb\nc\n", 11),
            "\n```text\na\n```\n\n… and 2 more lines\n"
        );
        assert_eq!(fenced("\n", 100), "");
    }

    #[test]
    fn only_values_of_a_sentence_are_code() {
        for (text, page) in [
            (
                "the meshes of `HEAD` are missing, so no causes are listed (`--live`)",
                "the meshes of `HEAD` are missing, so no causes are listed (`--live`)",
            ),
            (
                "add --peers west=FILE: see <b> @x #1 [a](b) www.a.b *c* a_b.",
                "add --peers `west=FILE:` see `<b>` `@x` `#1` `[a](b)` `www.a.b` `*c*` `a_b.`",
            ),
            ("a `b", "a `b`"),
            ("a ``<b>`c`<d>", "a `<b>` `c` `<d>`"),
            ("a\n# b", "`a\\n#` b"),
        ] {
            assert_eq!(prose(text), page);
        }
    }

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
