//! Programs: run without a terminal and not for ever, with what they print.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most that is kept of what a program prints, in bytes.
const OUTPUT: usize = 1 << 20;

/// The interval between two looks at a program.
const GLANCE: Duration = Duration::from_millis(10);

/// The timeout for the rest of the output after a program has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program that has ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The standard output.
    pub(super) stdout: String,
    /// The standard error.
    pub(super) stderr: String,
}

/// The output of a program so far.
struct ProgramOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Ends with the output.
    end: Receiver<()>,
}

/// Runs a program. If it takes longer than `patience` it is ended, with all that it started, and
/// nothing is returned.
pub(super) fn run(command: &mut Command, patience: Duration) -> io::Result<Option<Ended>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    let deadline = Instant::now() + patience;
    let mut child = command.spawn()?;
    let read = |child: &mut Child| -> io::Result<_> {
        let stdout = child.stdout.take().map(ProgramOutput::read_aside).transpose()?;
        let stderr = child.stderr.take().map(ProgramOutput::read_aside).transpose()?;
        Ok((stdout, stderr))
    };
    let (stdout, stderr) = match read(&mut child) {
        Ok(outputs) => outputs,
        // Without a reader for its output, it would wait for ever.
        Err(error) => {
            end(&mut child)?;
            return Err(error);
        }
    };
    while deadline.checked_duration_since(Instant::now()).is_some() {
        if let Some(status) = child.try_wait()? {
            // Processes that it leaves behind may hold its output, and have nothing to add.
            let until = Instant::now() + LAST_WORDS;
            let text = |output: Option<ProgramOutput>| output.map(|it| it.text(until));
            return Ok(Some(Ended {
                status,
                stdout: text(stdout).unwrap_or_default(),
                stderr: text(stderr).unwrap_or_default(),
            }));
        }
        thread::sleep(GLANCE);
    }
    end(&mut child)?;
    Ok(None)
}

/// Ends a program and all that it started.
fn end(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It is not a group of its own if it has just ended.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

impl ProgramOutput {
    /// Reads on a separate thread, so that the two processes do not wait for each other.
    fn read_aside(mut pipe: impl Read + Send + 'static) -> io::Result<Self> {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, end) = channel();
        let read = Arc::clone(&bytes);
        thread::Builder::new().spawn(move || {
            let mut block = [0; 4096];
            // The text that was read before an error is the whole output.
            while let Ok(length @ 1..) = pipe.read(&mut block) {
                let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
                let room = OUTPUT - read.len();
                read.extend(block.iter().take(length.min(room)));
            }
            drop(sender);
        })?;
        Ok(Self { bytes, end })
    }

    /// Returns what has come by then, or by the end.
    fn text(self, until: Instant) -> String {
        let left = until.saturating_duration_since(Instant::now());
        // Either it has ended, or we no longer wait.
        let _ = self.end.recv_timeout(left);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
