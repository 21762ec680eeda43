//! Foreign texts in Markdown: in code, in which nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use super::style::plain;
use crate::diagnostic::escaped;
use crate::text::count;

/// The longest text that is shown, in characters.
const SHOWN: usize = 500;

/// Returns a text as a code span, from which nothing in it gets out.
pub fn code(text: &str) -> String {
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
pub fn prose(text: &str) -> String {
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
                continue;
            }
            let [before, value, after] = without_parentheses(word);
            page.push_str(before);
            add_code(&mut page, value);
            page.push_str(after);
        }
    }
    page
}

/// Returns a word, with the parentheses of a sentence that it begins or ends before and after it.
fn without_parentheses(word: &str) -> [&str; 3] {
    let value = word.trim_start_matches('(');
    let (before, value) = word.split_at(word.len() - value.len());
    let bare = value.trim_end_matches(['.', ':', ',', ';', ')']);
    let (bare, after) = value.split_at(bare.len());
    let is_sentence =
        !bare.is_empty() && !bare.contains('(') && (!before.is_empty() || after.contains(')'));
    if is_sentence { [before, bare, after] } else { ["", word, ""] }
}

/// Returns a text without colours as a block of code, from which nothing in it gets out, of about `limit`
/// bytes at most; nothing if it is empty.
pub fn fenced(block: &str, limit: usize) -> String {
    let shown = plain(block.trim_matches('\n'));
    if shown.is_empty() {
        return String::new();
    }
    let runs = shown.split(|character| character != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let mut page = format!("\n{fence}text\n");
    let lines = shown.lines().map(|it| (1, format!("{it}\n")));
    // The break of the last line does not count.
    let left_out = add_lines(&mut page, lines, limit.saturating_add(1));
    let _ = writeln!(page, "{fence}");
    add_rest(&mut page, left_out, "line");
    page
}

/// Adds rows to a page while there is room below `limit` bytes, and how many more there are.
pub fn add_rows(page: &mut String, rows: impl Iterator<Item = String>, limit: usize, noun: &str) {
    add_alike_rows(page, rows.map(|it| (1, it)), limit, noun);
}

/// Adds rows, each with the number of alike ones that it replaces, and how many more of these there are.
pub fn add_alike_rows(
    page: &mut String,
    rows: impl Iterator<Item = (usize, String)>,
    limit: usize,
    noun: &str,
) {
    let left_out = add_lines(page, rows, limit);
    add_rest(page, left_out, noun);
}

/// Adds lines while there is room, and returns the sum of the numbers of the others.
fn add_lines(
    page: &mut String,
    lines: impl Iterator<Item = (usize, String)>,
    limit: usize,
) -> usize {
    let mut left_out = 0;
    for (number, line) in lines {
        if left_out == 0 && page.len() + line.len() <= limit {
            page.push_str(&line);
        } else {
            left_out += number;
        }
    }
    left_out
}

fn add_rest(page: &mut String, left_out: usize, noun: &str) {
    if 0 < left_out {
        let more = count(left_out, &format!("more {noun}"));
        let _ = writeln!(page, "\n… and {more}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_a_block_of_code() {
        let text = "\n\u{1b}[1ma\u{1b}[0m\n```\n# b\n";
        assert_eq!(fenced(text, 100), "\n````text\na\n```\n# b\n````\n");
        assert_eq!(fenced("a\nb\nc\n", 11), "\n```text\na\n```\n\n… and 2 more lines\n");
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
            (
                "a removed: b (a/b.yaml:4 before) (a/b:5, c) (a:6) (x) f(a/b) (a/b(c)) ((#1)).",
                "a removed: b (`a/b.yaml:4` before) (`a/b:5`, c) (`a:6`) (x) `f(a/b)` `(a/b(c))` ((`#1`)).",
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
