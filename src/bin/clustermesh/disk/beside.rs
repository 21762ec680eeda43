//! Files beside the tree that a swap writes or removes with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tempfile::TempPath;

use super::{folder_of, shown, sweep_all, temporary_in};

/// The steps.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Files to remove.
    pub(crate) remove: Vec<PathBuf>,
    /// Files to write afterwards, in this order.
    pub(crate) write: Vec<(PathBuf, Arc<str>)>,
}

/// New files that wait beside the places that they are meant for, so that a rename puts each there.
/// Files that are left when this is dropped are removed.
#[derive(Debug, Default)]
pub(super) struct Waiting {
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
                sweep_all(folder);
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
    pub(super) fn unmake(self) {
        let Self { files, folders, .. } = self;
        drop(files);
        for folder in folders.iter().rev() {
            // It fails if another program put something into it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the folders above a removed file in which nothing is left, as git would.
pub(super) fn remove_emptied(path: &Path) {
    for folder in path.ancestors().skip(1) {
        if folder == Path::new("") || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
