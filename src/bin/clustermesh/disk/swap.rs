//! The swap: replaces the old tree with a new one, completely or not at all.
//!
//! Everything is written into a folder of its own first, so that a full disk or a lack of memory
//! changes nothing. Then each file is renamed into its place, which a kill can only precede or
//! follow, and every step is remembered until the last one is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rayon::prelude::*;
use tempfile::{Builder, TempDir, TempPath};

use super::tree::{TreeSurvey, WantedFiles, folders};
use super::{
    OLD, Roots, TEMPORARY, create, folder_of, is_abandoned, is_temporary, is_there,
    keep_permissions, shown, sweep_all, temporary_in,
};
use crate::disk;

/// A swap in progress.
struct Swap {
    /// The folder for new files that wait and old files that are kept; removed when this is dropped.
    staging: TempDir,
    /// New files that wait beside the tree.
    waiting: Waiting,
    /// The steps, in order.
    steps: Vec<SwapStep>,
    /// The number of completed steps, which must be undone after a failure.
    done: usize,
}

/// Something that is done to the tree.
enum SwapStep {
    /// A folder is moved with all its files to where none is.
    Move { from: PathBuf, to: PathBuf },
    /// A file is made where none is.
    Make { from: PathBuf, to: PathBuf },
    /// A file is replaced, of which `old` is the old one.
    Replace { from: PathBuf, to: PathBuf, old: PathBuf },
    /// A file is removed, of which `old` is the old one.
    Remove { path: PathBuf, old: PathBuf },
}

/// Updates the tree under `root` where the survey found differences.
///
/// Files beside it are written and removed with it. If anything fails, everything is put back as it
/// was. Other files are left alone.
pub(crate) fn apply(
    root: &Path,
    wanted: &WantedFiles,
    survey: &TreeSurvey,
    beside: &Beside,
) -> anyhow::Result<()> {
    survey.check_unblocked(root)?;
    if survey.is_current() && survey.abandoned.is_empty() && beside.is_empty() {
        return Ok(());
    }
    let absent: Vec<&Path> = root.ancestors().take_while(is_absent).collect();
    let applied = apply_in(root, wanted, survey, beside);
    if applied.is_err() {
        for folder in absent {
            // It fails where it was not made, or where someone else put something into it.
            let _ = fs::remove_dir(folder);
        }
    }
    applied.with_context(|| format!("cannot write the tree {}", shown(root)))
}

fn apply_in(
    root: &Path,
    wanted: &WantedFiles,
    survey: &TreeSurvey,
    beside: &Beside,
) -> anyhow::Result<()> {
    fs::create_dir_all(root)?;
    let _lock = disk::hold_lock(root)?;
    for path in &survey.abandoned {
        remove_abandoned(path)?;
    }
    let mut swap = Swap {
        staging: Builder::new().prefix(TEMPORARY).tempdir_in(root)?,
        waiting: Waiting::default(),
        steps: Vec::new(),
        done: 0,
    };
    if let Err(error) = swap.run(root, wanted, survey, beside) {
        return Err(swap.undo(error));
    }
    remove_emptied(root, wanted, survey);
    beside.remove_emptied();
    Ok(())
}

fn is_absent(folder: &&Path) -> bool {
    *folder != Path::new("") && fs::symlink_metadata(folder).is_err()
}

/// Another run may have been quicker.
fn remove_abandoned(path: &Path) -> anyhow::Result<()> {
    let is_ours = path.file_name().is_some_and(|it| is_temporary(&it.to_string_lossy()));
    if !is_ours {
        // It fails if it is no longer empty.
        let _ = fs::remove_dir(path);
        return Ok(());
    }
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else if is_abandoned(path)? {
        fs::remove_file(path)
    } else {
        Ok(())
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", shown(path)))
        }
        _ => Ok(()),
    }
}

