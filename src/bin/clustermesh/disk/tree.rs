//! The rendered tree on disk: which files are ours, who wrote each, and how they differ from the wanted ones. A run
//! opens each file once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clustermesh::tree_diff::{ForeignFile, Overriding};
use clustermesh::yaml;

use super::read::{bounded, bounded_text, open_regular, text_of};
use super::roots::{FileKey, TreeFile, has_header, is_git, problem};
use super::{OLD, Roots, holds, is_temporary, kind, shown};

pub(crate) use super::roots::FileText;
pub(super) use super::roots::Writer;

/// The file of the rendered tree that lists what was written.
pub(crate) const RECORD: &str = ".clustermesh-outputs";

/// The wanted tree: text by path, each of a folder and a file in it, such as
/// `west/prod--east.yaml`.
pub(crate) type WantedFiles = BTreeMap<String, Arc<str>>;

/// The differences between a tree on disk and the wanted one; every list is sorted.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct TreeSurvey {
    /// Wanted, but not there.
    pub(crate) missing: Vec<String>,
    /// Wanted, ours, and different.
    pub(crate) changed: Vec<String>,
    /// Wanted, and up to date.
    pub(crate) same: Vec<String>,
    /// Ours, but not wanted.
    pub(crate) stale: Vec<String>,
    /// Not ours, and so left alone.
    pub(crate) foreign: Vec<ForeignFile>,
    /// Not ours, and in the way of something wanted.
    pub(crate) blocked: Vec<ForeignFile>,
    /// Leftovers of killed runs: folders in which they had begun their work, files that waited, emptied folders.
    pub(super) abandoned: Vec<PathBuf>,
}

/// A walk through the tree.
struct TreeWalk<'a> {
    wanted: &'a WantedFiles,
    roots: &'a Roots,
    folders: BTreeSet<&'a str>,
    survey: TreeSurvey,
}

impl TreeSurvey {
    /// Returns whether the tree is up to date, except for foreign files.
    pub(crate) fn is_current(&self) -> bool {
        let Self { missing, changed, stale, blocked, .. } = self;
        missing.is_empty() && changed.is_empty() && stale.is_empty() && blocked.is_empty()
    }

    /// Returns whether there is any generated file.
    pub(crate) fn is_there(&self) -> bool {
        ![&self.same, &self.changed, &self.stale].into_iter().all(Vec::is_empty)
    }

