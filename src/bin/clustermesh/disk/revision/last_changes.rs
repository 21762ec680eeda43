//! The commits that last changed some files, from one walk through the history.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use super::{Found, LastLink, Revision};
use crate::git::{self, EntryMode, GitCommit, ObjectId, TreeEntry};

/// The most commits that are read. That takes about two seconds, which a date is worth.
const COMMITS: usize = 20_000;

/// The most trees that are kept.
const TREES: usize = 64;

/// A commit on the way back, and the files that are the same from the start to here.
struct HistoryStep<'n> {
    commit: GitCommit,
    /// The folder in its tree, if it is there.
    folder: Option<ObjectId>,
    files: Vec<&'n str>,
}

/// The next steps by the time and the name of their commit.
type HistorySteps<'n> = BTreeMap<(i64, ObjectId), HistoryStep<'n>>;

impl Revision {
    /// Returns when the last commit up to this one changed each of some files of a folder, in Unix seconds. It is the commit
    /// that `git log -1 -- FILE` prints: a merge in which the file is the same as in one of its parents did not change it, and
    /// only this parent is followed. A file is missing if no commit changed it, if this is a shallow clone, which may lack the
    /// commit, or if the commit is too far away.
    pub(crate) fn last_changes<'n>(
        &self,
        folder: &Path,
        files: Vec<&'n str>,
    ) -> anyhow::Result<BTreeMap<&'n str, i64>> {
        let mut times = BTreeMap::new();
        if git::missing_history()?.is_some() {
            return Ok(times);
        }
        let mut steps = HistorySteps::new();
        self.step(&self.commit, folder)?.add_to(&mut steps, &self.commit, files);
        for _ in 0..COMMITS {
            let Some((_, step)) = steps.pop_last() else {
                break;
            };
            let parents = step.commit.parents.iter();
            let parents = parents.map(|id| Ok((id, self.step(id, folder)?)));
            let parents: Vec<(&ObjectId, HistoryStep)> = parents.collect::<anyhow::Result<_>>()?;
            let mut same = vec![Vec::new(); parents.len()];
            for file in step.files.iter().copied() {
                let entry = self.file(step.folder.as_ref(), file)?;
                match self.place_of_same(&step, entry.as_ref(), &parents, file)? {
                    Some(place) => same.get_mut(place).into_iter().for_each(|it| it.push(file)),
                    // No commit has it.
                    None if parents.is_empty() && entry.is_none() => {}
                    None => {
                        times.insert(file, step.commit.time);
                    }
                }
            }
            for ((id, before), files) in parents.into_iter().zip(same) {
                before.add_to(&mut steps, id, files);
            }
            self.forget_trees(TREES);
        }
        Ok(times)
    }

    fn step<'n>(&self, id: &ObjectId, folder: &Path) -> anyhow::Result<HistoryStep<'n>> {
        let commit = self.repository.parsed(id)?;
        let folder = match self.find_in(&commit.tree, folder, LastLink::Followed)? {
            Found::Entry(it) if it.mode == EntryMode::Folder => Some(it.id),
            Found::Entry(_) | Found::Missing | Found::Refused(_) => None,
        };
        Ok(HistoryStep { commit, folder, files: Vec::new() })
    }

    /// Returns the place of the first parent that has the same file.
    fn place_of_same(
        &self,
        step: &HistoryStep,
        entry: Option<&TreeEntry>,
        parents: &[(&ObjectId, HistoryStep)],
        file: &str,
    ) -> anyhow::Result<Option<usize>> {
        for (place, (_, before)) in parents.iter().enumerate() {
            if before.folder == step.folder
                || self.file(before.folder.as_ref(), file)?.as_ref() == entry
            {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn file(&self, folder: Option<&ObjectId>, name: &str) -> anyhow::Result<Option<TreeEntry>> {
        let tree = folder.map(|it| self.tree(it)).transpose()?;
        Ok(tree.and_then(|it| it.get(OsStr::new(name)).cloned()))
    }
}

impl<'n> HistoryStep<'n> {
    /// Adds it to the next steps, if there are files for it.
    fn add_to(self, steps: &mut HistorySteps<'n>, id: &ObjectId, files: Vec<&'n str>) {
        if !files.is_empty() {
            let step = steps.entry((self.commit.time, id.clone())).or_insert(self);
            step.files.extend(files);
        }
    }
}