/// Removes empty folders, as git would. A failure does no harm.
fn remove_emptied(root: &Path, wanted: &WantedFiles, survey: &TreeSurvey) {
    let kept = folders(wanted).unwrap_or_default();
    let mut emptied: Vec<&str> = survey
        .stale
        .iter()
        .filter_map(|path| Some(path.split_once('/')?.0))
        .filter(|folder| !kept.contains(folder))
        .collect();
    emptied.dedup();
    for folder in emptied {
        // It fails where something foreign is left, which is as it should be.
        let _ = fs::remove_dir(root.join(folder));
    }
}

impl Swap {
    fn run(
        &mut self,
        root: &Path,
        wanted: &WantedFiles,
        survey: &TreeSurvey,
        beside: &Beside,
    ) -> anyhow::Result<()> {
        self.stage(root, wanted, survey)?;
        self.stage_beside(beside)?;
        // From here on no memory is needed, whose want would kill us halfway.
        let last = self.steps.len().saturating_sub(1);
        for (place, step) in self.steps.iter().enumerate() {
            if place == last {
                beside.remove_emptied();
            }
            step.run().with_context(|| step.failure())?;
            self.done += 1;
        }
        Ok(())
    }

    /// Writes what is new, keeps what is old, and makes ready what is to be done.
    fn stage(
        &mut self,
        root: &Path,
        wanted: &WantedFiles,
        survey: &TreeSurvey,
    ) -> anyhow::Result<()> {
        let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in survey.missing.iter().chain(&survey.changed) {
            let (folder, _) = path.split_once('/').context("surveyed another tree")?;
            folders.entry(folder).or_default().push(path);
        }
        // Several folders in parallel, because files in one folder are created one after another.
        folders.par_iter().try_for_each(|(folder, paths)| {
            fs::create_dir(self.staged(folder))?;
            paths.iter().try_for_each(|path| {
                let text = wanted.get(*path).context("surveyed another tree")?;
                let written = create(&self.staged(path), text.as_bytes());
                written.with_context(|| format!("cannot write {}", shown(&root.join(path))))
            })
        })?;
        let changed: BTreeSet<&str> = survey.changed.iter().map(String::as_str).collect();
        for (folder, paths) in folders {
            if !is_there(&Roots::anywhere(), &root.join(folder))? {
                let (from, to) = (self.staged(folder), root.join(folder));
                self.steps.push(SwapStep::Move { from, to });
                continue;
            }
            for path in paths {
                let (from, to) = (self.staged(path), root.join(path));
                self.steps.push(if changed.contains(path) {
                    let old = self.back_up(&to)?;
                    keep_permissions(&to, &from)?;
                    SwapStep::Replace { from, to, old }
                } else {
                    SwapStep::Make { from, to }
                });
            }
        }
        for path in &survey.stale {
            let path = root.join(path);
            let old = self.back_up(&path)?;
            self.steps.push(SwapStep::Remove { path, old });
        }
        Ok(())
    }

    /// Makes ready what is to be done beside the tree.
    fn stage_beside(&mut self, beside: &Beside) -> anyhow::Result<()> {
        // The list of files is written last, when emptied folders are gone: after a run that was killed, the next
        // one finds in the old list what it has yet to remove.
        for path in &beside.remove {
            let old = self.back_up(path)?;
            let path = path.clone();
            self.steps.push(SwapStep::Remove { path, old });
        }
        for (to, text) in &beside.write {
            let from = self.waiting.add(to, text)?;
            let to = to.clone();
            self.steps.push(if is_there(&Roots::anywhere(), &to)? {
                let old = self.back_up(&to)?;
                keep_permissions(&to, &from)?;
                SwapStep::Replace { from, to, old }
            } else {
                SwapStep::Make { from, to }
            });
        }
        Ok(())
    }

    /// Gives a file a second name, or a copy where the file system knows no second names.
    fn back_up(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let name = format!("{OLD}{}", self.steps.len());
        let old = self.staging.path().join(name);
        if fs::hard_link(path, &old).is_err() {
            fs::copy(path, &old).with_context(|| format!("cannot keep {}", shown(path)))?;
        }
        Ok(old)
    }

    /// The waiting copy of a file or folder of the tree, under its own name.
    fn staged(&self, path: &str) -> PathBuf {
        self.staging.path().join(path)
    }

