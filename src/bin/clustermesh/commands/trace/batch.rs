//! Batches: many packets, one a line, each with a line of JSON.

use anyhow::{Context, bail};

use super::tracer::Tracer;
use crate::Outcome;
use crate::output::{Printer, TraceAnswer, TraceMistake};

/// The largest size of the input, in bytes.
pub(super) const INPUT_LIMIT: u64 = 1 << 20;

/// The largest number of pairs.
const PAIR_LIMIT: usize = 10_000;

/// Traces every pair of an input.
pub(super) fn run(
    tracer: &mut Tracer,
    input: &[u8],
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let lines = (1..).zip(input.split(|it| *it == b'\n').map(<[u8]>::trim_ascii));
    let pairs = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with(b"#"));
    let pairs: Vec<(usize, &[u8])> = pairs.collect();
    if PAIR_LIMIT < pairs.len() {
        bail!("the standard input has {} pairs; one run traces at most {PAIR_LIMIT}", pairs.len());
    }
    if pairs.is_empty() {
        bail!("the standard input has no pair; write FROM and TO, one pair a line");
    }
    let mut worst = Outcome::Clean;
    for (line, pair) in pairs {
        let (text, outcome) = match answer(tracer, pair) {
            Ok(answer) => (answer.line(line)?, answer.outcome()),
            Err(error) => (TraceMistake::new(line, &error).line()?, Outcome::Unreadable),
        };
        printer.print(&text)?;
        worst = worst.max(outcome);
    }
    Ok(worst)
}

fn answer<'r>(tracer: &mut Tracer<'r>, pair: &[u8]) -> anyhow::Result<TraceAnswer<'r>> {
    let pair = str::from_utf8(pair).ok().context("the line is not UTF-8")?;
    let words: Vec<&str> = pair.split_whitespace().collect();
    let [from, to] = words.as_slice() else {
        bail!("expected FROM and TO, with a space between them");
    };
    tracer.trace(from, to)
}
