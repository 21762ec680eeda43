//! Escapes: foreign texts that reach a terminal, a log or a page.

use std::fmt::{self, Write as _};

/// A foreign text in backticks. Everything that could control a terminal or mislead a reader is
/// escaped, also backticks, and a long text is truncated. So the next backtick is the end of the text.
pub struct Quoted<'a>(pub &'a str);

/// The number of characters of a foreign text that are shown.
const SHOWN: usize = 120;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let text = escaped(self.0, SHOWN).replace('`', r"\u{60}");
        write!(formatter, "`{text}`")
    }
}

/// Returns `text` fit for a terminal and for the log of a CI job: control characters, line breaks,
/// bidirectional controls and other invisible ones as `\u{…}`, and at most `limit` characters.
pub fn escaped(text: &str, limit: usize) -> String {
    // Most texts are plain.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'[';
    if text.len() <= limit && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len().min(limit));
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            shown.push('…');
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_deceptive(character) || (character == '[' && is_command(&shown)) => {
                shown.extend(character.escape_unicode());
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns a foreign name without quotes, escaped and cut where it gets long. A backtick in it would begin a quote.
pub fn bare(name: &str) -> String {
    escaped(name, SHOWN).replace('`', r"\u{60}")
}

/// Returns a character in words, where it might be mistaken for another one.
pub fn character(character: char) -> String {
    match character {
        ' ' => "a space".to_owned(),
        ',' => "a comma".to_owned(),
        '!'..='~' => Quoted(character.encode_utf8(&mut [0; 4])).to_string(),
        _ => format!("U+{:04X}", u32::from(character)),
    }
}

/// Returns JSON that hides nothing from a person who reads it raw, and that cannot control a
/// terminal or the runner of a CI job. Parsers get the same values.
pub fn plain_json(json: String) -> String {
    // Line breaks are those of the JSON itself: in texts they are escaped already. All other
    // characters to escape occur only in texts.
    let is_hidden = |it: char| it != '\n' && is_deceptive(it);
    if !json.contains(is_hidden) && !json.contains("##") {
        return json;
    }
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        if !(is_hidden(character) || character == '[' && is_command(&plain)) {
            plain.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(plain, "\\u{unit:04x}");
        }
    }
    plain
}

/// Returns whether a bracket here would make a command of the text: runners of CI jobs obey
/// `##[…]` and `##vso[…]` anywhere in a line of a log.
pub fn is_command(before: &str) -> bool {
    let name = |character: char| character.is_ascii_alphanumeric();
    before.trim_end_matches(name).ends_with("##")
}

/// Returns whether a character steers a terminal, or hides or reorders what is around it.
pub fn is_deceptive(character: char) -> bool {
    // Nearly all characters of large results are of this kind.
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_steers_the_terminal() {
        let text = "a\u{1b}[31mb\u{202e}c\u{9b}d\ne";
        assert_eq!(Quoted(text).to_string(), "`a\\u{1b}[31mb\\u{202e}c\\u{9b}d\\ne`");
    }

    #[test]
    fn nothing_foreign_commands_a_runner() {
        for (text, shown) in [
            ("##[add-mask]x", "##\\u{5b}add-mask]x"),
            ("a ###vso[task]", "a ###vso\\u{5b}task]"),
            ("#[a] ## [b] c[0]", "#[a] ## [b] c[0]"),
        ] {
            assert_eq!(escaped(text, 100), shown);
        }
    }

    #[test]
    fn json_stays_what_it_is_without_showing_it() {
        let texts = ["a\u{202e}b\u{e0041}\u{1b}\u{7f}\u{9b}", "##[a]", "# [b]"];
        let json = plain_json(serde_json::to_string_pretty(&texts).unwrap());
        assert_eq!(
            json,
            "[\n  \"a\\u202eb\\udb40\\udc41\\u001b\\u007f\\u009b\",\n  \"##\\u005ba]\",\n  \"# [b]\"\n]"
        );
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), texts);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(Quoted(&"x".repeat(500)).to_string().chars().count(), 123);
    }
}
