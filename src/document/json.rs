//! JSON: where in a text a value stands, without a tree of it: files of nodes are large.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::place::Pointer;

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
