//! Wrapping: texts that fit the terminal. Pipes and files get every text in one line, for `grep` and
//! for the logs of CI jobs.

/// The fewest columns for a text, however narrow the terminal is.
const NARROW: usize = 40;

/// The width of the stream to which a text is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Width(Option<usize>);

impl Width {
    /// Returns a width of this many columns, or one without a limit.
    pub fn new(columns: impl Into<Option<usize>>) -> Self {
        Self(columns.into())
    }

    /// Returns this width, or less.
    #[must_use]
    pub fn at_most(self, columns: usize) -> Self {
        Self(self.0.map(|it| it.min(columns)))
    }

    /// Returns the number of columns, if the stream is a terminal.
    pub fn columns(self) -> Option<usize> {
        self.0
    }

    /// Breaks the lines of a text between words, so that each fits behind `before` characters.
    pub fn wrapped(self, before: usize, text: &str) -> String {
        let Some(columns) = self.0 else {
            return text.to_owned();
        };
        let room = columns.saturating_sub(before).max(NARROW);
        let lines: Vec<String> = text.split('\n').map(|it| broken(it, room)).collect();
        lines.join("\n")
    }

    /// Breaks a text that begins behind `indent` characters, and indents all its lines as far.
    pub fn hanging(self, indent: usize, text: &str) -> String {
        let below = format!("\n{}", " ".repeat(indent));
        self.wrapped(indent, text).replace('\n', &below)
    }
}

/// Breaks a text between words into lines of at most `room` characters, if its words are not longer.
pub fn broken(text: &str, room: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if 0 < used {
            let fits = used + 1 + length <= room;
            wrapped.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        wrapped.push_str(word);
        used += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_on_a_terminal_only() {
        let text = "a text of several words that is longer than forty columns are, and a-word-that-is-much-longer";
        assert_eq!(Width(None).wrapped(10, text), text);
        insta::assert_snapshot!(Width(Some(50)).wrapped(10, text), @"
        a text of several words that is longer
        than forty columns are, and
        a-word-that-is-much-longer
        ");
        assert_eq!(
            Width(Some(44)).wrapped(0, &format!("short\n{}", &text[..45])),
            "short\na text of several words that is longer than\nf"
        );
        let narrow = Width(Some(1)).wrapped(0, "one two three four five six seven eight nine");
        assert_eq!(narrow, "one two three four five six seven eight\nnine");
    }
}
