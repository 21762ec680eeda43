//! Reading: the only way in for all files that come from elsewhere.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clustermesh::document::nearest;

use super::roots::Roots;
use super::{EntryType, folder_of, kind, shown};

/// The longest time that a pipe may have no writer.
const WRITER: Duration = Duration::from_secs(5);

/// The beginning of a file whose content is in Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Whether the standard input is read already.
static IS_INPUT_READ: AtomicBool = AtomicBool::new(false);

const NO_INPUT: &str = "cannot read the standard input";

/// Returns the text of a file of at most `limit` bytes, which must be within the roots. A file that
/// a person named may also be a pipe, or `-` for the standard input.
pub(crate) fn read_text(roots: &Roots, path: &Path, limit: u64) -> anyhow::Result<String> {
    if roots.is_anywhere() && path == Path::new("-") {
        return text_of(standard_input(limit)?).context(NO_INPUT);
    }
    if let Some(revision) = roots.revision() {
        return text_of(revision.read(path, limit)?)
            .with_context(|| format!("cannot read {}", shown(path)));
    }
    let read = || {
        let (mut file, metadata) = open(roots, path)?;
        bounded_text(&mut file, metadata.len(), limit)
    };
    let read = read().map_err(|it| or_meant(roots, path, it));
    read.with_context(|| format!("cannot read {}", shown(path)))
}

/// Adds to an error about a missing file or folder which one beside it was probably meant.
fn or_meant(roots: &Roots, path: &Path, error: anyhow::Error) -> anyhow::Error {
    // A link to nothing has the right name.
    let is_missing = matches!(type_of(roots, path), Ok(None));
    let name = path.file_name().filter(|_| is_missing).and_then(|it| it.to_str());
    let Some(name) = name else { return error };
    let mut beside = entries(roots, folder_of(path)).unwrap_or_default();
    beside.sort_by(|one, other| one.0.cmp(&other.0));
    let others = beside.iter().filter_map(|it| it.0.to_str()).filter(|it| *it != name);
    match nearest(name, others) {
        Some(it) => anyhow!("{error}; did you mean {}?", shown(&path.with_file_name(it))),
        None => error,
    }
}

/// Returns the standard input, of at most `limit` bytes. It can be read once.
pub(crate) fn standard_input(limit: u64) -> anyhow::Result<Vec<u8>> {
    // It would look empty to the second.
    if IS_INPUT_READ.swap(true, Ordering::Relaxed) {
        bail!("only one input can be `-`: the standard input is read already");
    }
    bounded(&mut io::stdin().lock(), 0, limit).context(NO_INPUT)
}

/// Returns whether a path leads to a file that can be read again. A path that leaves the roots counts as one, whether
/// the file exists or not: an attempt to read it fails.
pub(crate) fn is_file(roots: &Roots, path: &Path) -> anyhow::Result<bool> {
    leads_to(roots, path, EntryType::File)
}

/// Returns whether a path leads to a folder. A path that leaves the roots counts as one too.
pub(crate) fn is_folder(roots: &Roots, path: &Path) -> anyhow::Result<bool> {
    leads_to(roots, path, EntryType::Folder)
}

fn leads_to(roots: &Roots, path: &Path, wanted: EntryType) -> anyhow::Result<bool> {
    match roots.revision() {
        Some(revision) => Ok(revision.target_type(path) == Some(wanted)),
        None if roots.are_left_by(path)? => Ok(true),
        None => Ok(if_there(path, fs::metadata(path))? == Some(wanted)),
    }
}

/// Returns whether anything is there, also if it is a link to nowhere.
pub(crate) fn is_there(roots: &Roots, path: &Path) -> anyhow::Result<bool> {
    Ok(type_of(roots, path)?.is_some())
}

/// Returns what is there, no link followed.
pub(crate) fn type_of(roots: &Roots, path: &Path) -> anyhow::Result<Option<EntryType>> {
    match roots.revision() {
        Some(revision) => Ok(revision.type_of(path)),
        None => if_there(path, path.symlink_metadata()),
    }
}

/// Returns what a look at a path has found. Only what is certainly not there is absent: a file in a folder that the user
/// may not enter can be one that an earlier run wrote.
fn if_there(path: &Path, looked: io::Result<Metadata>) -> anyhow::Result<Option<EntryType>> {
    match looked {
        Ok(metadata) => Ok(Some(metadata.file_type().into())),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", shown(path))),
    }
}

/// Returns whether nothing can be at a path: there is no entry, its folder is a file, links lead in circles, or
/// no entry can have this name.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(error.kind(), InvalidFilename | NotADirectory | NotFound)
}

