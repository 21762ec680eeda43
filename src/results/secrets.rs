//! Values in our files that are never shown.
//!
//! The files are read as text, line by line: what is wrong with them may be their syntax.

use std::ops::Range;

use crate::diagnostic::escaped;

/// The endings of keys whose values are secrets, in small letters and digits only.
const KEYS: [&str; 7] =
    ["presharedkey", "privatekey", "clientkeydata", "token", "password", "passwd", "passphrase"];

/// A secret that is shorter is looked for only between backticks: it may be part of any word.
const LONG: usize = 6;

/// A quote may be cut. This much of a secret, in characters, is known again.
const KNOWN: usize = 12;

/// The text that replaces a secret in messages.
const WITHHELD: &str = "(secret)";

/// The beginning and the end of a private key in PEM.
const PEM: (&str, &str, &str) = ("-----BEGIN", "PRIVATE KEY", "-----END");

/// The secrets of a text.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    spans: Vec<Range<usize>>,
    /// The lines of each: they are as long as a file may be, and findings are many.
    lines: Vec<Range<usize>>,
}

impl Secrets {
    /// Finds the secrets of a text: of a YAML or JSON file, or of something like it.
    pub(super) fn find(text: &str) -> Self {
        let mut spans = private_keys(text);
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let separators = line.match_indices([':', '=']);
            for (at, _) in separators.filter(|(at, _)| is_secret_key(&line[..*at])) {
                let value = start + at + 1;
                spans.push(value..value + length(&text[value..], line, at));
            }
            start += line.len();
        }
        spans.retain(|span| !span.is_empty());
        let mut last = 0..0;
        let lines = spans.iter().map(|span| {
            if last.is_empty() || span.start < last.start || last.end < span.end {
                last = lines_of(text, span);
            }
            last.clone()
        });
        Self { lines: lines.collect(), spans }
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the text with every secret replaced by a text of the same length, so that all spans
    /// stay valid.
    pub(super) fn masked(&self, text: &str) -> String {
        let mut is_secret = vec![false; text.len()];
        for span in &self.spans {
            if let Some(bytes) = is_secret.get_mut(span.clone()) {
                bytes.fill(true);
            }
        }
        text.char_indices()
            .map(|(at, letter)| match letter.len_utf8() {
                _ if !is_secret.get(at).copied().unwrap_or(false) => letter,
                _ if letter.is_whitespace() => letter,
                1 => '*',
                2 => '\u{d7}',
                3 => '\u{2022}',
                _ => '\u{1f512}',
            })
            .collect()
    }

    /// Returns a message about a place in the text without the secrets there.
    pub(super) fn strike(&self, text: &str, place: &Range<usize>, message: &str) -> String {
        let mut struck = message.to_owned();
        let secrets = self.spans.iter().zip(&self.lines);
        let beside = secrets.filter(|(_, it)| place.start <= it.end && it.start <= place.end);
        for secret in beside.filter_map(|(span, _)| text.get(span.clone())) {
            for word in words(secret) {
                struck = strike(&struck, word);
            }
        }
        struck
    }
}

/// Returns the lines of a span.
fn lines_of(text: &str, span: &Range<usize>) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let after = text.get(span.end..).unwrap_or_default();
    let end = span.end + after.find('\n').unwrap_or(after.len());
    start..end
}

/// Returns the values of which a secret consists: itself, or those of a list or of lines.
fn words(secret: &str) -> impl Iterator<Item = &str> {
    let trimmed = |it: &str| -> bool { !it.is_empty() };
    secret
        .split(['\n', ','])
        .map(|part| part.trim_matches(|it: char| it.is_whitespace() || "\"'-[]{}|>&!".contains(it)))
        .filter(move |part| trimmed(part))
}

fn strike(message: &str, secret: &str) -> String {
    let shown = escaped(secret, usize::MAX);
    let mut struck = message.replace(&format!("`{shown}`"), &format!("`{WITHHELD}`"));
    if LONG <= shown.chars().count() {
        struck = struck.replace(&shown, WITHHELD);
    }
    // A long one may have been cut.
    let beginning: String = shown.chars().take(KNOWN).collect();
    while KNOWN < shown.chars().count()
        && let Some(start) = struck.find(&beginning)
    {
        let end = struck[start..].find('`').map_or(struck.len(), |end| start + end);
        struck.replace_range(start..end, WITHHELD);
    }
    struck
}

/// Returns whether what stands before a separator ends with the name of a secret.
fn is_secret_key(before: &str) -> bool {
    let before = before.trim_end();
    let before = before.strip_suffix(['"', '\'', '`']).unwrap_or(before);
    let is_part = |it: char| it.is_alphanumeric() || "-_. ".contains(it);
    let start = before
        .char_indices()
        .rev()
        .find(|&(_, letter)| !is_part(letter))
        .map_or(0, |(at, letter)| at + letter.len_utf8());
    let name: String = before[start..]
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|it| it.to_ascii_lowercase())
        .collect();
    let name = name.strip_suffix('s').unwrap_or(&name);
    KEYS.iter().any(|key| name.ends_with(key))
}

