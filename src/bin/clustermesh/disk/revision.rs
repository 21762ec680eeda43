//! Revisions: the files of a commit, under the paths that they have in the working tree; and whole paths, which are
//! canonical, also for files that do not exist yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, bail};

use super::{EntryType, shown};
use crate::git::{self, EntryMode, GitRepository, GitTree, ObjectId, TreeEntry, os_string};

mod last_changes;

/// The largest number of links on the way to a file: that of Linux.
const LINKS: usize = 40;

/// The longest target of a link, in bytes.
const TARGET: u64 = 4096;

/// The files of a commit.
#[derive(Debug)]
pub(crate) struct Revision {
    /// The name by which the commit was given.
    name: String,
    repository: GitRepository,
    commit: ObjectId,
    root: ObjectId,
    /// The working folder, as seen from the top of the repository.
    here: PathBuf,
    /// Trees that were read.
    trees: Mutex<BTreeMap<ObjectId, Arc<GitTree>>>,
    /// The message of git if a look-up failed.
    failure: OnceLock<String>,
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LastLink {
    Followed,
    Kept,
}

/// The end of a path.
enum Found {
    Entry(TreeEntry),
    Missing,
    /// Links lead out of the repository, or in circles.
    Refused(&'static str),
}

/// The way through the folders of a commit.
struct CommitWalk {
    /// The folders above the current one, the current one last; nothing for one that is not there.
    folders: Vec<Option<ObjectId>>,
    /// The parts of the path that are left.
    rest: VecDeque<OsString>,
    links: usize,
}

impl Revision {
    /// Opens a commit of the repository around the working folder.
    pub(crate) fn open(name: &str) -> anyhow::Result<Self> {
        let mut repository = GitRepository::around_here()?;
        let commit = repository.commit(name)?;
        let root = repository.root(&commit)?;
        let outside = || format!("the working folder is outside of {}", shown(&repository.top));
        let top = repository.top.canonicalize().with_context(outside)?;
        let here = Path::new(".")
            .canonicalize()?
            .strip_prefix(&top)
            .ok()
            .with_context(outside)?
            .to_owned();
        repository.top = top;
        Ok(Self {
            name: name.to_owned(),
            repository,
            commit,
            root,
            here,
            trees: Mutex::default(),
            failure: OnceLock::new(),
        })
    }

    /// Fails if git failed where only the presence of something was asked for.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.failure.get() {
            Some(failure) => bail!("cannot read {}: {failure}", self.shown_name()),
            None => Ok(()),
        }
    }

    /// Returns whether it, or any commit before it, has anything in these folders, or a file of one of these names in
    /// any folder.
    pub(crate) fn may_have_had(
        &self,
        folders: &[&Path],
        names: &BTreeSet<String>,
    ) -> anyhow::Result<bool> {
        let names = names.iter().map(|it| format!(":(top,glob)**/{it}"));
        let folders = folders.iter();
        let folders = folders.map(|it| format!(":(literal){}", it.display()));
        git::may_have_had(&self.commit, folders.chain(names))
    }

    /// Returns whether a file of it contains texts that all of these regular expressions match.
    pub(crate) fn contains(&self, patterns: &[&str]) -> anyhow::Result<bool> {
        git::contains(&self.commit, patterns)
    }

    /// Returns what is there, no link followed.
    pub(super) fn type_of(&self, path: &Path) -> Option<EntryType> {
        self.looked_up(path, LastLink::Kept)
    }

    /// Returns what a path leads to.
    pub(super) fn target_type(&self, path: &Path) -> Option<EntryType> {
        self.looked_up(path, LastLink::Followed)
    }

    /// Returns what is in a folder.
    pub(super) fn entries(&self, folder: &Path) -> anyhow::Result<Vec<(OsString, EntryType)>> {
        let list = || {
            let entry = self.entry(folder)?;
            if entry.mode != EntryMode::Folder {
                bail!("it is {}", EntryType::from(entry.mode).name());
            }
            let tree = self.tree(&entry.id)?;
            Ok(tree.entries().map(|(name, entry)| (name.into(), entry.mode.into())).collect())
        };
        list().with_context(|| format!("cannot read the folder {}", self.shown(folder)))
    }

