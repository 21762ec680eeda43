//! The worker: this program as the process that fills in templates.

use std::io::{self, Write as _};
use std::process::{self, ExitCode};
use std::{env, thread};

use anyhow::Context as _;
use clustermesh::outputs::{FillOrder, Filler};

use super::{Reply, WORKER, limits};

/// Works, if this process was started for that.
pub(crate) fn answer() -> Option<ExitCode> {
    if !env::args_os().skip(1).eq([WORKER]) {
        return None;
    }
    Some(match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Fills in every template that is ordered.
fn work() -> anyhow::Result<()> {
    thread::Builder::new().spawn(end_in_time)?;
    let facts = line()?.context("no facts")?;
    limits::set(facts.len())?;
    let filler = Filler::new(serde_json::from_str(&facts)?);
    drop(facts);
    while let Some(line) = line()? {
        let order: FillOrder = serde_json::from_str(&line)?;
        match filler.results(&order, load) {
            Err(problem) => send(&Reply::Failed(problem))?,
            Ok(results) => {
                send(&Reply::Filled(results.paths.clone()))?;
                for text in results {
                    send(&text.map_or_else(Reply::Failed, |text| Reply::Filled(vec![text])))?;
                }
            }
        }
    }
    Ok(())
}

/// Ends this process where the system has no limit of CPU time.
#[expect(clippy::exit, reason = "another thread is busy")]
fn end_in_time() {
    thread::sleep(limits::LIFE);
    process::exit(limits::OVERTIME)
}

/// Asks for a template.
fn load(path: &str) -> Option<String> {
    send(&Reply::Load(path.to_owned())).ok()?;
    serde_json::from_str(&line().ok()??).ok()?
}

fn line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line)?;
    Ok((0 < length).then_some(line))
}

fn send(reply: &Reply) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()?;
    Ok(())
}
