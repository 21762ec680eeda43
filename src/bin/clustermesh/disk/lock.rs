//! The lock that lets one run at a time write a tree.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::bail;

/// A folder that is locked.
#[derive(Debug)]
pub(super) struct HeldLock(File);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing it is not enough while a child process, on its way to start, has a copy.
        let _ = self.0.unlock();
    }
}

/// Keeps other runs away until the result is dropped or the process ends.
///
/// If a folder cannot be locked, as on some network file systems, the run continues without a lock.
pub(super) fn hold(root: &Path) -> anyhow::Result<Option<HeldLock>> {
    let Ok(folder) = File::open(root) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("another run is writing it"),
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(HeldLock(folder))),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn one_run_at_a_time() {
        let root = TempDir::new().unwrap();
        let first = hold(root.path()).unwrap();
        if first.is_some() {
            assert!(hold(root.path()).is_err());
        }
        drop(first);
        assert!(hold(root.path()).is_ok());
    }
}
