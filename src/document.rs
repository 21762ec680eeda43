//! Documents: the text of a file as trees, in which every value knows where it is written.
//!
//! YAML is read event by event, and JSON in the same way, because it is YAML too. A [`Form`]
//! describes a valid tree.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use crate::diagnostic::{Finding, Mistakes, escaped, mistake};
use crate::place::{Part, Place};
use crate::schema;

mod alike;
mod plain;
mod position;
mod problem;
mod reader;
mod syntax;
mod tree;
mod walk;
#[cfg(test)]
pub(crate) mod tests;

pub use alike::nearest;
pub(crate) use alike::suggesting;
pub use position::Position;
pub use tree::{MappingEntries, MappingEntry, Scalar, TreeKey, TreeNode, TreeValue};

/// A file that was read: its text, and a tree for each of its documents.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, as the shell calls it.
    pub name: Arc<str>,
    /// Its whole content.
    pub text: Arc<str>,
    /// Its documents in order, empty ones included.
    pub documents: Vec<TreeNode>,
    /// Its documents, if they are read for the first place that is looked up.
    later: Option<OnceLock<Vec<TreeNode>>>,
    /// The positions in it, if it has no documents but is JSON.
    index: OnceLock<Box<position::JsonIndex>>,
    /// The positions of its lines.
    marks: OnceLock<position::Marks>,
}

/// The document of a file that should have no other one.
pub struct SingleDocument<'s> {
    /// The place of the document.
    pub place: Place,
    /// Its content.
    pub content: &'s TreeNode,
    /// A finding for each further document.
    pub others: Vec<Finding>,
}

/// A text that has no tree, or more than one.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The file, without documents.
    pub source: Source,
    /// The mistakes in it.
    pub problems: Vec<Finding>,
}

impl Source {
    /// Reads a text of any number of documents.
    ///
    /// # Errors
    /// The first syntax error, and before it all other reasons why a document is not one
    /// tree: repeated keys, merge keys, tags, keys that are not text, exceeded limits.
    pub fn parse(
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
    ) -> Result<Self, Box<Broken>> {
        let mut source = Self::unread(name, text);
        match reader::documents(&source.name, &source.text) {
            Ok(documents) => {
                source.documents = documents;
                Ok(source)
            }
            Err(problems) => {
                let problems = problems.into_findings();
                Err(Box::new(Broken { source, problems }))
            }
        }
    }

    /// Returns the first document that is not empty.
    ///
    /// # Errors
    /// All documents are empty, with the message `empty`, or more than one is not, with `single` for each
    /// further one.
    pub fn single_document(
        &self,
        empty: &str,
        single: &str,
    ) -> Result<SingleDocument<'_>, Finding> {
        let finding = |message: &str, place: Place| {
            Finding::new(&mistake::SYNTAX_ERROR, message).at(place, "")
        };
        let mut documents = self
            .documents
            .iter()
            .enumerate()
            .filter(|(_, document)| !document.is_null())
            .map(|(index, document)| (Place::document(&self.name, index), document));
        let (place, content) =
            documents.next().ok_or_else(|| finding(empty, Place::document(&self.name, 0)))?;
        Ok(SingleDocument {
            place,
            content,
            others: documents.map(|(place, _)| finding(single, place)).collect(),
        })
    }

    /// Returns a text without its trees: one that has none, or a JSON file, in which places are
    /// looked up when they are asked for.
    pub fn unread(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            documents: Vec::new(),
            later: None,
            index: OnceLock::new(),
            marks: OnceLock::new(),
        }
    }

    /// Returns a text whose trees are read for the first place that is looked up. Of many files few are shown.
    pub fn later(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { later: Some(OnceLock::new()), ..Self::unread(name, text) }
    }

    /// Returns the documents in which places are looked up.
    fn located(&self) -> &[TreeNode] {
        let Some(later) = &self.later else {
            return &self.documents;
        };
        later.get_or_init(|| reader::documents(&self.name, &self.text).unwrap_or_default())
    }

    /// Returns the bytes of a place: those of a value or its key, or else of the nearest existing
    /// one around it.
    ///
    /// Of lists and mappings it is the first line, and of what is reached through an alias it is
    /// the alias.
    pub fn locate(&self, place: &Place) -> Option<Range<usize>> {
        if place.source != self.name {
            return None;
        }
        if let Part::Bytes { start, end } = place.part {
            let bytes = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
            return self.text.get(bytes.clone()).map(|_| bytes);
        }
        let documents = self.located();
        if documents.is_empty() {
            let index = self.index.get_or_init(|| Box::new(position::JsonIndex::read(&self.text)));
            return index.locate(&self.text, &place.pointer);
        }
        let mut node = documents.get(place.document)?;
        let mut key: Option<&TreeKey> = None;
        for step in place.pointer.steps() {
            if node.alias {
                return Some(node.span.clone());
            }
            let Some((child, its_key)) = node.child(&step) else {
                return Some(self.extent(node, key, Part::Key));
            };
            (node, key) = (child, its_key);
        }
        Some(self.extent(node, key, place.part))
    }

    /// Returns where in the text a byte stands.
    pub fn position(&self, offset: usize) -> Position {
        self.marks.get_or_init(|| position::Marks::find(&self.text)).position(&self.text, offset)
    }

    fn extent(&self, node: &TreeNode, key: Option<&TreeKey>, part: Part) -> Range<usize> {
        let own = self.first_line(node);
        match key {
            Some(key) if part == Part::Key || own.is_empty() => key.span.clone(),
            _ => own,
        }
    }

    fn first_line(&self, node: &TreeNode) -> Range<usize> {
        let text = self.text.get(node.span.clone()).unwrap_or_default();
        let kept = match &node.value {
            TreeValue::Scalar(_) => text,
            TreeValue::Sequence(_) | TreeValue::Mapping(_) => {
                text.lines().next().unwrap_or_default()
            }
        };
        node.span.start..node.span.start + kept.trim_end().len()
    }
}

/// The form of a valid tree that becomes a `T`.
///
/// Made once and used for many trees.
pub struct Form<T> {
    schema: Schema,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// Returns the form of a type.
    pub fn new() -> Self {
        Self { schema: schema::of_written::<T>(), reads: PhantomData }
    }

    /// Reads the tree at `place`.
    ///
    /// # Errors
    /// Everything that is wrong with its structure, in the order of the text.
    pub fn read(&self, node: &TreeNode, place: &Place) -> Result<T, Mistakes> {
        match self.salvage(node, place) {
            (Some(value), problems) if problems.is_empty() => Ok(value),
            (_, problems) => Err(problems),
        }
    }

    /// Reads the tree at `place`, and reports all mistakes in its structure.
    ///
    /// If there are mistakes, the value is only good for finding more: broken fields are missing in it,
    /// and missing texts are empty.
    pub fn salvage(&self, node: &TreeNode, place: &Place) -> (Option<T>, Mistakes) {
        let (value, mut problems) = walk::walk(self.schema.as_value(), node, place);
        let read = value.map(serde_json::from_value).transpose();
        let value = read.unwrap_or_else(|error| {
            // Only mistakes that a schema cannot describe get here, or the rest of a broken value.
            if problems.is_empty() {
                let message = escaped(&error.to_string(), 240);
                problems.push(Finding::new(&mistake::INVALID_TYPE, message).at(place.clone(), ""));
            }
            None
        });
        (value, problems)
    }
}

impl<T: DeserializeOwned + JsonSchema> Default for Form<T> {
    fn default() -> Self {
        Self::new()
    }
}
