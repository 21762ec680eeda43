//! Known contents: manifests that were read already, so that each text is understood only once. Most
//! clusters get the same texts, and most texts are in both versions of a change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clustermesh::agent::applied::{AppliedFile, Content};

/// The contents of texts that were read.
#[derive(Default)]
pub(crate) struct KnownContents {
    by_text: Mutex<BTreeMap<Arc<str>, KnownContent>>,
}

/// The content of a text, which one thread reads and others wait for.
type KnownContent = Arc<OnceLock<Arc<Content>>>;

impl KnownContents {
    /// Returns a file with this text.
    pub(super) fn file(&self, source: Arc<str>, text: &Arc<str>) -> AppliedFile {
        let known = {
            let mut by_text = self.by_text.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_text.entry(Arc::clone(text)).or_default())
        };
        let content = known.get_or_init(|| AppliedFile::read(&source, text).content);
        let content = Arc::clone(content);
        AppliedFile { source, content }
    }
}
