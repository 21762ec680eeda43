//! Whole values: in YAML and JSON a string comes with its quotes, so text beside it would be outside
//! of them, and the value another one.

use super::{Format, SIZE_LIMIT};

/// Stand before and after each value in a result until it is checked. Unicode keeps these code points
/// for such uses: no text has them.
const START: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

/// The largest result with its marks, in bytes. Even values of one character are no more than a fourth of it.
pub(super) const MARKED_LIMIT: usize = 4 * SIZE_LIMIT;

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
    let mut before = LineStart::default();
    let mut parts = line.split(START);
    before.push(parts.next().unwrap_or_default());
    for part in parts {
        // A value has no line break, so that its end is on its line.
        let (_, after) = part.split_once(END).unwrap_or((part, ""));
        let is_whole = before.may_precede(format) && may_follow(after);
        if !(is_whole || format == Format::Yaml && before.is_comment) {
            return false;
        }
        // The text of the value is not syntax.
        before.push("x");
        before.push(after);
    }
    true
}

/// The beginning of a line, as far as it matters for the next value. A line can have a million values.
#[derive(Default)]
struct LineStart {
    /// The last character.
    end: Option<char>,
    /// The last character other than spaces.
    last: Option<char>,
    /// Whether something other than `-` and spaces is in it.
    has_text: bool,
    /// Whether a bracket is in it.
    has_bracket: bool,
    /// The number of double quotes: one is open if it is odd.
    quotes: usize,
    /// Whether a comment has begun, if this is YAML.
    is_comment: bool,
}

impl LineStart {
    fn push(&mut self, text: &str) {
        for next in text.chars() {
            self.is_comment |= next == '#' && (self.last.is_none() || self.end == Some(' '));
            self.has_bracket |= matches!(next, '[' | '{');
            self.quotes += usize::from(next == '"');
            if !next.is_whitespace() {
                self.has_text |= next != '-';
                self.last = Some(next);
            }
            self.end = Some(next);
        }
    }

    /// Returns whether a value may follow: at the beginning of a line, of a list item, or of the value of a
    /// key.
    fn may_precede(&self, format: Format) -> bool {
        let is_apart = format == Format::Json || self.end.is_some_and(char::is_whitespace);
        self.quotes.is_multiple_of(2)
            && match self.last {
                None | Some('[' | '{') => true,
                Some(':') => is_apart,
                Some('-') => is_apart && !self.has_text,
                Some(',') => format == Format::Json || self.has_bracket,
                Some(_) => false,
            }
    }
}

fn may_follow(after: &str) -> bool {
    // The text around a value may not change with the value, and two values in one place are
    // invalid.
    matches!(after.trim_start().chars().next(), None | Some(']' | '}' | ',' | ':' | '#'))
}
