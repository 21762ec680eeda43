//! Processes and their folders: timed, weighed, cleared away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

/// Runs a command and prints its peak memory in bytes. Never less than this interpreter's own few
/// MiB: a process counts what it was before it became the command.
const PEAK: &str = "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
unit = 1 if sys.platform == 'darwin' else 1024
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
";

/// The interpreter itself: what `PATH` names may be a slow wrapper, which would flatter us.
pub(crate) fn python() -> Option<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(path.trim_end()))
}

/// Seconds from start to end of a process.
pub(crate) fn clock(command: &mut Command) -> anyhow::Result<f64> {
    let start = Instant::now();
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        talk(&output.stderr)
    );
    Ok(seconds)
}

/// The most that a process, with nothing in its environment, ever held, in bytes.
pub(crate) fn peak(python: &Path, command: &Command) -> anyhow::Result<u64> {
    let output = Command::new(python)
        .env_clear()
        .args(["-c", PEAK])
        .arg(command.get_program())
        .args(command.get_args())
        .output()?;
    ensure!(output.status.success(), "{}", talk(&output.stderr));
    Ok(talk(&output.stdout).trim_end().parse()?)
}

pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn talk(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
