//! Trees: the content of a document, value by value.

use std::ops::{Deref, Range};
use std::sync::Arc;

use serde_json::Value as Json;

use super::plain::{self, Meaning};

/// A value and where it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TreeNode {
    /// Its bytes. For an alias, those of the alias and not of its value.
    pub span: Range<usize>,
    /// Its content.
    pub value: TreeValue,
    /// Whether it is an alias of a value that is written elsewhere.
    pub alias: bool,
}

/// The content of a value. Copies are cheap: an alias shares its value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TreeValue {
    /// A text, a number, a boolean or nothing, as it is written.
    Scalar(Scalar),
    /// A list.
    Sequence(Arc<[TreeNode]>),
    /// Values with names, in the order in which they are written; no name twice.
    Mapping(Arc<MappingEntries>),
}

/// A value without parts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scalar {
    /// Its characters, quotes and escapes resolved.
    pub text: Arc<str>,
    /// Whether it stands without quotes, so that readers guess what it is.
    pub plain: bool,
}

/// The values of a mapping in the order in which they are written, which are found by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MappingEntries {
    entries: Vec<MappingEntry>,
    /// The places of the entries in the order of their names, if there are more than a [`FEW`].
    by_name: Vec<usize>,
}

/// The number of entries of which each is compared with a name.
const FEW: usize = 16;

/// A value of a mapping under its name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MappingEntry {
    /// The name.
    pub key: TreeKey,
    /// The value.
    pub value: TreeNode,
}

/// A name in a mapping.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TreeKey {
    /// Its content.
    pub scalar: Scalar,
    /// Its bytes.
    pub span: Range<usize>,
}

impl MappingEntries {
    /// Takes the entries of a mapping.
    pub(super) fn new(entries: Vec<MappingEntry>) -> Self {
        let is_few = entries.len() <= FEW;
        let mut by_name: Vec<usize> = (0..entries.len()).filter(|_| !is_few).collect();
        by_name.sort_by_key(|place| entries.get(*place).map(|it| &*it.key.scalar.text));
        Self { entries, by_name }
    }

    /// Returns the entry of a name.
    pub fn named(&self, name: &str) -> Option<&MappingEntry> {
        if self.by_name.is_empty() {
            return self.entries.iter().find(|it| it.name() == name);
        }
        let at = |place: &usize| self.entries.get(*place);
        let search = |place: &usize| at(place).map(MappingEntry::name).cmp(&Some(name));
        let found = self.by_name.binary_search_by(search).ok()?;
        at(self.by_name.get(found)?)
    }
}

impl Deref for MappingEntries {
    type Target = [MappingEntry];

    fn deref(&self) -> &[MappingEntry] {
        &self.entries
    }
}

impl MappingEntry {
    pub(crate) fn name(&self) -> &str {
        &self.key.scalar.text
    }
}

impl TreeNode {
    /// Returns the value of a mapping under `key`.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            TreeValue::Mapping(entries) => entries.named(key).map(|entry| &entry.value),
            TreeValue::Scalar(_) | TreeValue::Sequence(_) => None,
        }
    }

    /// Returns the text of a scalar, independent of its meaning.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            TreeValue::Scalar(scalar) => Some(&scalar.text),
            TreeValue::Sequence(_) | TreeValue::Mapping(_) => None,
        }
    }

    /// Returns whether it is empty: `null`, `~`, or no character at all.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, TreeValue::Scalar(scalar) if scalar.meaning() == Meaning::Null)
    }

    /// Returns its content as JSON.
    ///
    /// A value that readers interpret differently, as several numbers, or as a number, a day or a
    /// text, becomes a number that is not an integer, which no field accepts.
    pub fn to_json(&self) -> Json {
        match &self.value {
            TreeValue::Sequence(items) => items.iter().map(Self::to_json).collect(),
            TreeValue::Mapping(entries) => {
                let field =
                    |it: &MappingEntry| (it.key.scalar.text.to_string(), it.value.to_json());
                entries.iter().map(field).collect()
            }
            TreeValue::Scalar(scalar) => scalar.to_json(),
        }
    }

    /// Returns the part that a step of a pointer leads to, with its key if it has one.
    pub(crate) fn child(&self, step: &str) -> Option<(&Self, Option<&TreeKey>)> {
        match &self.value {
            TreeValue::Scalar(_) => None,
            TreeValue::Sequence(items) => {
                let index: usize = step.parse().ok()?;
                items.get(index).map(|item| (item, None))
            }
            TreeValue::Mapping(entries) => {
                let entry = entries.named(step)?;
                Some((&entry.value, Some(&entry.key)))
            }
        }
    }
}

impl Scalar {
    fn to_json(&self) -> Json {
        const DISPUTED: f64 = 0.5;
        match self.meaning() {
            Meaning::Text => Json::from(&*self.text),
            Meaning::Null => Json::Null,
            Meaning::Boolean => Json::Bool(matches!(self.text.as_bytes(), [b't' | b'T', ..])),
            Meaning::Number if plain::is_decimal(&self.text) => match self.text.parse::<i64>() {
                Ok(number) => Json::from(number),
                Err(_) => Json::from(DISPUTED),
            },
            Meaning::Number | Meaning::Date => Json::from(DISPUTED),
        }
    }

    /// Returns how YAML readers interpret it.
    pub(super) fn meaning(&self) -> Meaning {
        if self.plain { plain::meaning(&self.text) } else { Meaning::Text }
    }
}

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
