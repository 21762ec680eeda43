//! The record: which outputs a render has written, so that the next one replaces and removes no other files, and the
//! paths of outputs: below the config's folder, each used once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

use super::TemplateTexts;
use crate::diagnostic::is_deceptive;
use crate::yaml::HEADER;

/// The paths that were written, with what was written there.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record(pub BTreeMap<String, Digest>);

/// The SHA-256 of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of some bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn read(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        let is_hexadecimal = text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 2 * digest.len() || !is_hexadecimal {
            return None;
        }
        for (index, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Self(digest))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl Record {
    /// Returns the record of what is to be written.
    pub fn new(texts: &TemplateTexts) -> Self {
        let digest = |text: &str| Digest::new(text.as_bytes());
        let record = texts.iter().map(|(path, text)| (path.clone(), digest(text)));
        Self(record.collect())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The line, counted from one, that is not one of a record.
    pub fn read(text: &str) -> Result<Self, usize> {
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(1);
        }
        let mut record = BTreeMap::new();
        for (number, line) in lines {
            let entry = line.split_once("  ").and_then(|(digest, path)| {
                check_path(path).ok()?;
                Some((path.to_owned(), Digest::read(digest)?))
            });
            let (path, digest) = entry.ok_or(number + 1)?;
            record.insert(path, digest);
        }
        Ok(Self(record))
    }

    /// Returns its text: a line for each file, as `sha256sum` prints it.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (path, digest) in &self.0 {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "{digest}  {path}");
        }
        text
    }
}

/// The longest name of a file or folder, in bytes, that all file systems take.
const NAME_LIMIT: usize = 255;

/// The longest path, in bytes.
const PATH_LIMIT: usize = 1000;

/// The files and folders of outputs. Some file systems treat `A` like `a`.
#[derive(Debug, Default)]
pub(super) struct TakenPaths {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

impl TakenPaths {
    /// Takes a path for a file; returns whether it was free.
    pub(super) fn take(&mut self, path: &str) -> bool {
        let path = path.to_lowercase();
        let folders: Vec<String> =
            path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect();
        let is_free = !self.files.contains(&path)
            && !self.folders.contains(&path)
            && !folders.iter().any(|it| self.files.contains(it));
        self.folders.extend(folders);
        self.files.insert(path);
        is_free
    }
}

/// Fails, with the reason, if nothing may be written at a path.
pub(super) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if PATH_LIMIT < path.len() {
        return Err("is longer than 1000 bytes");
    }
    if path.starts_with('/') || path.contains(['\\', ':']) {
        return Err("must be relative to the config's folder, with `/` between names");
    }
    if path.chars().any(is_deceptive) {
        return Err("contains invisible characters");
    }
    for name in path.split('/') {
        if name.is_empty() {
            return Err("has a `/` at its end, or two in a row");
        }
        if name.starts_with('.') {
            return Err("has a name that begins with a dot");
        }
        if NAME_LIMIT < name.len() || name.ends_with([' ', '.']) {
            return Err("contains a name that some file systems do not allow");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn is_read_as_it_is_written() {
        let texts = TemplateTexts::from([("apps/a  b.yaml".to_owned(), Arc::from("x"))]);
        let record = Record::new(&texts);
        insta::assert_snapshot!(record.text(), @r"
        # Generated by clustermesh; do not edit.
        2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  apps/a  b.yaml
        ");
        assert_eq!(Record::read(&record.text()), Ok(record));
    }

    #[test]
    fn refuses_what_is_not_a_record() {
        assert_eq!(Record::read(""), Err(1));
        let digest = Digest::new(b"");
        let lines = ["x  a".to_owned(), format!("{digest}  ../a"), format!("{digest} a")];
        for line in lines {
            assert_eq!(Record::read(&format!("{HEADER}\n{line}\n")), Err(2), "{line}");
        }
    }

    #[test]
    fn a_place_is_taken_once() {
        let mut places = TakenPaths::default();
        for (path, is_free) in [
            ("a/x.yaml", true),
            ("a/y.yaml", true),
            ("A/X.yaml", false),
            ("a", false),
            ("a/x.yaml/z", false),
            ("b", true),
        ] {
            assert_eq!(places.take(path), is_free, "{path}");
        }
    }

    #[test]
    fn leads_nowhere_else() {
        for path in ["apps/west.yaml", "a", "a/b c/d.txt", "a/..b.yaml"] {
            let is_fine = !path.contains("..");
            assert_eq!(check_path(path).is_ok(), is_fine, "{path}");
        }
        let wrong = [
            "",
            "/etc/x",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            "./a",
            ".git/config",
            "a/.env",
            "C:/x",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            ".github/workflows/x.yaml",
        ];
        for path in wrong {
            assert!(check_path(path).is_err(), "{path}");
        }
    }
}