    /// Puts everything back and returns why, and what could not be put back.
    fn undo(self, reason: anyhow::Error) -> anyhow::Error {
        let Self { staging, waiting, steps, done } = self;
        let undone: Vec<_> =
            steps.iter().take(done).rev().filter_map(|step| step.undo().err()).collect();
        waiting.unmake();
        if undone.is_empty() {
            return reason;
        }
        let kept = shown(&staging.keep());
        reason.context(format!(
            "{} changes could not be undone; the next run removes the old files, which are in {kept}",
            undone.len()
        ))
    }
}

impl SwapStep {
    fn run(&self) -> io::Result<()> {
        match self {
            Self::Move { from, to } | Self::Make { from, to } | Self::Replace { from, to, .. } => {
                fs::rename(from, to)
            }
            Self::Remove { path, .. } => fs::remove_file(path),
        }
    }

    fn undo(&self) -> io::Result<()> {
        match self {
            Self::Move { from, to } => fs::rename(to, from),
            Self::Make { to, .. } => fs::remove_file(to),
            Self::Replace { to, old, .. } => fs::rename(old, to),
            Self::Remove { path, old } => {
                // Its folder was removed if nothing else was in it.
                fs::create_dir_all(folder_of(path))?;
                fs::rename(old, path)
            }
        }
    }

    fn failure(&self) -> String {
        match self {
            Self::Move { to, .. } | Self::Make { to, .. } | Self::Replace { to, .. } => {
                format!("cannot write {}", shown(to))
            }
            Self::Remove { path, .. } => format!("cannot remove {}", shown(path)),
        }
    }
}

/// The steps.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Files to remove.
    pub(crate) remove: Vec<PathBuf>,
    /// Files that were to be removed and are gone: a killed run may have left their folders.
    pub(crate) gone: Vec<PathBuf>,
    /// Files to write afterwards, in this order.
    pub(crate) write: Vec<(PathBuf, Arc<str>)>,
}

/// New files that wait beside the places that they are meant for, so that a rename puts each there.
/// Files that are left when this is dropped are removed.
#[derive(Debug, Default)]
struct Waiting {
    files: Vec<TempPath>,
    /// Folders that were made.
    folders: Vec<PathBuf>,
    /// Folders in which nothing of an earlier run is left.
    swept: BTreeSet<PathBuf>,
}

impl Beside {
    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty()
    }

    /// Removes folders of removed files in which nothing is left.
    fn remove_emptied(&self) {
        self.remove.iter().chain(&self.gone).for_each(|it| remove_emptied_above(it));
    }
}

impl Waiting {
    /// Writes a file beside its place and returns where it waits. Missing folders are made.
    pub(super) fn add(&mut self, path: &Path, text: &str) -> anyhow::Result<PathBuf> {
        use std::io::Write as _;

        let mut write = || -> anyhow::Result<PathBuf> {
            let folder = folder_of(path);
            let absent: Vec<PathBuf> = folder
                .ancestors()
                .take_while(|it| *it != Path::new("") && fs::symlink_metadata(it).is_err())
                .map(Path::to_owned)
                .collect();
            fs::create_dir_all(folder)?;
            self.folders.extend(absent.into_iter().rev());
            if self.swept.insert(folder.to_owned()) {
                sweep_all(folder)?;
            }
            let mut file = temporary_in(folder)?;
            file.write_all(text.as_bytes())?;
            let file = file.into_temp_path();
            let waits = file.to_path_buf();
            self.files.push(file);
            Ok(waits)
        };
        write().with_context(|| format!("cannot write {}", shown(path)))
    }

    /// Removes the folders that were made, if nothing is in them.
    fn unmake(self) {
        let Self { files, folders, .. } = self;
        drop(files);
        for folder in folders.iter().rev() {
            // It fails if another program put something into it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the folders above a removed file in which nothing is left, as git would.
fn remove_emptied_above(path: &Path) {
    for folder in path.ancestors().skip(1) {
        let is_left = fs::remove_dir(folder).is_err_and(|it| it.kind() != io::ErrorKind::NotFound);
        if folder == Path::new("") || is_left {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
