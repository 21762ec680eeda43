//! Paths of outputs: files below the config's folder that are nobody else's.

use crate::diagnostic::is_deceptive;

/// The longest name of a file or folder, in bytes, that all file systems take.
const NAME_LIMIT: usize = 255;

/// Fails, saying why, if nothing may be written at a path.
pub(super) fn check(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.starts_with('/') || path.contains(['\\', ':']) {
        return Err("must be relative to the config's folder, with `/` between names");
    }
    if path.chars().any(is_deceptive) {
        return Err("has invisible characters");
    }
    for name in path.split('/') {
        if name.is_empty() || name.starts_with('.') {
            return Err("has an empty or hidden name, or leads upwards");
        }
        if NAME_LIMIT < name.len() || name.ends_with([' ', '.']) {
            return Err("has a name that not every file system takes");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
