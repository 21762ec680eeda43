//! Step summaries: what a GitHub job shows of a step, beside its log.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::disk;

/// The variable with the file into which a step writes its summary.
const FILE: &str = "GITHUB_STEP_SUMMARY";

/// The largest summary that is shown, in bytes: a larger one is dropped as a whole.
const LIMIT: usize = 1 << 20;

/// Adds a page to the summary, if there is one to write: after what others have written there. The page
/// is made for as many bytes as there is room for.
pub(super) fn append(page: impl FnOnce(usize) -> String) -> anyhow::Result<()> {
    let Some(path) = env::var_os(FILE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let there = usize::try_from(
        disk::length(&path).with_context(|| format!("{FILE} does not name a file"))?,
    )?;
    // The last line of the others may have no end.
    let before = if there == 0 { "" } else { "\n\n" };
    let room = LIMIT.saturating_sub(there + before.len());
    let text = page(room);
    if room < text.len() {
        anyhow::bail!("other steps have filled it");
    }
    disk::append(&path, &format!("{before}{text}"))
}
