//! Surroundings: the repository around the working folder, the config that applies there, and the users whose files a
//! run trusts, as git does since CVE-2022-24765.

use std::collections::BTreeSet;
use std::env;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{self, EntryType, Roots};

/// The config's name, looked for from the working folder upwards.
pub(super) const NAME: &str = "clustermesh.yaml";

/// The mark of a git repository: a folder, or a file in worktrees and submodules.
const MARKER: &str = ".git";

/// The config that applies in the working folder.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Nearest {
    /// The file, as seen from the working folder.
    pub(super) config: Option<PathBuf>,
    /// A file above that is ignored because another user owns it.
    pub(super) ignored: Option<PathBuf>,
}

/// The surroundings of the working folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkingRepository {
    /// The root of the repository, canonical, where the caller of the program knows it.
    root: Option<PathBuf>,
}

impl WorkingRepository {
    /// Returns the surroundings in a repository with this root, which needs no `.git`. One user
    /// created all of it, so owners are not checked.
    pub(super) fn within(root: PathBuf) -> Self {
        Self { root: Some(root) }
    }

    /// Looks for the config here and above, no further than the repository's root.
    ///
    /// Above the working folder, a config is used only if it and its folder belong to a trusted
    /// user. Otherwise anyone who can write to a shared folder such as `/tmp` could configure the
    /// run. A commit is all of one repository.
    pub(super) fn nearest(&self, roots: &Roots) -> anyhow::Result<Nearest> {
        let Some((here, owners)) = here() else {
            return Ok(Nearest::default());
        };
        for (relative, folder) in self.upwards(&here) {
            let candidate = relative.join(NAME);
            let is_trusted = folder == here || self.root.is_some() || roots.revision().is_some();
            match disk::is_there(roots, &candidate)
                .and_then(|it| Ok(it && disk::is_file(roots, &candidate)?))
            {
                Ok(true) => {}
                // Others must not stop a run.
                Err(error) if is_trusted => return Err(error),
                Ok(false) | Err(_) => continue,
            }
            if is_trusted || owners.own(&candidate) && owners.own(folder) {
                return Ok(Nearest { config: Some(candidate), ignored: None });
            }
            return Ok(Nearest { config: None, ignored: Some(candidate) });
        }
        Ok(Nearest::default())
    }

    /// Returns the repository around the working folder.
    ///
    /// A `.git` above it counts only if a trusted user owns it: one that was planted in a shared folder
    /// must not widen what we read.
    pub(crate) fn repository(&self) -> Option<PathBuf> {
        if self.root.is_some() {
            return self.root.clone();
        }
        let (here, owners) = here()?;
        let (_, folder) = self.upwards(&here).last()?;
        let marker = folder.join(MARKER);
        let is_marked = marker.symlink_metadata().is_ok();
        (is_marked && (folder == here || owners.own(&marker))).then(|| folder.to_owned())
    }

    /// Returns the root of the repository, as seen from the working folder, and its whole path.
    pub(crate) fn path_to_repository(&self) -> Option<(PathBuf, PathBuf)> {
        let root = self.repository()?;
        let (here, _) = here()?;
        let (relative, _) = self.upwards(&here).find(|(_, folder)| **folder == root)?;
        Some((relative, root))
    }

    /// Returns the working folder and the folders above it, up to the root of the repository: each as
    /// seen from the working folder, and its whole path.
    pub(super) fn upwards<'a>(
        &'a self,
        here: &'a Path,
    ) -> impl Iterator<Item = (PathBuf, &'a Path)> {
        let mut is_inside = true;
        let mut relative = PathBuf::new();
        here.ancestors().map_while(move |folder| {
            if !is_inside {
                return None;
            }
            is_inside = match &self.root {
                Some(root) => folder != root,
                None => folder.join(MARKER).symlink_metadata().is_err(),
            };
            let seen = relative.clone();
            relative.push("..");
            Some((seen, folder))
        })
    }

    /// Returns the nearest folder, here or above, in which a run finds what it needs: a config, or else
    /// a mesh.
    pub(super) fn home(&self) -> Option<PathBuf> {
        let here = env::current_dir().ok()?;
        let config = self.upwards(&here).find(|(it, _)| is_file(&it.join(NAME)));
        let mesh = || self.upwards(&here).find(|(it, _)| has_mesh(it));
        let (_, folder) = config.or_else(mesh)?;
        Some(folder.to_owned())
    }
}

/// Returns whether a folder has meshes under the names that need no config.
pub(super) fn has_mesh(folder: &Path) -> bool {
    is_file(&folder.join("mesh.yaml")) || is_entry(&folder.join("meshes"), EntryType::Folder)
}

fn is_file(path: &Path) -> bool {
    is_entry(path, EntryType::File)
}

/// Returns whether something of a type is there. A link counts as one: what is elsewhere is not for everyone to know.
fn is_entry(path: &Path, wanted: EntryType) -> bool {
    let found = disk::type_of(&Roots::anywhere(), path);
    found.is_ok_and(|it| it.is_some_and(|it| it == wanted || it == EntryType::Link))
}

/// Returns the working folder, and the users whose files count there.
fn here() -> Option<(PathBuf, Owners)> {
    let here = env::current_dir().ok()?;
    let owners = Owners::of_run().and_of(&here);
    Some((here, owners))
}

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
