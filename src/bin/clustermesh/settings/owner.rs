//! Owners: the users whose files a run trusts, as git does since CVE-2022-24765.

use std::collections::BTreeSet;
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

    /// Adds the owner of a folder.
    pub(super) fn and_of(mut self, folder: &Path) -> Self {
        #[cfg(unix)]
        if let Ok(metadata) = folder.metadata() {
            use std::os::unix::fs::MetadataExt as _;
            self.0.insert(metadata.uid());
        }
        self
    }

    /// Returns whether a file or folder belongs to one of them. A link and its target both must.
    ///
    /// Where files have no owners, every file does.
    pub(crate) fn own(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let own = |it: std::io::Result<std::fs::Metadata>| {
                it.is_ok_and(|metadata| self.0.contains(&metadata.uid()))
            };
            own(path.symlink_metadata()) && own(path.metadata())
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            true
        }
    }
}
