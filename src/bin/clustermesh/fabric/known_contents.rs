//! Known contents: manifests that were read already, so that each text is understood only once. Most
//! clusters get the same texts, and most texts are in both versions of a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use clustermesh::agent::applied::{AppliedFile, Content};

use crate::git::ObjectId;

/// The contents of texts that were read.
#[derive(Default)]
pub(crate) struct KnownContents {
    by_text: BTreeMap<Arc<str>, Arc<Content>>,
    /// Of files of a commit, which do not even have to be read.
    by_object: BTreeMap<ObjectId, Arc<Content>>,
}

impl KnownContents {
    /// Returns the content of a text.
    pub(super) fn read(&mut self, source: &Arc<str>, text: &Arc<str>) -> Arc<Content> {
        if let Some(content) = self.by_text.get(text) {
            return Arc::clone(content);
        }
        let content = AppliedFile::read(source, text).content;
        self.by_text.insert(Arc::clone(text), Arc::clone(&content));
        content
    }

    /// Returns the content of a text that is known and has only Peers. Problems of others name
    /// their file.
    pub(super) fn of_peers(&self, text: &str) -> Option<Arc<Content>> {
        let content = self.by_text.get(text)?;
        content.others.is_empty().then(|| Arc::clone(content))
    }

    /// Returns the content of an object of git, if a file that is this object was read.
    pub(super) fn of_object(&self, object: &ObjectId) -> Option<Arc<Content>> {
        self.by_object.get(object).cloned()
    }

    /// Adds what an object of git contains.
    pub(super) fn add_object(&mut self, object: ObjectId, content: Arc<Content>) {
        self.by_object.insert(object, content);
    }

    /// Adds texts of which the content is known.
    pub(super) fn add_texts(&mut self, texts: impl IntoIterator<Item = (Arc<str>, Arc<Content>)>) {
        self.by_text.extend(texts);
    }

    /// Adds everything that is known elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.by_text.extend(other.by_text);
        self.by_object.extend(other.by_object);
    }
}