    /// Returns the content of a file of at most `limit` bytes.
    pub(super) fn read(&self, path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
        let read = || {
            let entry = self.entry(path)?;
            if entry.mode != EntryMode::File {
                let name = EntryType::from(entry.mode).name();
                bail!("it is {name}, not a regular file");
            }
            self.repository.read(&entry.id, limit)
        };
        read().with_context(|| format!("cannot read {}", self.shown(path)))
    }

    /// Returns the object that a file is.
    pub(super) fn object(&self, path: &Path) -> Option<ObjectId> {
        let entry = self.entry(path).ok()?;
        (entry.mode == EntryMode::File).then_some(entry.id)
    }

    /// Returns the commit.
    pub(crate) fn commit(&self) -> &ObjectId {
        &self.commit
    }

    /// Returns what the commit is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn shown_name(&self) -> String {
        shown(Path::new(&self.name))
    }

    fn shown(&self, path: &Path) -> String {
        format!("{} of {}", shown(path), self.shown_name())
    }

    fn looked_up(&self, path: &Path, last: LastLink) -> Option<EntryType> {
        match self.find(path, last) {
            Ok(Found::Entry(entry)) => Some(entry.mode.into()),
            Ok(Found::Missing | Found::Refused(_)) => None,
            Err(error) => {
                self.failure.get_or_init(|| format!("{error:#}"));
                None
            }
        }
    }

    fn entry(&self, path: &Path) -> anyhow::Result<TreeEntry> {
        match self.find(path, LastLink::Followed)? {
            Found::Entry(entry) => Ok(entry),
            Found::Missing => bail!("it does not exist in this commit"),
            Found::Refused(why) => bail!(why),
        }
    }

    fn find(&self, path: &Path, last: LastLink) -> anyhow::Result<Found> {
        self.find_in(&self.root, path, last)
    }

    /// Returns the end of a path in the tree of any commit.
    fn find_in(&self, root: &ObjectId, path: &Path, last: LastLink) -> anyhow::Result<Found> {
        const OUTSIDE: &str = "it is outside of the repository, so no commit has it";
        let mut walk = CommitWalk::new(root);
        let path = if path.is_absolute() {
            match self.below_top(path) {
                Some(path) => path,
                None => return Ok(Found::Refused(OUTSIDE)),
            }
        } else {
            self.here.join(path)
        };
        if !walk.add(&path) {
            return Ok(Found::Refused(OUTSIDE));
        }
        let folder = |id: ObjectId| TreeEntry { mode: EntryMode::Folder, id };
        while let Some(name) = walk.rest.pop_front() {
            if name == ".." {
                if !walk.leave() {
                    return Ok(Found::Refused(OUTSIDE));
                }
                continue;
            }
            let entry = match walk.folder() {
                Some(folder) => self.tree(&folder)?.get(&name).cloned(),
                None => None,
            };
            let is_last = walk.rest.is_empty();
            match entry {
                Some(entry) if entry.mode == EntryMode::Folder => {
                    walk.folders.push(Some(entry.id));
                }
                Some(entry)
                    if entry.mode == EntryMode::Link
                        && (!is_last || last == LastLink::Followed) =>
                {
                    walk.links += 1;
                    if LINKS < walk.links {
                        return Ok(Found::Refused("too many links lead to it"));
                    }
                    let target = self.repository.read(&entry.id, TARGET)?;
                    if !walk.add(Path::new(&os_string(target))) {
                        return Ok(Found::Refused("a link leads out of the repository"));
                    }
                }
                Some(entry) if is_last => return Ok(Found::Entry(entry)),
                None if !is_last => walk.folders.push(None),
                Some(_) | None => return Ok(Found::Missing),
            }
        }
        Ok(walk.folder().map_or(Found::Missing, |id| Found::Entry(folder(id))))
    }

    /// Returns an absolute path as seen from the top of the repository, if it is in that.
    fn below_top(&self, path: &Path) -> Option<PathBuf> {
        let top = &self.repository.top;
        let inside = path.strip_prefix(top).map(Path::to_owned).ok();
        inside.or_else(|| whole(path).ok()?.strip_prefix(top).map(Path::to_owned).ok())
    }

    fn tree(&self, id: &ObjectId) -> anyhow::Result<Arc<GitTree>> {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = trees.get(id) {
            return Ok(Arc::clone(tree));
        }
        let tree = Arc::new(self.repository.tree(id)?);
        trees.insert(id.clone(), Arc::clone(&tree));
        Ok(tree)
    }

    /// Forgets all trees if there are more than some.
    fn forget_trees(&self, most: usize) {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if most < trees.len() {
            trees.clear();
        }
    }
}

