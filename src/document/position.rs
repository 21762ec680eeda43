//! Positions: where in a text something stands, for people; in JSON also without a tree of it, because files of nodes
//! are large.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::place::Pointer;

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

/// The positions of the fields of a JSON file, and of the items of lists: a file is read once for all
/// places in it.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonIndex {
    whole: Range<usize>,
    fields: BTreeMap<String, JsonField>,
}

#[derive(Clone, Debug)]
struct JsonField {
    span: Range<usize>,
    items: Vec<Range<usize>>,
}

impl JsonIndex {
    /// Reads a file. If it is not JSON, only its beginning is found.
    pub(super) fn read(text: &str) -> Self {
        let Ok(whole) = serde_json::from_str::<&RawValue>(text) else {
            return Self::default();
        };
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(whole.get()).unwrap_or_default();
        let field = |value: &RawValue| {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            let items = items.into_iter();
            JsonField {
                span: span(text, value),
                items: items.map(|item| span(text, item)).collect(),
            }
        };
        let fields = fields.into_iter();
        Self {
            whole: span(text, whole),
            fields: fields.map(|(name, value)| (name, field(value))).collect(),
        }
    }

    /// Returns the bytes of the value that `pointer` means, or of the nearest around it that is
    /// there. Of a list or mapping it is the first line.
    pub(super) fn locate(&self, text: &str, pointer: &Pointer) -> Option<Range<usize>> {
        let mut steps = pointer.steps();
        let mut found = self.whole.clone();
        let field = steps.next().and_then(|step| self.fields.get(&step));
        if let Some(field) = field {
            found = field.span.clone();
            let mut rest: Vec<String> = steps.collect();
            let item = rest.first().and_then(|step| step.parse::<usize>().ok());
            if let Some(item) = item.and_then(|item| field.items.get(item)) {
                found = item.clone();
                rest.remove(0);
            }
            found = within(text, found, &rest);
        }
        let raw = text.get(found.clone())?;
        let shown = match raw.as_bytes().first() {
            Some(b'{' | b'[') => raw.lines().next().unwrap_or_default(),
            _ => raw,
        };
        Some(found.start..found.start + shown.len())
    }
}

/// Goes on from a value.
fn within(text: &str, from: Range<usize>, steps: &[String]) -> Range<usize> {
    let raw = text.get(from.clone()).unwrap_or_default();
    let Ok(mut value) = serde_json::from_str::<&RawValue>(raw) else {
        return from;
    };
    for step in steps {
        let Some(child) = child(value, step) else {
            break;
        };
        value = child;
    }
    span(text, value)
}

/// Returns where in a text a part of it stands.
fn span(text: &str, part: &RawValue) -> Range<usize> {
    let part = part.get();
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}

fn child<'a>(value: &'a RawValue, step: &str) -> Option<&'a RawValue> {
    let raw = value.get();
    if raw.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        return items.get(step.parse::<usize>().ok()?).copied();
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw).ok()?;
    fields.get(step).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn at(text: &str, steps: &[&str]) -> String {
        let pointer = steps.iter().fold(Pointer::default(), |pointer, step| pointer.key(step));
        text[JsonIndex::read(text).locate(text, &pointer).unwrap()].to_owned()
    }

    #[test]
    fn finds_values_and_what_is_around_them() {
        let text = "{\n  \"nodes\": [\n    {\"a/b\": \"x\", \"n\": 7},\n    {\n      \"y\": []\n    }\n  ]\n}";
        assert_eq!(at(text, &["nodes", "0", "a/b"]), "\"x\"");
        assert_eq!(at(text, &["nodes", "0", "n"]), "7");
        assert_eq!(at(text, &["nodes", "1"]), "{");
        assert_eq!(at(text, &["nodes", "1", "missing", "deep"]), "{");
        assert_eq!(at(text, &["nodes", "9"]), "[");
        assert_eq!(at(text, &[]), "{");
        assert_eq!(at("nothing", &["nodes"]), "");
    }
}
