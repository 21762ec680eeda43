//! New snapshots on the way to their files.

use std::path::PathBuf;

use anyhow::bail;
use clustermesh::snapshot::SIZE_LIMIT;

use super::kept::KeptSnapshot;
use super::old_snapshot::OldSnapshot;
use crate::disk::Roots;
use crate::{Outcome, disk, input_file};

/// The text of a new snapshot.
pub(super) struct NewText {
    path: PathBuf,
    json: String,
    /// The content, for people.
    described: String,
    /// The number of changes, if it is written.
    pub(super) counted: String,
    /// True if it is not written without `--accept`.
    pub(super) is_refused: bool,
}

impl NewText {
    /// Returns the text of a snapshot that may be written.
    ///
    /// # Errors
    /// It is larger than a snapshot that is read.
    pub(super) fn new(path: PathBuf, json: String, described: String) -> anyhow::Result<Self> {
        if SIZE_LIMIT < json.len() as u64 {
            bail!(
                "the snapshot would have {} bytes, more than the limit of {SIZE_LIMIT}",
                json.len()
            );
        }
        Ok(Self { path, json, described, counted: String::new(), is_refused: false })
    }

    /// Returns whether the file has this text already.
    pub(super) fn is_in<T>(&self, roots: &Roots, old: &OldSnapshot<T>) -> anyhow::Result<bool> {
        Ok(old.snapshot().is_some() && disk::has(roots, &self.path, self.json.as_bytes())?)
    }

    /// Writes the file, or lists what differs.
    pub(super) fn put(
        self,
        roots: &Roots,
        is_check: bool,
        is_same: bool,
        compared: impl FnOnce(&str) -> String,
    ) -> anyhow::Result<KeptSnapshot> {
        let Self { path, json, described, counted, is_refused } = self;
        let name = input_file::name(&path);
        let mut differences = String::new();
        let done = if is_same && is_check {
            "up to date".to_owned()
        } else if is_check {
            differences = compared(&name);
            "differs".to_owned()
        } else if is_refused {
            "not written".to_owned()
        } else if disk::write_file(roots, &path, json.as_bytes())? {
            format!("written{counted}")
        } else {
            "unchanged".to_owned()
        };
        Ok(KeptSnapshot {
            line: Some(format!("{name}: {described}, {done}")),
            outcome: Outcome::findings_if(!differences.is_empty()),
            differences,
            is_refused,
            ..KeptSnapshot::default()
        })
    }
}
