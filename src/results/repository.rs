//! Repositories: what files are called by those who see the whole of one.

use std::path::{Component, Path, PathBuf};

/// The repository that we run in, and where in it.
pub struct Repository {
    root: PathBuf,
    here: PathBuf,
}

impl Repository {
    /// Returns a repository with this root, in one of whose folders we are.
    pub fn new(root: PathBuf, here: PathBuf) -> Self {
        Self { root, here }
    }

    /// Returns a file, called as we call it, as seen from the root, with slashes; a file of
    /// elsewhere keeps its whole path.
    pub(super) fn path(&self, name: &str) -> String {
        let whole = plain(&self.here.join(name));
        let seen = whole.strip_prefix(&self.root).unwrap_or(&whole);
        let parts = seen.components().map(|part| match part {
            // Of a root only what comes before the slash.
            Component::RootDir => "".into(),
            part => part.as_os_str().to_string_lossy(),
        });
        parts.collect::<Vec<_>>().join("/")
    }
}

/// Returns a path without `.` and `..`, no link followed: it is a name, not a way.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn files_are_called_as_seen_from_the_root() {
        let repository =
            Repository { root: "/repository".into(), here: "/repository/clusters/prod".into() };
        for (name, path) in [
            ("mesh.yaml", "clusters/prod/mesh.yaml"),
            ("./mesh.yaml", "clusters/prod/mesh.yaml"),
            ("../../snapshots/a.json", "snapshots/a.json"),
            ("/repository/a b.yaml", "a b.yaml"),
            ("/elsewhere/mesh.yaml", "/elsewhere/mesh.yaml"),
            ("../../../mesh.yaml", "/mesh.yaml"),
        ] {
            assert_eq!(repository.path(name), path);
        }
    }
}
