//! Files: read whole and bounded, written whole or not at all.
//!
//! Nothing here is synced to the platter: git is the store, and what we write can be rendered again.
//! The code guards against a run that fails or is killed halfway.

use std::fs::{self, File, FileType, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clustermesh::diagnostic;
use tempfile::{Builder, NamedTempFile};

use crate::git::EntryMode;

mod read;
mod revision;
mod roots;
pub(crate) mod swap;
pub(crate) mod tree;

pub(crate) use read::{
    entries, files_in, is_file, is_folder, is_there, read_text, standard_input, type_of,
};
pub(crate) use revision::Revision;
pub(crate) use roots::Roots;

/// The prefix of our temporary files and folders.
const TEMPORARY: &str = ".clustermesh-tmp-";

/// The prefix of the names under which a run keeps the files that it replaces.
const OLD: &str = ".old-";

/// The age at which a temporary file is abandoned, if files cannot be locked.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The longest path that is shown, in characters.
const SHOWN: usize = 1000;

/// Gives a file these bytes and returns whether it had others, or none. Missing folders are made.
///
/// A file that has them is left alone, and one that can't be written, or would be outside of the
/// roots, stays as it was.
pub(crate) fn write_file(roots: &Roots, path: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    let write = || {
        roots.check_output(folder_of(path))?;
        replace(path, bytes)
    };
    write().with_context(|| format!("cannot write {}", shown(path)))
}

/// Returns whether a file has these bytes.
pub(crate) fn has(roots: &Roots, path: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    let same = || -> anyhow::Result<bool> {
        let (mut file, metadata) = read::open(roots, path)?;
        Ok(metadata.len() == bytes.len() as u64 && holds(&mut file, bytes)?)
    };
    same().with_context(|| format!("cannot read {}", shown(path)))
}

/// Returns how many bytes a file has to which text can be added; none if it is not there.
pub(crate) fn length(path: &Path) -> anyhow::Result<u64> {
    match fs::metadata(path) {
        // Opening a pipe would wait for a reader.
        Ok(metadata) if !metadata.is_file() => bail!("{} is not a file", shown(path)),
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Appends text to a file of another program, and creates the file if necessary.
pub(crate) fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    let append = || -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    append().with_context(|| format!("cannot write {}", shown(path)))
}

/// Fails if nothing may be written at a path, which does not have to exist.
pub(crate) fn check_output(roots: &Roots, path: &Path) -> anyhow::Result<()> {
    roots.check_output(folder_of(path))
}

/// Returns why a file that is there is not to be replaced, if there is a reason.
pub(crate) fn kept_reason(path: &Path) -> Option<&'static str> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() {
        return Some("a symbolic link");
    }
    metadata.permissions().readonly().then_some("read-only")
}

/// Returns the canonical path of something that need not be there; the path as it is where that
/// cannot be found.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    revision::whole(path).unwrap_or_else(|_| path.to_owned())
}

/// Removes temporary files that killed runs have left in a folder and that no process has locked.
pub(crate) fn sweep(roots: &Roots, folder: &Path) -> io::Result<()> {
    if roots.check_output(folder).is_ok() { sweep_all(folder) } else { Ok(()) }
}

fn sweep_all(folder: &Path) -> io::Result<()> {
    let Some(entries) = unless_refused(fs::read_dir(folder))? else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        let is_ours = is_temporary(&entry.file_name().to_string_lossy());
        if is_ours && entry.file_type()?.is_file() && is_abandoned(&entry.path())? {
            unless_refused(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

/// Returns nothing for files of others, for what another run has removed, and if a file is where the folder should be.
fn unless_refused<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(it) => Ok(Some(it)),
        Err(error) if is_refusal(error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_refusal(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};

    matches!(kind, NotADirectory | NotFound | PermissionDenied)
}

/// Returns whether `tempfile` made a name for us. Other names with our prefix are those of users,
/// or of permanent files.
pub(crate) fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(TEMPORARY);
    random.is_some_and(|text| text.len() == 6 && text.bytes().all(|it| it.is_ascii_alphanumeric()))
}

/// Returns whether no process has locked a temporary file; if files cannot be locked, whether it is
/// old enough to be abandoned.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    let Some(file) = unless_refused(File::open(path))? else {
        return Ok(false);
    };
    Ok(match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => {
            let modified = file.metadata().and_then(|it| it.modified()).ok();
            let age = modified.and_then(|it| it.elapsed().ok());
            age.is_some_and(|age| ABANDONED < age)
        }
    })
}

/// Returns a path fit for a terminal.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("`{}`", diagnostic::escaped(&text, SHOWN))
}

/// Names what something is, with its article.
pub(crate) fn kind(file_type: impl Into<EntryType>) -> &'static str {
    file_type.into().name()
}

fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    let is_there = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            if metadata.len() == bytes.len() as u64 && holds(&mut File::open(path)?, bytes)? {
                return Ok(false);
            }
            true
        }
        Ok(metadata) => bail!("{} exists in its place", kind(metadata.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut file = temporary_in(folder)?;
    file.write_all(bytes)?;
    if is_there {
        keep_permissions(path, file.path())?;
    }
    file.persist(path)?;
    Ok(true)
}

/// Gives a new file the permissions of the one that it replaces.
fn keep_permissions(old: &Path, new: &Path) -> io::Result<()> {
    let permissions = fs::metadata(old)?.permissions();
    // Some file systems have the same permissions for all files, which cannot be changed.
    if permissions == fs::metadata(new)?.permissions() {
        return Ok(());
    }
    fs::set_permissions(new, permissions)
}

/// The folder of a file, which has a name even if the path does not contain it.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A temporary file is readable only for its owner; ours becomes an ordinary file. It is locked
/// until it is closed, so that other runs do not remove it.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o644));
    }
    loop {
        let file = builder.tempfile_in(folder)?;
        // On systems without file locks, no lock is held.
        let _ = file.as_file().lock();
        // Another run may have swept it away before it was held.
        if file.path().exists() {
            return Ok(file);
        }
    }
}

