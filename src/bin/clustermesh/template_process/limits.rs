//! Limits of the process that fills in templates, and what its end means.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use clustermesh::outputs::FillerEnd;

/// The memory that templates may take, in MiB.
const MEBIBYTES: u64 = 512;

/// The memory that a byte of the facts may take as a value.
const PER_BYTE: u64 = 4;

/// The CPU time that all templates of a run may take, in seconds. They take their steps in two of them.
const SECONDS: u64 = 6;

/// The bytes of the facts that are read in a second.
const READ: u64 = 16 << 20;

/// The stack, in bytes. Deep nesting takes some 100 kB.
#[cfg(unix)]
const STACK: u64 = 16 << 20;

/// The time after which the process ends itself. On a machine that is busy it takes much more than its CPU
/// time.
pub(super) const LIFE: Duration = Duration::from_secs(300);

/// The exit code of a process that ends itself.
pub(super) const OVERTIME: i32 = 3;

/// The exit code of a program that panics.
const PANIC: i32 = 101;

/// Limits this process, which has facts of some length. Only Linux limits its memory, and Windows not even its CPU
/// time.
pub(super) fn set(facts: usize) -> io::Result<()> {
    let facts = u64::try_from(facts).unwrap_or(u64::MAX);
    let memory = (MEBIBYTES << 20).saturating_add(facts.saturating_mul(PER_BYTE));
    let seconds = SECONDS + facts / READ;
    limit(memory, seconds)
}

#[cfg(unix)]
fn limit(memory: u64, seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let maximum = Some(maximum.map_or(most, |it| it.min(most)));
        // At the soft limit of CPU time the process gets a signal with a meaning.
        let grace = u64::from(matches!(resource, Resource::Cpu));
        let current = maximum.map(|it| it.saturating_sub(grace));
        setrlimit(resource, Rlimit { current, maximum })
    };
    // A file with the memory of the process would help with no template.
    let _ = limit(Resource::Core, 0);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let limited = limit(Resource::Stack, STACK)
        .and(limit(Resource::Cpu, seconds + 1))
        .and(limit(Resource::As, memory));
    // macOS ignores or refuses a limit of memory.
    if cfg!(target_os = "linux") {
        limited?;
    }
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "other systems can fail")]
fn limit(_memory: u64, _seconds: u64) -> io::Result<()> {
    Ok(())
}

/// Returns why the process has ended.
pub(super) fn ended(status: ExitStatus) -> FillerEnd {
    let exhausted = FillerEnd::Exhausted { mebibytes: MEBIBYTES };
    let slow = FillerEnd::Slow { seconds: SECONDS };
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use std::os::unix::process::ExitStatusExt as _;
        match status.signal().and_then(Signal::from_named_raw) {
            Some(Signal::XCPU) => return slow,
            // The ends of Rust programs without memory, and without stack.
            Some(Signal::ABORT | Signal::SEGV | Signal::BUS) => return exhausted,
            _ => {}
        }
    }
    match status.code() {
        Some(OVERTIME) => slow,
        Some(PANIC) => FillerEnd::Panicked,
        // Windows has exceptions, which are negative numbers.
        Some(..0) => exhausted,
        _ => FillerEnd::Failed(format!("the process that fills in templates ended: {status}")),
    }
}
