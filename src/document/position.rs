//! Positions: where in a text something stands, for people.

/// A position in a text as editors count it, both from one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Returns where in `text` a byte stands.
///
/// A byte order mark takes no column, and a byte inside a character counts as its first.
pub fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..boundary(text, offset)).unwrap_or(text);
    let (mut line, mut start) = (1, 0);
    for (index, byte) in before.bytes().enumerate() {
        let next = text.as_bytes().get(index + 1);
        if byte == b'\n' || byte == b'\r' && next != Some(&b'\n') {
            line += 1;
            start = index + 1;
        }
    }
    let column = before.get(start..).map_or(0, |line| {
        line.strip_prefix('\u{feff}')
            .unwrap_or(line)
            .chars()
            .count()
    });
    Position {
        line,
        column: column + 1,
    }
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

    proptest! {
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
