//! Whole values: in YAML and JSON a string comes with its quotes, so text beside it would be outside
//! of them, and the value another one.

use super::Format;

/// Stand before and after each value in a result until it is checked. Unicode keeps these code points
/// for such uses: no text has them.
const START: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

/// Returns a value with its marks.
pub(super) fn marked(value: &str) -> String {
    format!("{START}{}{END}", without_marks(value))
}

/// Returns a template without characters that would be taken for marks.
pub(super) fn template(text: &str) -> String {
    without_marks(text)
}

fn without_marks(text: &str) -> String {
    text.replace([START, END], "\u{fffd}")
}

/// Returns a result without its marks.
///
/// # Errors
/// The line, counted from one, of a value with other text next to it.
pub(super) fn result(marked: &str, format: Format) -> Result<String, usize> {
    for (number, line) in marked.lines().enumerate() {
        if !has_whole_values(line, format) {
            return Err(number + 1);
        }
    }
    Ok(marked.replace([START, END], ""))
}

fn has_whole_values(line: &str, format: Format) -> bool {
    let mut before = String::new();
    let mut parts = line.split(START);
    before.push_str(parts.next().unwrap_or_default());
    for part in parts {
        // A value has no line break, so that its end is on its line.
        let (_, after) = part.split_once(END).unwrap_or((part, ""));
        let is_whole = may_precede(&before, format) && may_follow(after);
        if !(is_whole || is_comment(&before, format)) {
            return false;
        }
        // The text of the value is not syntax.
        before.push('x');
        before.push_str(after);
    }
    true
}

fn is_comment(before: &str, format: Format) -> bool {
    let before = before.trim_start();
    format == Format::Yaml && (before.starts_with('#') || before.contains(" #"))
}

/// Returns whether a value may stand after a text: at the beginning of a line, of a list item, or of
/// the value of a key.
fn may_precede(before: &str, format: Format) -> bool {
    let text = before.trim_end();
    let is_apart = text.len() < before.len() || format == Format::Json;
    let is_quoted = text.matches('"').count() % 2 == 1;
    !is_quoted
        && match text.chars().last() {
            None | Some('[' | '{') => true,
            Some(':') => is_apart,
            Some('-') => is_apart && text.chars().all(|it| it == '-' || it == ' '),
            Some(',') => format == Format::Json || text.contains(['[', '{']),
            Some(_) => false,
        }
}

fn may_follow(after: &str) -> bool {
    // The text around a value may not change with the value, and two values in one place are
    // invalid.
    matches!(
        after.trim_start().chars().next(),
        None | Some(']' | '}' | ',' | ':' | '#')
    )
}
