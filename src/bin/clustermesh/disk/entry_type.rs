//! Types of entries in folders.

use std::fs::FileType;

use crate::git::EntryMode;

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