    /// Fails, naming everything under `root` that is in the way.
    pub(crate) fn check_unblocked(&self, root: &Path) -> anyhow::Result<()> {
        if self.blocked.is_empty() {
            return Ok(());
        }
        let blocked = self.blocked.iter();
        let names = blocked.map(|it| format!("{} ({})", shown(&root.join(&it.path)), it.kind));
        bail!(
            "blocked by files that clustermesh did not generate (generated files begin with `{}`): \
             {}; move them away",
            yaml::HEADER,
            names.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Compares the tree under `root` with the wanted one. Only `root` itself may be a link, and must
/// be within the roots.
pub(crate) fn survey(
    roots: &Roots,
    root: &Path,
    wanted: &WantedFiles,
) -> anyhow::Result<TreeSurvey> {
    roots.check_output(root).with_context(|| format!("cannot read the folder {}", shown(root)))?;
    let mut walk =
        TreeWalk { wanted, roots, folders: folders(wanted)?, survey: TreeSurvey::default() };
    if is_there(root).with_context(|| format!("cannot read the folder {}", shown(root)))? {
        walk.root(root)?;
    }
    Ok(walk.finish())
}

/// Returns the folders of the wanted tree.
pub(super) fn folders(wanted: &WantedFiles) -> anyhow::Result<BTreeSet<&str>> {
    let folder = |path| folder(path).with_context(|| wrong_path(path));
    wanted.keys().map(|path| folder(path.as_str())).collect()
}

fn folder(path: &str) -> Option<&str> {
    let (folder, file) = path.split_once('/')?;
    (is_name(folder) && is_name(file)).then_some(folder)
}

fn wrong_path(path: &str) -> String {
    format!("{} is not a folder and a file in it", shown(Path::new(path)))
}

/// Hidden names are never ours, and among them are those that lead out of the tree.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\\'])
}

fn is_there(root: &Path) -> io::Result<bool> {
    match fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        // A link to nowhere is there, and no root.
        Err(error) if fs::symlink_metadata(root).is_ok() => Err(error),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl TreeWalk<'_> {
    fn root(&mut self, root: &Path) -> anyhow::Result<()> {
        for entry in entries(root)? {
            let file_type = entry.file_type().with_context(|| shown(&entry.path()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_left = || {
                file_type.is_file() || file_type.is_dir() && holds_only_ours(&entry.path(), true)
            };
            if is_temporary(&name) && is_left() {
                self.survey.abandoned.push(entry.path());
            } else if file_type.is_dir() && is_name(&name) {
                self.folder(&entry.path(), &name)?;
            } else if file_type.is_file() && name == RECORD {
                // Read with the outputs that it lists.
            } else {
                if file_type.is_dir() {
                    self.overrides_in(&entry.path(), &name)?;
                }
                let blocks = self.folders.contains(name.as_str());
                self.not_ours(name, kind(file_type), blocks);
            }
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path, name: &str) -> anyhow::Result<()> {
        let entries = entries(folder)?;
        if entries.is_empty() && !self.folders.contains(name) {
            self.survey.abandoned.push(folder.to_owned());
        }
        for entry in entries {
            let path = entry.path();
            let file_type = entry.file_type().with_context(|| shown(&path))?;
            let file = entry.file_name();
            let key = format!("{name}/{}", file.to_string_lossy());
            let wanted = self.wanted.get(&key);
            // A name that is not text cannot be ours, regardless of the content.
            if !file_type.is_file() || file.to_str().is_none() {
                if file_type.is_dir() {
                    self.overrides_in(&path, &key)?;
                }
                self.not_ours(key, kind(file_type), wanted.is_some());
                continue;
            }
            let writer = writer_unless(self.roots, &path, wanted);
            match writer.with_context(|| format!("cannot read {}", shown(&path)))? {
                None => self.survey.same.push(key),
                Some(Writer::Generated) if wanted.is_some() => self.survey.changed.push(key),
                Some(Writer::Generated) => self.survey.stale.push(key),
                Some(Writer::Foreign) => self.not_ours(key, "a file", wanted.is_some()),
                // It may have been ours, also if no Peer is wanted there: the guards must see its Peers first.
                Some(Writer::Conflicted) => {
                    self.not_ours(key, "a file with git's conflict markers", true);
                }
            }
        }
        Ok(())
    }

    /// Looks in a folder that is not ours for files that change what is delivered.
    fn overrides_in(&mut self, folder: &Path, name: &str) -> anyhow::Result<()> {
        let mut waiting = vec![(folder.to_owned(), name.to_owned())];
        while let Some((folder, path)) = waiting.pop() {
            for entry in entries(&folder)? {
                let file_type = entry.file_type().with_context(|| shown(&entry.path()))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = format!("{path}/{name}");
                if file_type.is_dir() && !is_git(&entry.file_name()) {
                    waiting.push((entry.path(), path));
                } else if !file_type.is_dir() && Overriding::from_name(&name).is_some() {
                    self.not_ours(path, kind(file_type), false);
                }
            }
        }
        Ok(())
    }

    fn not_ours(&mut self, path: String, kind: &'static str, blocks: bool) {
        let foreign = ForeignFile { path, kind };
        if blocks {
            self.survey.blocked.push(foreign);
        } else {
            self.survey.foreign.push(foreign);
        }
    }

    fn finish(self) -> TreeSurvey {
        let Self { wanted, mut survey, .. } = self;
        let TreeSurvey { changed, same, stale, foreign, blocked, .. } = &mut survey;
        changed.sort_unstable();
        same.sort_unstable();
        stale.sort_unstable();
        foreign.sort_unstable();
        blocked.sort_unstable();
        let blocks = |path: &str| {
            let folder = path.split_once('/').map_or(path, |(folder, _)| folder);
            let at = |it: &ForeignFile| it.path == path || it.path == folder;
            blocked.iter().any(at)
        };
        let there = |path: &String| {
            changed.binary_search(path).is_ok() || same.binary_search(path).is_ok() || blocks(path)
        };
        let missing = wanted.keys().filter(|path| !there(path));
        survey.missing = missing.cloned().collect();
        survey
    }
}

fn entries(folder: &Path) -> anyhow::Result<Vec<DirEntry>> {
    fs::read_dir(folder)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot read the folder {}", shown(folder)))
}

/// Returns whether a folder in which a run began its work contains only our files, including
/// truncated ones of a killed run, and folders of them. A link is not ours.
fn holds_only_ours(folder: &Path, has_folders: bool) -> bool {
    let Ok(entries) = entries(folder) else {
        return false;
    };
    entries.iter().all(|entry| match entry.file_type() {
        Ok(it) if it.is_file() => {
            has_folders && is_old(&entry.file_name()) || is_begun(&entry.path()).unwrap_or(false)
        }
        Ok(it) if it.is_dir() && has_folders => holds_only_ours(&entry.path(), false),
        _ => false,
    })
}

/// Returns whether a file is kept under this name while another one replaces it. Outputs have no
/// line that marks them as ours.
fn is_old(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|it| it.strip_prefix(OLD))
        .is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// The largest rendered file that is read, in bytes: what GitHub would take.
pub(crate) const MANIFEST_LIMIT: u64 = 100 << 20;

/// The number of bytes that show who wrote a file: our first line and its end.
const HEAD: usize = yaml::HEADER.len() + 2;

/// Returns the text of a file of the tree, which must not be a link.
pub(crate) fn read(roots: &Roots, path: &Path) -> FileText {
    file(roots, path).map_err(|it| problem(&it))?.text
}

/// Returns whether clustermesh generated a file, so that a render may replace or remove it.
pub(crate) fn is_generated(roots: &Roots, path: &Path) -> bool {
    file(roots, path).is_ok_and(|it| it.writer == Writer::Generated)
}

/// Returns who wrote a file of the tree; nothing if it has the wanted text.
fn writer_unless(
    roots: &Roots,
    path: &Path,
    wanted: Option<&Arc<str>>,
) -> anyhow::Result<Option<Writer>> {
    let files = roots.known_files();
    let key = key(roots, path);
    if let Some(TreeFile { writer, text }) = files.get(&key) {
        let is_wanted = wanted.is_some_and(|it| text.as_ref() == Ok(it));
        return Ok((!is_wanted).then_some(writer));
    }
    let (mut file, metadata) = open_regular(path)?;
    let head = head(&mut file)?;
    let writer = Writer::of(&head);
    let alike = wanted.filter(|text| text.len() as u64 == metadata.len());
    if let Some(wanted) = alike
        && let Some(rest) = wanted.as_bytes().strip_prefix(head.as_slice())
        && holds(&mut file, rest)?
    {
        let text = Ok(Arc::clone(wanted));
        files.add(key, TreeFile { writer, text });
        return Ok(None);
    }
    // The rest of a file of others is not needed.
    if writer == Writer::Generated {
        file.rewind()?;
        let text = bounded_text(&mut file, metadata.len(), MANIFEST_LIMIT);
        files.add_read(key, writer, text);
    }
    Ok(Some(writer))
}

fn key(roots: &Roots, path: &Path) -> FileKey {
    let object = roots.revision().and_then(|it| it.object(path));
    object.map_or_else(|| FileKey::Path(path.into()), FileKey::Object)
}

fn file(roots: &Roots, path: &Path) -> anyhow::Result<TreeFile> {
    let files = roots.known_files();
    let key = key(roots, path);
    if let Some(known) = files.get(&key) {
        return Ok(known);
    }
    let bytes = if let Some(revision) = roots.revision() {
        revision.read(path, MANIFEST_LIMIT)?
    } else {
        let (mut file, metadata) = open_regular(path)?;
        bounded(&mut file, metadata.len(), MANIFEST_LIMIT)?
    };
    let writer = Writer::of(bytes.get(..HEAD).unwrap_or(&bytes));
    Ok(files.add_read(key, writer, text_of(bytes)))
}

/// Returns whether a file is ours, as far as it was written.
fn is_begun(path: &Path) -> anyhow::Result<bool> {
    let head = head(&mut open_regular(path)?.0)?;
    Ok(has_header(&head) || yaml::HEADER.as_bytes().starts_with(&head))
}

/// Reads as much of a file as shows who wrote it.
fn head(file: &mut impl io::Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests;
