//! Positions: where in a text something stands, for people.

/// A position in a text as editors count it, both from one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// An index of positions at regular intervals of bytes, so that a text is scanned once for any
/// number of positions.
#[derive(Clone, Debug)]
pub(super) struct Marks(Vec<Mark>);

/// The position of a byte at which a character begins.
#[derive(Clone, Copy, Debug)]
struct Mark {
    offset: usize,
    position: Position,
}

/// The number of bytes between two marks, except the rest of a character.
const STEP: usize = 1024;

impl Marks {
    /// Goes through a text.
    pub(super) fn find(text: &str) -> Self {
        let mut mark = Mark::START;
        let mut marks = vec![mark];
        for offset in (STEP..text.len()).step_by(STEP) {
            mark = mark.advance(text, offset);
            marks.push(mark);
        }
        Self(marks)
    }

    /// Returns where in the same text a byte stands.
    pub(super) fn position(&self, text: &str, offset: usize) -> Position {
        let behind = self.0.partition_point(|mark| mark.offset <= offset);
        let before = behind.checked_sub(1).and_then(|last| self.0.get(last));
        let mark = before.copied().unwrap_or(Mark::START);
        mark.advance(text, offset).position
    }
}

impl Mark {
    const START: Self = Self { offset: 0, position: Position { line: 1, column: 1 } };

    /// Goes on to a later byte.
    fn advance(self, text: &str, offset: usize) -> Self {
        let offset = boundary(text, offset);
        let Position { mut line, mut column } = self.position;
        let between = text.get(self.offset..offset).unwrap_or_default();
        for (index, character) in between.char_indices() {
            let index = self.offset + index;
            let byte = |index: Option<usize>| text.as_bytes().get(index?);
            let next = || byte(index.checked_add(1));
            let is_first = || matches!(byte(index.checked_sub(1)), None | Some(b'\n' | b'\r'));
            match character {
                '\n' => (line, column) = (line + 1, 1),
                '\r' if next() != Some(&b'\n') => (line, column) = (line + 1, 1),
                '\u{feff}' if is_first() => {}
                _ => column += 1,
            }
        }
        let position = Position { line, column };
        Self { offset, position }
    }
}

/// Returns where in `text` a byte stands.
///
/// A byte order mark takes no column, and a byte inside a character counts as its first.
#[cfg(test)]
pub(super) fn position(text: &str, offset: usize) -> Position {
    Mark::START.advance(text, offset).position
}

/// Returns the last boundary between two characters that is not behind `offset`.
pub(super) fn boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn byte_order_marks_take_no_column() {
        let text = "\u{feff}\u{feff}a\r\u{feff}b\r\n\u{feff}c";
        let at = |text: &str, found: &str| {
            let Position { line, column } = position(text, text.find(found).unwrap());
            (line, column)
        };
        assert_eq!(at(text, "a"), (1, 2));
        assert_eq!(at(text, "b"), (2, 1));
        assert_eq!(at(text, "\n"), (2, 3));
        assert_eq!(at(text, "c"), (3, 1));
    }

    proptest! {
        #[test]
        fn marks_change_nothing(piece in "[a\u{fc}\u{feff}\r\n\u{1f600}]{1,9}") {
            let text = piece.repeat(2 * STEP / piece.len());
            let marks = Marks::find(&text);
            for offset in (0..text.len() + 2).step_by(31) {
                prop_assert_eq!(marks.position(&text, offset), position(&text, offset));
            }
        }

        #[test]
        fn positions_count_up(text: String) {
            let mut last = Position { line: 1, column: 1 };
            for offset in 0..text.len() + 2 {
                let next = position(&text, offset);
                prop_assert!(last <= next);
                last = next;
            }
        }
    }
}
