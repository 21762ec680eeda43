//! Processes and their folders: timed, weighed, cleared away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

/// Runs a command and prints its seconds of CPU, user and system, and its peak memory in bytes. That is
/// never less than this interpreter's own few MiB: a process counts what it was before it became the
/// command. Its exit code comes first.
const USAGE: &str = "
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
unit = 1 if sys.platform == 'darwin' else 1024
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)
";

/// What a finished process took.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// Seconds of CPU, user and system.
    pub(crate) cpu: f64,
    /// The most that it ever held, in bytes.
    pub(crate) peak: u64,
}

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
    ensure!(output.status.success(), "{command:?}: {}\n{}", output.status, talk(&output.stderr));
    Ok(seconds)
}

/// What a process takes that has nothing in its environment and ends with this exit code.
pub(crate) fn usage(python: &Path, command: &Command, code: &str) -> anyhow::Result<Usage> {
    let output = Command::new(python)
        .env_clear()
        .args(["-c", USAGE])
        .arg(command.get_program())
        .args(command.get_args())
        .output()?;
    ensure!(output.status.success(), "{}", talk(&output.stderr));
    let text = talk(&output.stdout);
    let (found, figures) = text.trim_end().split_once(' ').context("no figures")?;
    ensure!(found == code, "{command:?}: exit code {found}\n{}", talk(&output.stderr));
    let (cpu, peak) = figures.split_once(' ').context("no figures")?;
    Ok(Usage { cpu: cpu.parse()?, peak: peak.parse()? })
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

/// Returns git in a folder, with an author of its own.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root);
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@example.com"]);
    command.args(arguments);
    command
}
