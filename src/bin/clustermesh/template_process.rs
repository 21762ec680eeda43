//! The process that fills in templates of users, with limits of memory, time and stack.
//!
//! A few bytes of a template can build any amount of data, nest it to any depth, or compare it for hours, and
//! the engine bounds only the number of its steps. The process is this program again. It uses nothing but its
//! two pipes, and asks for the templates that others include.

use std::env;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clustermesh::outputs::{
    FillFailure, FillOrder, FillProblem, FilledText, FillerEnd, FleetFacts, OrderPart,
};
use clustermesh::template::Problem;
use serde::{Deserialize, Serialize};

mod limits;
pub(crate) mod worker;

/// The argument that makes a process of this program fill in templates.
const WORKER: &str = "fill-in-templates";

/// The longest line of the process, in bytes: a result and its path, with every byte escaped.
const LINE: u64 = 16 << 20;

/// The size of a pipe on Linux, in bytes.
const PIPE: usize = 64 << 10;

/// A line of the process.
#[derive(Deserialize, Serialize)]
enum Reply {
    /// The template at a path is needed. The answer is its text, or null.
    Load(String),
    /// The paths of all results of the order, or after them the text of the next one.
    Filled(Vec<String>),
    /// The order has no more results.
    Failed(Problem),
}

/// The process that fills in the templates of a run, started for the first of them.
pub(crate) struct TemplateProcess<'a> {
    facts: &'a FleetFacts<'a>,
    worker: Option<Worker>,
}

/// A running process.
struct Worker {
    child: Child,
    orders: BufWriter<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl<'a> TemplateProcess<'a> {
    /// Returns a process that will have these facts.
    pub(crate) fn new(facts: &'a FleetFacts<'a>) -> Self {
        Self { facts, worker: None }
    }

    /// Fills in a template for each of its subjects, given the text of a template by its path.
    pub(crate) fn fill(
        &mut self,
        order: &FillOrder,
        load: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<FilledText>, FillFailure> {
        let no_paths = |problem| FillFailure { part: OrderPart::Paths, problem };
        let worker = self.worker(order).map_err(|ended| no_paths(FillProblem::Ended(ended)))?;
        let paths = worker.filled(&load).map_err(no_paths)?;
        let results = order.subjects.iter().zip(paths).map(|(subject, path)| {
            let text = worker.filled(&load).map_err(|problem| FillFailure {
                part: OrderPart::Text(subject.clone()),
                problem,
            })?;
            let text = text.concat();
            Ok(FilledText { path, text })
        });
        results.collect()
    }

    /// Returns the process, which has got an order.
    fn worker(&mut self, order: &FillOrder) -> Result<&mut Worker, FillerEnd> {
        let worker = match &mut self.worker {
            Some(worker) => worker,
            free => free.insert(Worker::start(self.facts)?),
        };
        worker.send(order)?;
        Ok(worker)
    }
}

impl Worker {
    fn start(facts: &FleetFacts) -> Result<Self, FillerEnd> {
        let mut worker = Self::spawn().map_err(|error| {
            FillerEnd::Failed(format!("cannot start the process that fills in templates: {error}"))
        })?;
        worker.send(facts)?;
        Ok(worker)
    }

    fn spawn() -> io::Result<Self> {
        let mut child = Command::new(program()?)
            .arg(WORKER)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A process that dies prints something about memory, and nothing about the template.
            .stderr(Stdio::null())
            .spawn()?;
        let (orders, replies) =
            child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            orders: BufWriter::with_capacity(PIPE, orders),
            replies: BufReader::new(replies),
        })
    }

    /// Returns what was filled in next.
    fn filled(
        &mut self,
        load: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<String>, FillProblem> {
        loop {
            match self.reply().map_err(FillProblem::Ended)? {
                Reply::Load(path) => self.send(&load(&path)).map_err(FillProblem::Ended)?,
                Reply::Filled(texts) => return Ok(texts),
                Reply::Failed(problem) => return Err(FillProblem::Mistake(problem)),
            }
        }
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), FillerEnd> {
        serde_json::to_writer(&mut self.orders, message)
            .map_err(io::Error::from)
            .and_then(|()| self.orders.write_all(b"\n"))
            .and_then(|()| self.orders.flush())
            .map_err(|error| self.ended(&error))
    }

    fn reply(&mut self) -> Result<Reply, FillerEnd> {
        let mut line = Vec::new();
        let read = self.replies.by_ref().take(LINE).read_until(b'\n', &mut line);
        read.and_then(|_| serde_json::from_slice(&line).map_err(io::Error::from))
            .map_err(|error| self.ended(&error))
    }

    /// Returns why the process has ended, after a failure to reach it.
    fn ended(&mut self, failure: &io::Error) -> FillerEnd {
        // It may still run, if it did not end but wrote something else.
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => limits::ended(status),
            Err(_) => FillerEnd::Failed(format!(
                "cannot reach the process that fills in templates: {failure}"
            )),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has nothing to finish. If it has ended already, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of this program. Without `/proc`, Linux knows only how it was called; a relative path could
/// lead to a program of the repository.
fn program() -> io::Result<PathBuf> {
    env::current_exe().or_else(|error| {
        env::args_os().next().map(PathBuf::from).filter(|it| it.is_absolute()).ok_or(error)
    })
}
