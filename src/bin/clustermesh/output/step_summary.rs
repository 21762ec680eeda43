//! Step summaries: what a GitHub job shows of a step, beside its log.

use std::path::PathBuf;
use std::{env, fs};

use super::{Report, markdown};
use crate::disk;

/// The variable with the file into which a step writes its summary.
const FILE: &str = "GITHUB_STEP_SUMMARY";

/// The largest summary that is shown, in bytes: a larger one is dropped as a whole.
const LIMIT: usize = 1 << 20;

/// Adds a report to the summary, if there is one to write: after what others have written there,
/// and no more than there is room for.
pub(super) fn append(report: &Report) -> anyhow::Result<()> {
    let Some(path) = env::var_os(FILE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let there = match fs::metadata(&path) {
        // Opening a pipe would wait for a reader.
        Ok(metadata) if !metadata.is_file() => anyhow::bail!("{FILE} names no file"),
        Ok(metadata) => usize::try_from(metadata.len())?,
        Err(_) => 0,
    };
    // The last line of the others may have no end.
    let before = if there == 0 { "" } else { "\n\n" };
    let room = LIMIT.saturating_sub(there + before.len());
    let text = markdown::text(report, room);
    if room < text.len() {
        anyhow::bail!("other steps' commands have filled it");
    }
    disk::append(&path, &format!("{before}{text}"))
}
