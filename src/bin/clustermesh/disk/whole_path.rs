//! Whole paths: canonical, also for files that do not exist yet.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Returns the canonical path of something that need not be there: of the folders above it that are.
pub(super) fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    let mut rest: Vec<&OsStr> = Vec::new();
    let mut there = path;
    while fs::symlink_metadata(there).is_err_and(|it| it.kind() == io::ErrorKind::NotFound) {
        // `..` of what is not there leads nowhere.
        let name = there
            .file_name()
            .context("a folder in its path does not exist")?;
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
