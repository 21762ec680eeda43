//! Owners: the users whose files a run trusts, as git does since CVE-2022-24765.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::path::Path;

/// The users whose files are trusted.
#[derive(Clone, Debug)]
pub(crate) struct Owners(BTreeSet<u32>);

impl Owners {
    /// Returns the current user, the user who called `sudo`, and root.
    pub(crate) fn of_run() -> Self {
        let mut owners = BTreeSet::from([0]);
        #[cfg(unix)]
        owners.insert(rustix::process::geteuid().as_raw());
        let caller = std::env::var("SUDO_UID").ok();
        owners.extend(caller.and_then(|uid| uid.parse::<u32>().ok()));
        Self(owners)
    }

    /// Adds the owner of a file or folder.
    pub(super) fn and_of(mut self, path: &Path) -> Self {
        self.0.extend(path.metadata().ok().as_ref().and_then(owner));
        self
    }

    /// Returns whether a file or folder belongs to one of them. A link and its target both must.
    ///
    /// On systems where files have no owners, this holds for every file.
    pub(crate) fn own(&self, path: &Path) -> bool {
        let own = |it: io::Result<Metadata>| {
            it.is_ok_and(|file| owner(&file).is_none_or(|uid| self.0.contains(&uid)))
        };
        own(path.symlink_metadata()) && own(path.metadata())
    }
}

/// Returns the owner of a file, on systems where files have one.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "not all systems have owners")]
fn owner(file: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(file.uid())
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<u32> {
    None
}
