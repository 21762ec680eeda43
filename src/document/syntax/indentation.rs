//! Indentation: lines that are aligned with no line above them.

use std::ops::Range;

/// The longest key that is named in a message, in bytes.
const LONGEST_KEY: usize = 64;

/// A line with an indentation that no line above it has.
pub(super) struct Misindented<'t> {
    /// The first token of the line.
    token: Token<'t>,
    /// The tokens that it could be aligned with, the deepest first.
    candidates: Vec<Token<'t>>,
    /// The key of an item whose dash has its indentation, and the dash.
    item: Option<[Token<'t>; 2]>,
    /// The key that should have the indentation of the line.
    dedented: Option<DedentedStart<'t>>,
    /// The key above an item that belongs to it, if the key has a value in its own line.
    filled: Option<Token<'t>>,
}

/// A key or the dash of a list item, and its position.
#[derive(Clone, Copy)]
struct Token<'t> {
    /// The key; nothing for a dash.
    key: Option<&'t str>,
    /// The number of characters before it.
    column: usize,
    /// The line, counted from one.
    line: usize,
    /// Whether nothing follows it in its line.
    is_empty: bool,
    /// The empty key before it with its indentation, and the first key after that one.
    under: Option<DedentedStart<'t>>,
}

/// A key without a value, and the key after it, which was probably meant to be its first field.
#[derive(Clone, Copy)]
struct DedentedStart<'t> {
    parent: &'t str,
    first: &'t str,
    line: usize,
}

impl<'t> Misindented<'t> {
    /// Looks at the line of an error at a byte: whether its first key or dash is aligned with none above it.
    pub(super) fn find(text: &'t str, error: usize) -> Option<Self> {
        let start = text.get(..error)?.rfind('\n').map_or(0, |end| end + 1);
        let mut open: Vec<Token> = Vec::new();
        let mut number = 1;
        for line in text.get(..start)?.lines() {
            if line.starts_with("---") || line.starts_with("...") {
                open.clear();
            }
            for mut token in tokens(line, number) {
                token.under = dedented(&open, token);
                // A list may have the indentation of the key that it belongs to.
                open.retain(|it: &Token| {
                    it.column < token.column
                        || it.column == token.column && it.key.is_some() && token.key.is_none()
                });
                open.push(token);
            }
            number += 1;
        }
        let line = text.get(start..)?.lines().next()?;
        let token = tokens(line, number).into_iter().next()?;
        // Of an item, the parser may report what follows the dash.
        let length = token.key.map_or(2, str::len);
        if token.column + length < error - start {
            return None;
        }
        let item = open.iter().find(|it| it.column == token.column).and_then(|dash| {
            let line = text.lines().nth(dash.line - 1)?;
            let [.., key] = tokens(line, dash.line)[..] else { return None };
            Some([key, *dash])
        });
        open.retain(|it| it.key.is_some() == token.key.is_some());
        let above = text.get(..start)?.lines().zip(1..).filter(|it| !it.0.trim().is_empty());
        let above = above.last().filter(|it| !is_empty(it.0));
        let filled = above.and_then(|(line, number)| tokens(line, number).pop());
        let filled = filled
            .filter(|it| token.key.is_none() && it.key.is_some() && it.column <= token.column);
        let is_aligned = open.iter().any(|it| it.column == token.column);
        let above = open.iter().rfind(|it| token.column < it.column);
        let below = open.iter().rfind(|it| it.column < token.column);
        let candidates: Vec<Token> = above.into_iter().chain(below).copied().collect();
        let dedented = below.and_then(|it| it.under).filter(|_| token.key.is_some());
        let has_place = !candidates.is_empty() || filled.is_some();
        (!is_aligned && has_place).then_some(Self { token, candidates, item, dedented, filled })
    }

    /// Returns the problem as a message.
    pub(super) fn message(&self) -> String {
        let spaces = spaces(self.token.column);
        if let Some(DedentedStart { parent, first, line }) = self.dedented {
            return format!("`{first}` in line {line} is not indented, so `{parent}` is empty");
        }
        if let Some(Token { key: Some(key), line, .. }) = self.filled {
            return format!("`{key}` has a value in line {line}, so no list items can follow");
        }
        match self.token.key {
            Some(key) => {
                format!("the indentation of `{key}` ({spaces}) matches no key above it")
            }
            None => {
                format!("the indentation of this list item ({spaces}) matches no list above it")
            }
        }
    }

    /// Returns what to write instead.
    pub(super) fn help(&self) -> String {
        if let Some(DedentedStart { first, line, .. }) = self.dedented {
            let spaces = spaces(self.token.column);
            return format!("indent `{first}` in line {line} by {spaces}");
        }
        if let Some(Token { line, .. }) = self.filled {
            return format!(
                "remove the value in line {line} or the list items below it; if the line above them was deleted, restore it"
            );
        }
        let candidates: Vec<String> = self
            .candidates
            .iter()
            .map(|it| {
                let (spaces, line) = (spaces(it.column), it.line);
                match it.key {
                    Some(key) => format!("by {spaces}, like `{key}` in line {line}"),
                    None => format!("by {spaces}, like the list item in line {line}"),
                }
            })
            .collect();
        let help = format!("indent it {}", candidates.join(", or "));
        match (self.token.key, self.item) {
            (Some(own), Some([first, dash])) if first.key == Some(own) => {
                format!("write `- ` before `{own}` to begin an item, as in line {}", dash.line)
            }
            (Some(_), Some([_, dash])) => {
                format!(
                    "{help}; or write `- ` before it to begin an item, as in line {}",
                    dash.line
                )
            }
            (Some(_), None) if self.candidates.iter().all(|it| it.column < self.token.column) => {
                format!("{help}; or restore the line that was deleted above it")
            }
            _ => help,
        }
    }

