//! The rendered tree on disk: which files are ours, and how they differ from the wanted ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clustermesh::tree_diff::Overriding;
use clustermesh::{text, yaml};

use super::read::open_regular;
use super::roots::is_git;
use super::{OLD, Roots, holds, is_temporary, kind, shown};

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
    pub(crate) foreign: Vec<ForeignEntry>,
    /// Not ours, and in the way of something wanted.
    pub(crate) blocked: Vec<ForeignEntry>,
    /// Folders in which a killed run had begun its work.
    pub(super) abandoned: Vec<PathBuf>,
}

/// Something in the tree that we did not make.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ForeignEntry {
    /// The path, from the root of the tree.
    pub(crate) path: String,
    /// The kind of file, with its article.
    pub(crate) kind: &'static str,
}

/// The content of a file.
enum EntryContent {
    Wanted,
    Ours,
    Foreign,
    /// A merge that was not finished.
    Conflicted,
}

/// A walk through the tree.
struct TreeWalk<'a> {
    wanted: &'a WantedFiles,
    /// Paths of files that are known to be as wanted.
    known: &'a BTreeSet<String>,
    folders: BTreeSet<&'a str>,
    survey: TreeSurvey,
}

impl TreeSurvey {
    /// Returns whether the tree is up to date, except for foreign files.
    pub(crate) fn is_current(&self) -> bool {
        let Self {
            missing,
            changed,
            stale,
            blocked,
            ..
        } = self;
        missing.is_empty() && changed.is_empty() && stale.is_empty() && blocked.is_empty()
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

impl fmt::Display for ForeignEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(
            formatter,
            "{} ({})",
            shown(Path::new(&self.path)),
            self.kind
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
    survey_rest(roots, root, wanted, &BTreeSet::new())
}

/// Compares the same, and does not read files again that are known to be as wanted.
pub(crate) fn survey_rest(
    roots: &Roots,
    root: &Path,
    wanted: &WantedFiles,
    known: &BTreeSet<String>,
) -> anyhow::Result<TreeSurvey> {
    let allowed = roots.check_output(root);
    allowed.with_context(|| format!("cannot read the folder {}", shown(root)))?;
    let mut walk = TreeWalk {
        wanted,
        known,
        folders: folders(wanted)?,
        survey: TreeSurvey::default(),
    };
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
    format!(
        "{} is not a folder and a file in it",
        shown(Path::new(path))
    )
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
            if file_type.is_dir() && is_temporary(&name) && holds_only_ours(&entry.path(), true) {
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
        for entry in entries(folder)? {
            let path = entry.path();
            let file_type = entry.file_type().with_context(|| shown(&path))?;
            let file = entry.file_name();
            let key = format!("{name}/{}", file.to_string_lossy());
            let wanted = self.wanted.get(&key).map(AsRef::as_ref);
            // A name that is not text cannot be ours, regardless of the content.
            if !file_type.is_file() || file.to_str().is_none() {
                if file_type.is_dir() {
                    self.overrides_in(&path, &key)?;
                }
                self.not_ours(key, kind(file_type), wanted.is_some());
                continue;
            }
            if self.known.contains(&key) {
                self.survey.same.push(key);
                continue;
            }
            let content = content(&path, wanted);
            match content.with_context(|| format!("cannot read {}", shown(&path)))? {
                EntryContent::Wanted => self.survey.same.push(key),
                EntryContent::Ours if wanted.is_some() => self.survey.changed.push(key),
                EntryContent::Ours => self.survey.stale.push(key),
                EntryContent::Foreign => self.not_ours(key, "a file", wanted.is_some()),
                // It may have been ours, also if no Peer is wanted there: the guards must see its Peers first.
                EntryContent::Conflicted => {
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
        let foreign = ForeignEntry { path, kind };
        if blocks {
            self.survey.blocked.push(foreign);
        } else {
            self.survey.foreign.push(foreign);
        }
    }

    fn finish(self) -> TreeSurvey {
        let Self {
            wanted, mut survey, ..
        } = self;
        let TreeSurvey {
            changed,
            same,
            stale,
            foreign,
            blocked,
            ..
        } = &mut survey;
        changed.sort_unstable();
        same.sort_unstable();
        stale.sort_unstable();
        foreign.sort_unstable();
        blocked.sort_unstable();
        let blocks = |path: &str| {
            let folder = path.split_once('/').map_or(path, |(folder, _)| folder);
            let at = |it: &ForeignEntry| it.path == path || it.path == folder;
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
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.with_context(|| format!("cannot read the folder {}", shown(folder)))
}

fn content(path: &Path, wanted: Option<&str>) -> anyhow::Result<EntryContent> {
    let (mut file, metadata) = open_regular(path)?;
    let length = metadata.len();
    let head = head(&mut file)?;
    let wanted = wanted.filter(|text| text.len() as u64 == length);
    if let Some(rest) = wanted.and_then(|text| text.as_bytes().strip_prefix(head.as_slice()))
        && holds(&mut file, rest)?
    {
        return Ok(EntryContent::Wanted);
    }
    Ok(if is_ours(&head) {
        EntryContent::Ours
    } else if text::conflict(&String::from_utf8_lossy(&head)).is_some() {
        EntryContent::Conflicted
    } else {
        EntryContent::Foreign
    })
}

/// Returns whether clustermesh generated a file, so that a render may replace or remove it.
pub(crate) fn is_generated(path: &Path) -> bool {
    matches!(content(path, None), Ok(EntryContent::Ours))
}

/// Our first line, also as git may check it out on Windows.
fn is_ours(head: &[u8]) -> bool {
    let rest = head.strip_prefix(yaml::HEADER.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"\n") || rest == b"\r\n")
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
    let number = name.to_str().and_then(|it| it.strip_prefix(OLD));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns whether a file is ours, as far as it was written.
fn is_begun(path: &Path) -> anyhow::Result<bool> {
    let head = head(&mut open_regular(path)?.0)?;
    Ok(is_ours(&head) || yaml::HEADER.as_bytes().starts_with(&head))
}

/// Reads as much of a file as shows whether it is ours.
fn head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(yaml::HEADER.len() + 2);
    file.by_ref()
        .take(yaml::HEADER.len() as u64 + 2)
        .read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests;
