//! Whole paths: canonical, also for files that do not exist yet.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;

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

/// The largest number of links on the way to a file: that of Linux.
const LINKS: usize = 40;

/// Returns where a path leads, links included, whether anything is there or not. It is the same path if nothing may
/// be known about the files behind a link.
pub(super) fn destination(path: &Path) -> PathBuf {
    let here = Path::new(".").canonicalize().unwrap_or_default();
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
    whole
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    let parts = path.components().filter(|it| *it != Component::CurDir);
    parts.map(|it| PathBuf::from(it.as_os_str()))
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
        let leads = |path: &str| destination(&folder.join(path));
        assert_eq!(leads("there/a/../b"), folder.join("there/b"));
        assert_eq!(leads("up/y"), folder.parent().unwrap().join("x/y"));
        assert_eq!(leads("again/y"), Path::new("/no/where/y"));
        assert_eq!(leads("circle"), folder.join("circle"));
    }
}
