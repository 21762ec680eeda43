//! Grafts: a value in a tree that its text does not have.

use std::ops::Range;
use std::sync::Arc;

use super::tree::{MappingEntries, MappingEntry, Scalar, TreeKey, TreeNode, TreeValue};

impl TreeNode {
    /// Returns the node with another value at the end of `keys`, mappings that are missing on the way included.
    /// These have the bytes of the last node on the way that is written.
    #[must_use]
    pub fn with(&self, keys: &[&str], value: Self) -> Self {
        let span = &self.span;
        let Some((key, rest)) = keys.split_first() else {
            return value;
        };
        let mut entries = match &self.value {
            TreeValue::Mapping(entries) => entries.to_vec(),
            TreeValue::Sequence(_) | TreeValue::Scalar(_) => Vec::new(),
        };
        let of_key = |it: &MappingEntry| *it.key.scalar.text == **key;
        match entries.iter_mut().find(|it| of_key(it)) {
            Some(entry) => entry.value = entry.value.with(rest, value),
            None => entries.push(MappingEntry {
                key: TreeKey { scalar: text(key), span: span.clone() },
                value: written(span, TreeValue::Scalar(text(""))).with(rest, value),
            }),
        }
        written(span, TreeValue::Mapping(Arc::new(MappingEntries::new(entries))))
    }

    /// Returns the node with other bytes, also of its parts.
    #[must_use]
    pub fn at(&self, span: &Range<usize>) -> Self {
        let value = match &self.value {
            TreeValue::Scalar(scalar) => TreeValue::Scalar(scalar.clone()),
            TreeValue::Sequence(items) => {
                TreeValue::Sequence(items.iter().map(|it| it.at(span)).collect())
            }
            TreeValue::Mapping(entries) => {
                let moved = |it: &MappingEntry| MappingEntry {
                    key: TreeKey { span: span.clone(), ..it.key.clone() },
                    value: it.value.at(span),
                };
                TreeValue::Mapping(Arc::new(MappingEntries::new(
                    entries.iter().map(moved).collect(),
                )))
            }
        };
        written(span, value)
    }
}

fn text(text: &str) -> Scalar {
    Scalar { text: Arc::from(text), plain: true }
}

/// Returns a value that is written in place.
fn written(span: &Range<usize>, value: TreeValue) -> TreeNode {
    TreeNode { span: span.clone(), value, alias: false }
}
