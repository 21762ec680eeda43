//! Trees: the folders of a commit.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use anyhow::{Context as _, bail};

use super::{ObjectId, os_string};

/// A folder: what is in it, by name.
#[derive(Debug, Default)]
pub(crate) struct GitTree(BTreeMap<OsString, TreeEntry>);

/// Something in a folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TreeEntry {
    /// Its type.
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

/// A type of entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryMode {
    File,
    Folder,
    /// A symbolic link, whose object is where it leads.
    Link,
    /// A commit of another repository.
    Submodule,
}

impl GitTree {
    /// Parses a tree object, in which names of objects have `bytes` bytes: a mode in octal digits, a
    /// space, a name, a zero and the name of an object for each entry.
    pub(super) fn parse(mut rest: &[u8], bytes: usize) -> anyhow::Result<Self> {
        const CUT: &str = "a tree object of git ends in the middle of an entry";
        let mut entries = BTreeMap::new();
        while !rest.is_empty() {
            let space = rest.iter().position(|it| *it == b' ').context(CUT)?;
            let (mode, after) = rest.split_at(space);
            let after = after.get(1..).context(CUT)?;
            let zero = after.iter().position(|it| *it == 0).context(CUT)?;
            let (name, after) = after.split_at(zero);
            let (id, after) =
                after.get(1..).and_then(|after| after.split_at_checked(bytes)).context(CUT)?;
            rest = after;
            if !is_name(name) {
                bail!("a tree object of git has an entry with a wrong name");
            }
            let entry = TreeEntry { mode: EntryMode::parse(mode)?, id: ObjectId::from_bytes(id) };
            if entries.insert(os_string(name.to_vec()), entry).is_some() {
                bail!("a tree object of git has two entries with one name");
            }
        }
        Ok(Self(entries))
    }

    pub(crate) fn get(&self, name: &OsStr) -> Option<&TreeEntry> {
        self.0.get(name)
    }

    /// Returns the entries, by name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&OsStr, &TreeEntry)> {
        self.0.iter().map(|(name, entry)| (name.as_os_str(), entry))
    }
}

/// Returns whether a name stays in its folder, and outside of git's own.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.eq_ignore_ascii_case(b".git")
}

impl EntryMode {
    fn parse(digits: &[u8]) -> anyhow::Result<Self> {
        let digits = str::from_utf8(digits).unwrap_or_default();
        let mode = u32::from_str_radix(digits, 8).unwrap_or_default();
        match mode & 0o170_000 {
            0o100_000 => Ok(Self::File),
            0o040_000 => Ok(Self::Folder),
            0o120_000 => Ok(Self::Link),
            0o160_000 => Ok(Self::Submodule),
            _ => bail!("a tree object of git has an entry of an unknown mode"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (mode, name) in entries {
            bytes.extend(format!("{mode} {name}\0").into_bytes());
            bytes.extend([0xab; 20]);
        }
        bytes
    }

    #[test]
    fn reads_what_git_keeps() {
        let entries =
            [("100644", "a b"), ("100755", "c"), ("40000", "d"), ("120000", "e"), ("160000", "f")];
        let tree = GitTree::parse(&tree(&entries), 20).unwrap();
        let modes: Vec<EntryMode> = tree.entries().map(|(_, entry)| entry.mode).collect();
        let expected = [
            EntryMode::File,
            EntryMode::File,
            EntryMode::Folder,
            EntryMode::Link,
            EntryMode::Submodule,
        ];
        assert_eq!(modes, expected);
        let entry = tree.get(OsStr::new("a b")).unwrap();
        assert_eq!(entry.id.to_string(), "ab".repeat(20));
    }

    #[test]
    fn refuses_what_git_would_not_write() {
        let whole = tree(&[("100644", "a")]);
        for length in 1..whole.len() {
            assert!(GitTree::parse(&whole[..length], 20).is_err(), "{length}");
        }
        for name in ["", ".", "..", "a/b", ".git", ".GIT"] {
            assert!(GitTree::parse(&tree(&[("100644", name)]), 20).is_err(), "{name}");
        }
        for mode in ["", "100", "x", "140000"] {
            assert!(GitTree::parse(&tree(&[(mode, "a")]), 20).is_err(), "{mode}");
        }
        let twice = tree(&[("100644", "a"), ("40000", "a")]);
        assert!(GitTree::parse(&twice, 20).is_err());
    }
}
