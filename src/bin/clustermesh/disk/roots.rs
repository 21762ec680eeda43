//! Roots: the folders that our inputs and outputs may be in.
//!
//! A repository can come from a stranger, and git stores links. A path of its config, or a link in
//! it, must not lead to a file of the user or the service that runs clustermesh. Paths on the
//! command line are read from anywhere.
//!
//! An attacker who changes the checkout during a run can still swap a file between the check and
//! the read; that is out of scope.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use clustermesh::diagnostic::escaped;
use clustermesh::{text, yaml};

use super::revision::{Revision, destination, whole};
use super::shown;
use crate::git::ObjectId;

/// The folders of the kernel, whose files are not inputs even if `/` is the root.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The places in which files are read, also those that links lead to.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    kind: RootKind,
    /// The files of the rendered tree that were read in them.
    known_files: Arc<KnownFiles>,
}

#[derive(Clone, Debug)]
enum RootKind {
    /// Anywhere on disk.
    Anywhere,
    Folders(Arc<Folders>),
    /// In a commit.
    Revision(Arc<Revision>),
}

#[derive(Clone, Debug, Default)]
struct Folders {
    /// Canonical; the first is the repository, or else the working folder.
    open: Vec<PathBuf>,
    /// Canonical: where git keeps its own files.
    closed: Vec<PathBuf>,
}

impl Roots {
    /// Returns no limits: for a file that a person named.
    pub(crate) fn anywhere() -> Self {
        Self::new(RootKind::Anywhere)
    }

    /// Returns the files of a commit.
    pub(crate) fn of_revision(revision: Arc<Revision>) -> Self {
        Self::new(RootKind::Revision(revision))
    }

    /// Limits files to a repository, or to a folder.
    pub(crate) fn within(folder: &Path) -> Self {
        let open = folder.canonicalize().into_iter().collect();
        let closed = git_folders(folder);
        Self::new(RootKind::Folders(Arc::new(Folders { open, closed })))
    }

    fn new(kind: RootKind) -> Self {
        let known_files = Arc::default();
        Self { kind, known_files }
    }

    /// Adds a folder that a person named, which need not be there yet.
    #[must_use]
    pub(crate) fn and(mut self, folder: &Path) -> Self {
        if let RootKind::Folders(folders) = &mut self.kind {
            Arc::make_mut(folders).open.extend(
                whole(folder).ok().filter(|it| !KERNEL.iter().any(|kernel| it.starts_with(kernel))),
            );
        }
        self
    }

    /// Returns where a file may be that a person named for this run: anywhere, but of a commit only
    /// what is in it.
    #[must_use]
    pub(crate) fn of_named(&self) -> Self {
        match &self.kind {
            RootKind::Revision(revision) => Self::of_revision(Arc::clone(revision)),
            RootKind::Anywhere | RootKind::Folders(_) => Self::anywhere(),
        }
    }

    /// Returns the commit, if files are those of one.
    pub(crate) fn revision(&self) -> Option<&Revision> {
        match &self.kind {
            RootKind::Revision(revision) => Some(revision),
            RootKind::Anywhere | RootKind::Folders(_) => None,
        }
    }

    /// Returns the files of the rendered tree that were read.
    pub(super) fn known_files(&self) -> &KnownFiles {
        &self.known_files
    }

    /// Returns whether there is no limit.
    pub(super) fn is_anywhere(&self) -> bool {
        matches!(self.kind, RootKind::Anywhere)
    }

    /// Returns the folders on disk, if they are limited.
    fn folders(&self) -> anyhow::Result<Option<&Folders>> {
        match &self.kind {
            RootKind::Anywhere => Ok(None),
            RootKind::Folders(folders) => Ok(Some(folders)),
            RootKind::Revision(_) => bail!("it is in a commit, not on disk"),
        }
    }

    /// Fails if a path, links included, leads to where nothing may be read.
    pub(super) fn check(&self, path: &Path) -> anyhow::Result<()> {
        let Some(folders) = self.folders()? else {
            return Ok(());
        };
        // The message is the same whether the file outside exists or not.
        folders.check(&destination(path)?)?;
        folders.check(&path.canonicalize()?)
    }

    /// Returns whether a path, links included, leads to where nothing may be read, whether anything is there or
    /// not.
    pub(super) fn are_left_by(&self, path: &Path) -> anyhow::Result<bool> {
        match &self.kind {
            RootKind::Folders(folders) => Ok(folders.check(&destination(path)?).is_err()),
            RootKind::Anywhere | RootKind::Revision(_) => Ok(false),
        }
    }

    /// Fails if a path, links included, leads to where nothing may be written. Of the path, nothing
    /// has to be there.
    pub(super) fn check_output(&self, path: &Path) -> anyhow::Result<()> {
        let Some(folders) = self.folders()? else {
            return Ok(());
        };
        folders.check(&destination(path)?)?;
        let whole = whole(path)?;
        folders.check(&whole)?;
        let home = folders.open.first();
        let rest = home.and_then(|home| whole.strip_prefix(home).ok());
        if is_of_git(rest.unwrap_or(&whole)) {
            bail!("it is inside `.git`, where only git may write");
        }
        Ok(())
    }
}

impl Folders {
    fn check(&self, whole: &Path) -> anyhow::Result<()> {
        let inside = |folder: &PathBuf| {
            let is_kernels =
                KERNEL.iter().any(|it| whole.starts_with(it) && !folder.starts_with(it));
            whole.strip_prefix(folder).ok().filter(|_| !is_kernels)
        };
        let mut rests = self.open.iter().filter_map(inside).peekable();
        if rests.peek().is_none() {
            let home = self.open.first().map_or_else(|| "any folder".into(), |it| shown(it));
            bail!("it is outside {home}; to read files in other folders, add --root DIR");
        }
        let is_closed = self.closed.iter().any(|it| whole.starts_with(it));
        if is_closed || rests.all(is_of_git) {
            bail!("it is inside `.git`, which clustermesh does not read");
        }
        Ok(())
    }
}

/// Returns whether a path leads through a folder, or to a file, of git's. Some file systems take
/// `.GIT` for `.git`.
fn is_of_git(path: &Path) -> bool {
    path.components().any(|part| matches!(part, Component::Normal(name) if is_git(name)))
}

/// Returns whether a folder of this name is git's.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Returns where git keeps its own files about a working tree, if that may have another name than
/// `.git`: worktrees and submodules have a file there that names the folder.
fn git_folders(folder: &Path) -> Vec<PathBuf> {
    let marker = folder.join(".git");
    let Ok(canonical) = marker.canonicalize() else {
        return Vec::new();
    };
    let mut folders = Vec::new();
    if canonical.is_file()
        && let Ok(text) = super::read_text(&Roots::anywhere(), &canonical, 64 << 10)
        && let Some(named) = text.trim().strip_prefix("gitdir:")
    {
        folders.extend(folder.join(named.trim()).canonicalize());
    }
    folders.push(canonical);
    folders
}

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
