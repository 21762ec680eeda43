//! Paths of outputs: below the config's folder, each used once.

use std::collections::BTreeSet;

use crate::diagnostic::is_deceptive;

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
pub(super) fn check(path: &str) -> Result<(), &'static str> {
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
        if name.is_empty() || name.starts_with('.') {
            return Err("contains an empty or hidden name, or `..`");
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
            assert_eq!(check(path).is_ok(), is_fine, "{path}");
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
            assert!(check(path).is_err(), "{path}");
        }
    }
}