/// Returns how long a value is that begins the text, after the separator at this place of its line.
fn length(text: &str, line: &str, at: usize) -> usize {
    let value = text.trim_start();
    let start = text.len() - value.len();
    if let Some(quote) = value.chars().next().filter(|it| matches!(it, '"' | '\'')) {
        return start + quoted(value, quote);
    }
    let key = &line[..at];
    let is_flow = key.contains(['{', '[', '}', ']', ','])
        || key.trim_start().starts_with('"') && line.trim_end().ends_with(',');
    let rest = text.lines().next().unwrap_or_default();
    if is_flow && !rest.trim_start().starts_with(['{', '[']) {
        return rest.find([',', '}', ']']).unwrap_or(rest.len());
    }
    // Lines with more indentation belong to it, and so do items of a list without more.
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let own = indent(line);
    let first = text.split_inclusive('\n').next().map_or(0, str::len);
    let is_open = rest.trim().is_empty();
    let below = text[first..].split_inclusive('\n').take_while(|it| {
        let is_item = is_open && indent(it) == own && it.trim_start().starts_with("- ");
        it.trim().is_empty() || own < indent(it) || is_item
    });
    first + below.map(str::len).sum::<usize>()
}

/// Returns how long a text in quotes is, up to its end where they are never closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Finds private keys in PEM, under any key.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    let (begin, kind, end) = PEM;
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(begin).map(|at| from + at) {
        let body = start + begin.len();
        from = body;
        // The kind of object is named between two rows of five dashes.
        let name = text[body..].split("-----").next().unwrap_or_default();
        if !name.contains(kind) {
            continue;
        }
        let stop = text[body..].find(end).map_or(text.len(), |at| body + at);
        spans.push(body + name.len()..stop);
        from = stop;
    }
    spans
}

/// Returns whether a text has a private key in PEM.
pub(super) fn has_private_key(text: &str) -> bool {
    !private_keys(text).is_empty()
}

/// Returns a message without private keys in PEM.
pub(super) fn without_private_keys(message: &str) -> String {
    let mut struck = message.to_owned();
    for span in private_keys(message).into_iter().rev() {
        struck.replace_range(span, WITHHELD);
    }
    struck
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let masked = Secrets::find(text).masked(text);
        assert_eq!(masked.len(), text.len());
        masked
    }

    #[test]
    fn masks_values_and_nothing_else() {
        for (text, shown) in [
            ("token: abc\nname: x\n", "token: ***\nname: x\n"),
            ("- password: 'a\n  b' # c\n", "- password: **\n  ** # c\n"),
            ("presharedKey: |\n  abc\n\n  def\nx: y\n", "presharedKey: *\n  ***\n\n  ***\nx: y\n"),
            ("private-key:\n- abc\n- d\nx: y\n", "private-key:\n* ***\n* *\nx: y\n"),
            ("{a: 1, id_token: x y, b: 2}", "{a: 1, id_token: * *, b: 2}"),
            (r#"{"PRIVATE KEY":"a\"b","b":2}"#, r#"{"PRIVATE KEY":******,"b":2}"#),
            ("{\n  \"token\": 12345,\n  \"b\": 2\n}", "{\n  \"token\": *****,\n  \"b\": 2\n}"),
            ("{\"token\":\n \"abc\", \"b\": 2}", "{\"token\":\n *****, \"b\": 2}"),
            ("x: |\n  PrivateKey = abc=\n", "x: |\n  PrivateKey = ****\n"),
            ("accessTokens: [a, b]\nx: y\n", "accessTokens: *** **\nx: y\n"),
            ("passwords: ä€😀\n", "passwords: \u{d7}\u{2022}\u{1f512}\n"),
            ("publicKey: abc\ntokenFile: /x\n", "publicKey: abc\ntokenFile: /x\n"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn masks_private_keys() {
        let text =
            "x:\n  -----BEGIN EC PRIVATE KEY-----\n  ab\n  -----END EC PRIVATE KEY-----\ny: 1\n";
        assert_eq!(
            masked(text),
            text.replace("ab", "**").replace("KEY-----\n  *", "KEY*****\n  *")
        );
        let public = "-----BEGIN PUBLIC KEY-----\nab\n-----END PUBLIC KEY-----\n";
        assert_eq!(masked(public), public);
        let cut = "-----BEGIN PRIVATE KEY-----\\nab";
        assert_eq!(masked(cut), "-----BEGIN PRIVATE KEY*********");
    }

    #[test]
    fn strikes_secrets_from_messages() {
        let text = "token: ab\npassword: correct horse battery staple\n";
        let secrets = Secrets::find(text);
        let struck = |message| secrets.strike(text, &(0..text.len()), message);
        assert_eq!(struck("`ab` is above"), "`(secret)` is above");
        assert_eq!(struck("found `correct horse battery staple`"), "found `(secret)`");
        assert_eq!(struck("found `correct horse…`, an x"), "found `(secret)`, an x");
        assert_eq!(secrets.strike(text, &(0..1), "`correct horse`"), "`correct horse`");
        assert_eq!(
            without_private_keys("`-----BEGIN PRIVATE KEY-----\\nab`"),
            "`-----BEGIN PRIVATE KEY(secret)"
        );
    }
}
