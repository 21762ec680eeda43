//! The swap: replaces the old tree with a new one, completely or not at all.
//!
//! Everything is written into a folder of its own first, so that a full disk or a lack of memory
//! changes nothing. Then each file is renamed into its place, which a kill can only precede or
//! follow, and every step is remembered until the last one is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rayon::prelude::*;
use tempfile::{Builder, TempDir};

use super::beside::{self, Beside, Waiting};
use super::tree::{TreeSurvey, WantedFiles, folders};
use super::{OLD, TEMPORARY, create, lock, shown};

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
    Replace {
        from: PathBuf,
        to: PathBuf,
        old: PathBuf,
    },
    /// A file is removed, of which `old` is the old one.
    Remove { path: PathBuf, old: PathBuf },
}

/// Updates the tree under `root` where the survey found differences.
///
/// Files beside it are written and removed with it. If anything fails, everything is put back as it
/// was. What is not ours is left alone.
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
    let _lock = lock::hold(root)?;
    for folder in &survey.abandoned {
        remove_abandoned(folder)?;
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
    beside
        .remove
        .iter()
        .for_each(|it| beside::remove_emptied(it));
    Ok(())
}

fn is_absent(folder: &&Path) -> bool {
    *folder != Path::new("") && fs::symlink_metadata(folder).is_err()
}