/// Makes a file that is not there yet, with the permissions of any other.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o644);
    }
    options.open(path)?.write_all(bytes)
}

/// Returns whether the rest of a reader is `bytes`, a piece at a time.
fn holds(reader: &mut impl Read, mut bytes: &[u8]) -> io::Result<bool> {
    let mut piece = [0; 16 * 1024];
    loop {
        let read = match reader.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match piece.get(..read).and_then(|piece| bytes.strip_prefix(piece)) {
            Some(rest) if read == 0 => return Ok(rest.is_empty()),
            Some(rest) => bytes = rest,
            None => return Ok(false),
        }
    }
}

/// The type of an entry of a folder; links are not followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryType {
    /// A regular file.
    File,
    Folder,
    /// A symbolic link.
    Link,
    /// A commit of another repository, in a revision of git.
    Submodule,
    /// A device, pipe or socket.
    Special,
}

impl EntryType {
    /// Returns whether it is a regular file.
    pub(crate) fn is_file(self) -> bool {
        self == Self::File
    }

    /// Returns whether it is a folder.
    pub(crate) fn is_dir(self) -> bool {
        self == Self::Folder
    }

    /// Names it, with its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Submodule => "a submodule",
            Self::Special => "a device, pipe or socket",
        }
    }
}

impl From<FileType> for EntryType {
    fn from(file_type: FileType) -> Self {
        match file_type {
            _ if file_type.is_dir() => Self::Folder,
            _ if file_type.is_symlink() => Self::Link,
            _ if file_type.is_file() => Self::File,
            _ => Self::Special,
        }
    }
}

impl From<EntryMode> for EntryType {
    fn from(mode: EntryMode) -> Self {
        match mode {
            EntryMode::File => Self::File,
            EntryMode::Folder => Self::Folder,
            EntryMode::Link => Self::Link,
            EntryMode::Submodule => Self::Submodule,
        }
    }
}

/// A folder that is locked.
#[derive(Debug)]
struct HeldLock(File);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing it is not enough while a child process, on its way to start, has a copy.
        let _ = self.0.unlock();
    }
}

/// Keeps other runs away until the result is dropped or the process ends.
///
/// If a folder cannot be locked, as on some network file systems, the run continues without a lock.
fn hold_lock(root: &Path) -> anyhow::Result<Option<HeldLock>> {
    let Ok(folder) = File::open(root) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("another run is writing it"),
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(HeldLock(folder))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn refusal<T: std::fmt::Debug>(result: anyhow::Result<T>, folder: &TempDir) -> String {
        let text = format!("{:#}", result.unwrap_err());
        text.replace(&*folder.path().to_string_lossy(), "…")
    }

    #[test]
    fn writes_only_what_differs() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("new/a");
        assert!(write_file(&Roots::anywhere(), &path, b"old").unwrap());
        let before = fs::metadata(&path).unwrap();
        assert!(!write_file(&Roots::anywhere(), &path, b"old").unwrap());
        let after = fs::metadata(&path).unwrap();
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
        assert!(write_file(&Roots::anywhere(), &path, b"new").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        for mode in [0o600, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(write_file(&Roots::anywhere(), &path, &mode.to_string().into_bytes()).unwrap());
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[test]
    fn sweeps_what_killed_runs_have_left() {
        let folder = TempDir::new().unwrap();
        let names = [
            ".clustermesh-tmp-a1B2c3",
            "east.json",
            ".other",
            ".clustermesh-outputs",
            ".clustermesh-config",
        ];
        for name in names {
            File::create(folder.path().join(name)).unwrap();
        }
        let held = temporary_in(folder.path()).unwrap();
        sweep(&Roots::anywhere(), folder.path()).unwrap();
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, true, true, true, true]);
        assert!(held.path().exists());
    }

    #[test]
    fn compares_to_the_last_byte() {
        let long = vec![b'x'; 100_000];
        let mut other = long.clone();
        other[99_999] = b'y';
        assert!(holds(&mut &long[..], &long).unwrap());
        assert!(!holds(&mut &long[..], &other).unwrap());
        assert!(!holds(&mut &long[..], &long[..99_999]).unwrap());
        assert!(!holds(&mut &long[..99_999], &long).unwrap());
    }

    #[test]
    #[cfg(unix)]
    fn writes_ordinary_files_and_follows_no_link() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("b"));
        write_file(&Roots::anywhere(), &file, b"1").unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&file), mode(&plain) & !0o022);
        symlink(&file, &link).unwrap();
        insta::assert_snapshot!(refusal(write_file(&Roots::anywhere(), &link, b"2"), &folder), @"cannot write `…/b`: a symbolic link exists in its place");
        assert_eq!(fs::read(&file).unwrap(), b"1");
    }

    #[test]
    fn one_run_at_a_time() {
        let root = TempDir::new().unwrap();
        let first = hold_lock(root.path()).unwrap();
        if first.is_some() {
            assert!(hold_lock(root.path()).is_err());
        }
        drop(first);
        assert!(hold_lock(root.path()).is_ok());
    }
}