/// Returns the files of a folder with one of these extensions, and the links to files, by name. The
/// folder must be within the roots; where the links lead is checked when they are read.
pub(crate) fn files_in(
    roots: &Roots,
    folder: &Path,
    extensions: &[&str],
) -> anyhow::Result<Vec<PathBuf>> {
    let entries = entries(roots, folder)?.into_iter();
    let has_extension = |path: &PathBuf| {
        path.extension().and_then(|it| it.to_str()).is_some_and(|it| extensions.contains(&it))
    };
    let mut files = Vec::new();
    for path in entries.map(|(name, _)| folder.join(name)).filter(has_extension) {
        if is_file(roots, &path)? {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns what is in a folder, which must be within the roots, by name. No link in it is followed.
pub(crate) fn entries(roots: &Roots, folder: &Path) -> anyhow::Result<Vec<(OsString, EntryType)>> {
    if let Some(revision) = roots.revision() {
        return revision.entries(folder);
    }
    let list = || -> anyhow::Result<Vec<(OsString, EntryType)>> {
        roots.check(folder)?;
        fs::read_dir(folder)?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), entry.file_type()?.into()))
            })
            .collect()
    };
    let list = list().map_err(|it| or_meant(roots, folder, it));
    list.with_context(|| format!("cannot read the folder {}", shown(folder)))
}

/// Opens a file, if it may be read.
pub(super) fn open(roots: &Roots, path: &Path) -> anyhow::Result<(File, Metadata)> {
    if roots.is_anywhere() && fs::metadata(path).is_ok_and(|it| is_pipe(it.file_type())) {
        let file = open_pipe(path)?;
        let metadata = file.metadata()?;
        return Ok((file, metadata));
    }
    roots.check(path)?;
    open_regular(path)
}

/// Opens a pipe. Its writer may take its time to write, but the pipe of a shell has one from the start.
fn open_pipe(path: &Path) -> anyhow::Result<File> {
    let (done, opened) = mpsc::channel();
    let owned = path.to_owned();
    // Opening a pipe blocks until a program writes to it. Without a writer, this thread never ends.
    let waiting = thread::Builder::new().spawn(move || done.send(File::open(owned)));
    if waiting.is_err() {
        return Ok(File::open(path)?);
    }
    match opened.recv_timeout(WRITER) {
        Ok(file) => Ok(file?),
        Err(_) => bail!(
            "it is a pipe that no program has opened for writing within {} s",
            WRITER.as_secs()
        ),
    }
}

/// Opens a regular file without waiting for the writer of a pipe, for a device, or for the kernel.
pub(super) fn open_regular(path: &Path) -> anyhow::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits())?);
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let hint = if metadata.is_dir() { "" } else { "; `-` reads the standard input" };
        bail!("it is {}, not a regular file{hint}", kind(metadata.file_type()));
    }
    Ok((file, metadata))
}

fn is_pipe(file_type: fs::FileType) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        file_type.is_fifo()
    }
    #[cfg(not(unix))]
    {
        let _ = file_type;
        false
    }
}

/// Reads a text as [`bounded`] does.
pub(super) fn bounded_text(
    reader: &mut impl Read,
    expected: u64,
    limit: u64,
) -> anyhow::Result<String> {
    text_of(bounded(reader, expected, limit)?)
}

/// Reads at most `limit` bytes, of which about `expected` are there.
pub(super) fn bounded(
    reader: &mut impl Read,
    expected: u64,
    limit: u64,
) -> anyhow::Result<Vec<u8>> {
    let room = usize::try_from(expected.min(limit))?;
    let mut bytes = Vec::with_capacity(room.saturating_add(1));
    reader.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if limit < bytes.len() as u64 {
        bail!("it is larger than the limit of {limit} bytes");
    }
    Ok(bytes)
}

pub(super) fn text_of(bytes: Vec<u8>) -> anyhow::Result<String> {
    if bytes.starts_with(LFS_POINTER) {
        bail!(
            "it is a pointer of Git LFS, so its content is not here; `git lfs pull` fetches that of the checkout"
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        anyhow::anyhow!("it is not UTF-8: the first invalid byte is at offset {offset}")
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn refusal(path: &Path, limit: u64, folder: &TempDir) -> String {
        let error = read_text(&Roots::anywhere(), path, limit).unwrap_err();
        let text = format!("{error:#}");
        text.replace(&*folder.path().to_string_lossy(), "…")
    }

    #[test]
    fn reads_no_more_than_it_may() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        let text = read_text(&Roots::anywhere(), &path, 5);
        assert_eq!(text.unwrap(), "12345");
        insta::assert_snapshot!(refusal(&path, 4, &folder), @"cannot read `…/a`: it is larger than the limit of 4 bytes");
        fs::write(&path, b"caf\xe9").unwrap();
        insta::assert_snapshot!(refusal(&path, 9, &folder), @"cannot read `…/a`: it is not UTF-8: the first invalid byte is at offset 3");
    }

    #[test]
    fn reads_files_only() {
        let folder = TempDir::new().unwrap();
        insta::assert_snapshot!(refusal(folder.path(), 9, &folder), @"cannot read `…`: it is a folder, not a regular file");
        insta::assert_snapshot!(refusal(&folder.path().join("b\n"), 9, &folder), @r"cannot read `…/b\n`: No such file or directory (os error 2)");
        #[cfg(unix)]
        insta::assert_snapshot!(refusal(Path::new("/dev/null"), 9, &folder), @"cannot read `/dev/null`: it is a device, pipe or socket, not a regular file; `-` reads the standard input");
    }
}