/// Another run may have been quicker.
fn remove_abandoned(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", shown(folder)))
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
        for step in &self.steps {
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
            if fs::symlink_metadata(root.join(folder)).is_err() {
                let (from, to) = (self.staged(folder), root.join(folder));
                self.steps.push(SwapStep::Move { from, to });
                continue;
            }
            for path in paths {
                let (from, to) = (self.staged(path), root.join(path));
                self.steps.push(if changed.contains(path) {
                    let old = self.back_up(&to)?;
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
        // What is written last lists what is there: a run that is killed before finds in the old list
        // what it has yet to remove.
        for path in &beside.remove {
            let old = self.back_up(path)?;
            let path = path.clone();
            self.steps.push(SwapStep::Remove { path, old });
        }
        for (to, text) in &beside.write {
            let from = self.waiting.add(to, text)?;
            let to = to.clone();
            self.steps.push(if fs::symlink_metadata(&to).is_ok() {
                let old = self.back_up(&to)?;
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
            let copied = fs::copy(path, &old);
            copied.with_context(|| format!("cannot keep {}", shown(path)))?;
        }
        Ok(old)
    }

    /// The waiting copy of a file or folder of the tree, under its own name.
    fn staged(&self, path: &str) -> PathBuf {
        self.staging.path().join(path)
    }

    /// Puts everything back and returns why, and what could not be put back.
    fn undo(self, reason: anyhow::Error) -> anyhow::Error {
        let Self {
            staging,
            waiting,
            steps,
            done,
        } = self;
        let undone: Vec<_> = steps
            .iter()
            .take(done)
            .rev()
            .filter_map(|step| step.undo().err())
            .collect();
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
            Self::Replace { to: path, old, .. } | Self::Remove { path, old } => {
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

#[cfg(test)]
mod tests {
    use clustermesh::yaml;

    use super::super::Roots;
    use super::super::tree::survey;
    use super::*;

    fn ours(text: &str) -> String {
        format!("{}\n{text}\n", yaml::HEADER)
    }

    fn files(files: &[(&str, &str)]) -> WantedFiles {
        let file = |&(path, text): &(&str, &str)| (path.to_owned(), ours(text).into());
        files.iter().map(file).collect()
    }

    /// The content of a folder: the text of each file, none for a folder.
    fn on_disk(root: &Path) -> BTreeMap<PathBuf, Option<String>> {
        let mut on_disk = BTreeMap::new();
        for entry in fs::read_dir(root).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                on_disk.extend(self::on_disk(&path));
                on_disk.insert(path, None);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                on_disk.insert(path, Some(text));
            }
        }
        on_disk
    }

    fn put(root: &Path, wanted: &WantedFiles) -> anyhow::Result<()> {
        let survey = survey(&Roots::anywhere(), root, wanted)?;
        apply(root, wanted, &survey, &Beside::default())
    }

    fn assert_stands(root: &Path, wanted: &WantedFiles) {
        let there = on_disk(root).into_iter().filter_map(|(path, text)| {
            let path = path.strip_prefix(root).unwrap().to_str()?.to_owned();
            Some((path, text?.into()))
        });
        assert_eq!(there.collect::<WantedFiles>(), *wanted);
    }

    #[test]
    fn makes_a_tree_and_then_the_next() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("deep/rendered");
        let old = files(&[
            ("west/a.yaml", "1"),
            ("west/b.yaml", "1"),
            ("east/a.yaml", "1"),
        ]);
        put(&root, &old).unwrap();
        assert_stands(&root, &old);
        let new = files(&[
            ("west/a.yaml", "1"),
            ("west/b.yaml", "2"),
            ("north/a.yaml", "1"),
        ]);
        put(&root, &new).unwrap();
        assert_stands(&root, &new);
        assert!(!root.join("east").exists());
        put(&root, &files(&[])).unwrap();
        assert_eq!(on_disk(&root), BTreeMap::new());
    }

    #[test]
    #[cfg(unix)]
    fn touches_only_what_differs() {
        use std::os::unix::fs::MetadataExt as _;
        let root = TempDir::new().unwrap();
        put(
            root.path(),
            &files(&[("west/a.yaml", "1"), ("west/b.yaml", "1")]),
        )
        .unwrap();
        let seen = |path: &str| {
            let metadata = fs::metadata(root.path().join(path)).unwrap();
            (
                metadata.ino(),
                metadata.mtime_nsec(),
                metadata.ctime_nsec(),
                metadata.mode() & 0o777,
            )
        };
        let (a, top) = (seen("west/a.yaml"), seen(""));
        put(
            root.path(),
            &files(&[("west/a.yaml", "1"), ("west/b.yaml", "1")]),
        )
        .unwrap();
        assert_eq!(seen(""), top);
        put(
            root.path(),
            &files(&[("west/a.yaml", "1"), ("west/b.yaml", "2")]),
        )
        .unwrap();
        assert_eq!(seen("west/a.yaml"), a);
        assert_eq!(a.3 | 0o044, 0o644);
    }

    #[test]
    fn leaves_alone_what_is_not_ours() {
        let root = TempDir::new().unwrap();
        put(
            root.path(),
            &files(&[("west/a.yaml", "1"), ("east/a.yaml", "1")]),
        )
        .unwrap();
        fs::write(root.path().join("west/notes.txt"), "mine").unwrap();
        fs::write(root.path().join("README.md"), "mine").unwrap();
        put(root.path(), &files(&[])).unwrap();
        let left: Vec<Option<String>> = on_disk(root.path()).into_values().collect();
        assert_eq!(left, [Some("mine".into()), None, Some("mine".into())]);
    }

    #[test]
    #[cfg(unix)]
    fn writes_through_no_link() {
        let (root, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(outside.path().join("a.yaml"), ours("theirs")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("west")).unwrap();
        let wanted = files(&[("west/a.yaml", "1"), ("east/a.yaml", "1")]);
        assert!(put(root.path(), &wanted).is_err());
        assert!(!root.path().join("east").exists());
        assert_stands(outside.path(), &files(&[("a.yaml", "theirs")]));
    }

    /// A folder that comes into the way after the survey fails the run in its middle.
    #[test]
    fn puts_everything_back_when_it_fails() {
        for trap in ["west/m.yaml", "west/c.yaml", "west/s.yaml"] {
            let root = TempDir::new().unwrap();
            let old = [
                ("west/b.yaml", "1"),
                ("west/c.yaml", "1"),
                ("gone/a.yaml", "1"),
            ];
            put(
                root.path(),
                &files(&[&old[..], &[("west/s.yaml", "1")]].concat()),
            )
            .unwrap();
            let new = [
                ("new/a.yaml", "2"),
                ("west/b.yaml", "2"),
                ("west/c.yaml", "2"),
            ];
            let wanted = files(&[&new[..], &[("west/m.yaml", "2")]].concat());
            let survey = survey(&Roots::anywhere(), root.path(), &wanted).unwrap();
            assert_eq!(
                (
                    survey.missing.len(),
                    survey.changed.len(),
                    survey.stale.len()
                ),
                (2, 2, 2)
            );
            let path = root.path().join(trap);
            if path.exists() {
                fs::remove_file(&path).unwrap();
            }
            fs::create_dir(&path).unwrap();
            fs::write(path.join("mine"), "mine").unwrap();
            let before = on_disk(root.path());
            let error = apply(root.path(), &wanted, &survey, &Beside::default()).unwrap_err();
            assert!(format!("{error:#}").contains(trap), "{error:#}");
            assert_eq!(on_disk(root.path()), before);
        }
    }

    #[test]
    fn unmakes_folders_when_it_fails() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("deep/rendered");
        let mut survey =
            survey(&Roots::anywhere(), &root, &files(&[("west/a.yaml", "1")])).unwrap();
        survey.missing.push("west/unknown.yaml".to_owned());
        assert!(
            apply(
                &root,
                &files(&[("west/a.yaml", "1")]),
                &survey,
                &Beside::default()
            )
            .is_err()
        );
        assert_eq!(on_disk(folder.path()), BTreeMap::new());
    }

    /// A run that is killed between two steps must find in its list what it has yet to remove.
    #[test]
    fn removes_before_it_forgets() {
        let root = TempDir::new().unwrap();
        let [old, list] = ["old", "list"].map(|name| root.path().join(name));
        fs::write(&old, "").unwrap();
        let mut swap = Swap {
            staging: TempDir::new_in(root.path()).unwrap(),
            waiting: Waiting::default(),
            steps: Vec::new(),
            done: 0,
        };
        let beside = Beside {
            remove: vec![old],
            write: vec![(list, "nothing".into())],
        };
        swap.stage_beside(&beside).unwrap();
        assert!(matches!(
            swap.steps[..],
            [SwapStep::Remove { .. }, SwapStep::Make { .. }]
        ));
    }

    #[test]
    fn clears_away_what_a_killed_run_left() {
        let root = TempDir::new().unwrap();
        let wanted = files(&[("west/a.yaml", "1")]);
        put(root.path(), &wanted).unwrap();
        let staging = root.path().join(".clustermesh-a1B2c3");
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join(".old-0"), &yaml::HEADER[..9]).unwrap();
        fs::write(staging.join(".old-12"), "an output").unwrap();
        fs::create_dir(staging.join("west")).unwrap();
        fs::write(staging.join("west/b.yaml"), ours("2")).unwrap();
        put(root.path(), &wanted).unwrap();
        assert_stands(root.path(), &wanted);
        assert!(!staging.exists());
    }
}
