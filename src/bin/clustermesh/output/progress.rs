//! Progress: one line on a terminal about work that takes longer than a second. It is replaced every
//! second and erased at the end. The terminal stays in its normal state: the cursor is visible and no
//! mode is changed, so that nothing must be restored after Ctrl-C.

use std::env;
use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Printer, terminal};

/// The interval at which the line is written.
const TICK: Duration = Duration::from_secs(1);

/// The line while work goes on; erased when dropped.
pub(crate) struct Progress {
    #[cfg(feature = "snapshot")]
    line: Arc<Mutex<Line>>,
    /// The thread that writes it, which stops without the sender.
    writer: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The text of the line, and the part of it that is on the terminal.
struct Line {
    text: String,
    since: Instant,
    /// The number of written columns.
    shown: usize,
}

impl Printer {
    /// Shows a line while work goes on, if a person watches.
    pub(crate) fn progress(&self, text: impl Into<String>) -> Progress {
        let line =
            Arc::new(Mutex::new(Line { text: text.into(), since: Instant::now(), shown: 0 }));
        let is_watched = self.held.is_none() && self.is_terminal() && !is_job();
        let writer = is_watched.then(|| start(Arc::clone(&line))).flatten();
        Progress {
            #[cfg(feature = "snapshot")]
            line,
            writer,
        }
    }
}

impl Progress {
    /// Replaces the line with other output, and sets the next activity.
    #[cfg(feature = "snapshot")]
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T, next: impl FnOnce() -> String) -> T {
        // The line is not written before this ends.
        let mut line = lock(&self.line);
        line.erase();
        let printed = print();
        line.text = next();
        printed
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, writer)) = self.writer.take() {
            drop(stop);
            let _ = writer.join();
        }
    }
}

impl Line {
    fn write(&mut self) {
        let text = format!("{} ({} s)", self.text, self.since.elapsed().as_secs());
        let most = terminal::stderr().columns().unwrap_or(80).saturating_sub(1);
        let text: String = text.chars().take(most).collect();
        let columns = text.chars().count();
        let rest = " ".repeat(self.shown.saturating_sub(columns));
        put(&format!("\r{text}{rest}"));
        self.shown = columns.max(self.shown);
    }

    fn erase(&mut self) {
        if 0 < self.shown {
            put(&format!("\r{}\r", " ".repeat(self.shown)));
            self.shown = 0;
        }
    }
}

/// Starts the thread that writes the line. Without one, there is no line.
fn start(line: Arc<Mutex<Line>>) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel();
    let write = move || {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
            lock(&line).write();
        }
        lock(&line).erase();
    };
    let writer = thread::Builder::new().spawn(write).ok()?;
    Some((stop, writer))
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether this is a CI job, or a terminal that cannot go back in a line.
fn is_job() -> bool {
    let is_ci = env::var_os("CI").is_some_and(|it| !it.is_empty() && it != "false");
    is_ci || env::var_os("TERM").is_some_and(|it| it == "dumb")
}

fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    // A terminal that has gone is not a reason to stop.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
