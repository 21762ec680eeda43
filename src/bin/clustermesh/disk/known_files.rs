//! The files of the rendered tree that were read, each with its writer and its text.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clustermesh::diagnostic::escaped;
use clustermesh::{text, yaml};

use crate::git::ObjectId;

/// The longest description of a problem, in characters.
const SHOWN: usize = 400;

/// The text of a file, or the reason why it has none, which is safe to print.
pub(crate) type FileText = Result<Arc<str>, String>;

/// The writer of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Writer {
    /// clustermesh, so a render may replace or remove the file.
    Generated,
    /// git, in a merge that was not finished.
    Conflicted,
    /// Another program, or a person.
    Foreign,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct TreeFile {
    pub(super) writer: Writer,
    pub(super) text: FileText,
}

/// The files that were read.
#[derive(Debug, Default)]
pub(super) struct KnownFiles(Mutex<ReadFiles>);

/// A thing that is read once: a file on disk, or an object of git, which several files of a commit may be.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum FileKey {
    Path(OsString),
    Object(ObjectId),
}

#[derive(Debug, Default)]
struct ReadFiles {
    known: BTreeMap<FileKey, TreeFile>,
    /// Most files have the same text as the files of this name in other folders.
    texts: BTreeSet<Arc<str>>,
}

impl KnownFiles {
    fn lock(&self) -> MutexGuard<'_, ReadFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &FileKey) -> Option<TreeFile> {
        self.lock().known.get(key).cloned()
    }

    pub(super) fn add(&self, key: FileKey, file: TreeFile) {
        self.lock().known.insert(key, file);
    }

    /// Adds a file with the text that was read from it.
    pub(super) fn add_read(
        &self,
        key: FileKey,
        writer: Writer,
        text: anyhow::Result<String>,
    ) -> TreeFile {
        let mut files = self.lock();
        let text = text.map_err(|it| problem(&it)).map(|text| {
            files.texts.get(text.as_str()).cloned().unwrap_or_else(|| {
                let text: Arc<str> = Arc::from(text);
                files.texts.insert(Arc::clone(&text));
                text
            })
        });
        let file = TreeFile { writer, text };
        files.known.insert(key, file.clone());
        file
    }
}

pub(super) fn problem(error: &anyhow::Error) -> String {
    escaped(&error.root_cause().to_string(), SHOWN)
}

impl Writer {
    pub(super) fn of(head: &[u8]) -> Self {
        if has_header(head) {
            Self::Generated
        } else if text::conflict(&String::from_utf8_lossy(head)).is_some() {
            Self::Conflicted
        } else {
            Self::Foreign
        }
    }
}

/// Our first line, also as git may check it out on Windows.
pub(super) fn has_header(head: &[u8]) -> bool {
    let rest = head.strip_prefix(yaml::HEADER.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"\n") || rest == b"\r\n")
}
