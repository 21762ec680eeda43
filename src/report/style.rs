//! Styles of a terminal: bold and coloured texts, and the same texts without them.

use anstyle::{AnsiColor, Style};

/// Returns a bold text.
pub fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}

/// Returns a text in a colour.
pub fn coloured(colour: AnsiColor, text: &str) -> String {
    styled(colour.on_default(), text)
}

/// Returns a text without its styles. Texts from outside have no control characters, because they are escaped.
pub fn plain(text: &str) -> String {
    plain_parts(text).collect()
}

/// Returns the parts of a text between its styles.
pub(super) fn plain_parts(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = text.split('\u{1b}');
    let start = parts.next().into_iter();
    start.chain(parts.map(|it| it.split_once('m').map_or(it, |(_, rest)| rest)))
}

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