    /// Returns the bytes of the first token of the line of an error, or of the key that causes it.
    pub(super) fn bytes(&self, text: &str, error: usize) -> Range<usize> {
        if let Some(DedentedStart { first, line, .. }) = self.dedented {
            let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
            let start = start + text.get(start..).and_then(|it| it.find(first)).unwrap_or_default();
            return start..start + first.len();
        }
        let start = text.get(..error).unwrap_or_default().rfind('\n').map_or(0, |end| end + 1)
            + self.token.column;
        start..start + self.token.key.map_or(1, str::len)
    }
}

/// Returns the empty key that a key was probably meant to be part of, as others after it that are not indented either.
fn dedented<'t>(open: &[Token<'t>], token: Token<'t>) -> Option<DedentedStart<'t>> {
    let before = open.iter().rfind(|it| it.column == token.column && it.key.is_some())?;
    let is_last = open.last().is_some_and(|it| it.line == before.line);
    match (before.key, token.key) {
        (Some(parent), Some(first)) if before.is_empty && is_last => {
            Some(DedentedStart { parent, first, line: token.line })
        }
        _ => before.under,
    }
}

/// Returns whether a line has no value behind its key.
fn is_empty(line: &str) -> bool {
    let value = line.split_once(':').map_or("", |it| it.1.trim_start());
    value.is_empty() || value.starts_with('#')
}

fn spaces(number: usize) -> String {
    match number {
        1 => "1 space".to_owned(),
        number => format!("{number} spaces"),
    }
}

/// Returns the dashes and the key that a line starts with.
fn tokens(line: &str, number: usize) -> Vec<Token<'_>> {
    let token =
        |key, column| Token { key, column, line: number, is_empty: is_empty(line), under: None };
    let mut tokens = Vec::new();
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix('-') {
        if !item.is_empty() && !item.starts_with([' ', '\r']) {
            return tokens;
        }
        tokens.push(token(None, line.len() - rest.len()));
        rest = item.trim_start_matches(' ');
    }
    let Some((key, value)) = rest.split_once(':') else {
        return tokens;
    };
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/');
    let is_key = !key.is_empty() && key.len() <= LONGEST_KEY && key.chars().all(is_plain);
    if is_key && (value.is_empty() || value.starts_with([' ', '\r'])) {
        tokens.push(token(Some(key), line.len() - rest.len()));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, line: usize) -> Option<String> {
        let before = text.split_inclusive('\n').take(line - 1);
        let start: usize = before.map(str::len).sum();
        let rest = &text[start..];
        let indent = rest.len() - rest.trim_start_matches(' ').len();
        let found = Misindented::find(text, start + indent)?;
        Some(format!("{}; {}", found.message(), found.help()))
    }

    #[test]
    fn a_key_is_compared_with_the_open_keys_above_it() {
        let text = "spec:\n  clusters:\n    - name: west\n     podCIDRs: [10.0.0.0/16]\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"the indentation of `podCIDRs` (5 spaces) matches no key above it; indent it by 6 spaces, like `name` in line 3, or by 2 spaces, like `clusters` in line 2");
        let text = "spec:\n  clusters:\n    - name: west\n    podCIDRs: [10.0.0.0/16]\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"the indentation of `podCIDRs` (4 spaces) matches no key above it; indent it by 6 spaces, like `name` in line 3, or by 2 spaces, like `clusters` in line 2; or write `- ` before it to begin an item, as in line 3");
        let text = "metadata:\n  name: x\n spec:\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of `spec` (1 space) matches no key above it; indent it by 2 spaces, like `name` in line 2, or by 0 spaces, like `metadata` in line 1");
        let text = "a:\n  b: 1\n    c: 2\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of `c` (4 spaces) matches no key above it; indent it by 2 spaces, like `b` in line 2; or restore the line that was deleted above it");
    }

    #[test]
    fn a_key_that_leaves_the_one_above_it_empty_is_the_cause() {
        let text = "spec:\nclusters:\n    - name: west\n  groups:\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"`clusters` in line 2 is not indented, so `spec` is empty; indent `clusters` in line 2 by 2 spaces");
        let text = "spec: # all\na: 1\nb: 2\n  c: 3\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"`a` in line 2 is not indented, so `spec` is empty; indent `a` in line 2 by 2 spaces");
    }

    #[test]
    fn an_item_is_compared_with_the_open_lists_above_it() {
        let text = "a:\n  - b: 1\n - b: 2\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of this list item (1 space) matches no list above it; indent it by 2 spaces, like the list item in line 2");
    }

    #[test]
    fn an_item_needs_the_key_of_its_list() {
        let text = "spec:\n  undeclared: Deny\n  - name: x\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"`undeclared` has a value in line 2, so no list items can follow; remove the value in line 2 or the list items below it; if the line above them was deleted, restore it");
    }

    #[test]
    fn aligned_lines_and_values_are_not_reported() {
        for (text, line) in [
            ("a:\n  b: 1\n  c: 2\n", 3),
            ("a:\n- b\n- c\n", 3),
            ("a:\n- b\nc: 1\n", 3),
            ("a: 1\n", 1),
            ("a:\n  text\n", 2),
            ("a:\n  b: 1\n---\n c: 1\n", 4),
        ] {
            assert_eq!(report(text, line), None, "{text}");
        }
    }
}