impl CommitWalk {
    fn new(root: &ObjectId) -> Self {
        Self { folders: vec![Some(root.clone())], rest: VecDeque::new(), links: 0 }
    }

    /// Continues with a path from the current folder; fails for one from the root of a disk.
    fn add(&mut self, path: &Path) -> bool {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => names.push("..".into()),
                Component::Normal(name) => names.push(name.to_owned()),
                Component::RootDir | Component::Prefix(_) => return false,
            }
        }
        for name in names.into_iter().rev() {
            self.rest.push_front(name);
        }
        true
    }

    /// Goes to the folder above, if there is one.
    fn leave(&mut self) -> bool {
        self.folders.pop();
        !self.folders.is_empty()
    }

    fn folder(&self) -> Option<ObjectId> {
        self.folders.last().cloned().flatten()
    }
}

/// Returns the canonical path of something that need not be there: of the folders above it that are.
pub(super) fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    let mut rest: Vec<&OsStr> = Vec::new();
    let mut there = path;
    while fs::symlink_metadata(there).is_err_and(|it| it.kind() == io::ErrorKind::NotFound) {
        // `..` of what is not there leads nowhere.
        let name = there.file_name().context("a folder in its path does not exist")?;
        rest.push(name);
        there = match there.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
    }
    let mut whole = there.canonicalize()?;
    whole.extend(rest.iter().rev());
    Ok(whole)
}

/// Returns where a path leads, links included, whether anything is there or not. It is the same path if nothing may
/// be known about the files behind a link.
///
/// # Errors
/// The working folder is gone, or cannot be looked at.
pub(super) fn destination(path: &Path) -> anyhow::Result<PathBuf> {
    let here = Path::new(".").canonicalize().context("cannot look at the working folder")?;
    let mut whole = PathBuf::new();
    let mut rest: VecDeque<PathBuf> = parts(&here.join(path)).collect();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == Path::new("..") {
            whole.pop();
            continue;
        }
        let next = whole.join(&part);
        match fs::read_link(&next) {
            Ok(target) if links < LINKS => {
                links += 1;
                // An absolute target replaces the path.
                parts(&target).rev().for_each(|it| rest.push_front(it));
            }
            _ => whole = next,
        }
    }
    Ok(whole)
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    path.components().filter(|it| *it != Component::CurDir).map(|it| PathBuf::from(it.as_os_str()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn links_lead_somewhere_whether_it_is_there_or_not() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        fs::create_dir(folder.join("there")).unwrap();
        symlink("there/../../x", folder.join("up")).unwrap();
        symlink("/no/where", folder.join("gone")).unwrap();
        symlink("gone", folder.join("again")).unwrap();
        symlink("circle", folder.join("circle")).unwrap();
        let leads = |path: &str| destination(&folder.join(path)).unwrap();
        assert_eq!(leads("there/a/../b"), folder.join("there/b"));
        assert_eq!(leads("up/y"), folder.parent().unwrap().join("x/y"));
        assert_eq!(leads("again/y"), Path::new("/no/where/y"));
        assert_eq!(leads("circle"), folder.join("circle"));
    }
}
