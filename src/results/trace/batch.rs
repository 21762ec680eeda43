//! Batches: many packets, one a line.

use schemars::JsonSchema;
use serde::Serialize;

use super::TraceResult;
use super::tracer::Tracer;
use crate::diagnostic::escaped;
use crate::report::json::JsonDocument;
use crate::schema::ExampleFile;

/// The largest size of the input, in bytes.
pub const INPUT_LIMIT: u64 = 1 << 20;

/// The largest number of pairs.
const PAIR_LIMIT: usize = 10_000;

/// The longest message, in characters.
const SHOWN: usize = 2000;

/// A line of `clustermesh trace --batch` that cannot be traced. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TraceMistake", example = ExampleFile(include_str!("batch/mistake_example.json")))]
#[serde(rename_all = "camelCase")]
pub struct TraceMistake {
    /// The number of the line of the standard input, from 1.
    line: usize,
    /// The mistake in one sentence.
    message: String,
}

/// Returns the pairs of an input with the numbers of their lines.
///
/// # Errors
/// There are too many, or none.
pub fn pairs(input: &[u8]) -> Result<Vec<(usize, &[u8])>, String> {
    let lines = (1..).zip(input.split(|it| *it == b'\n').map(<[u8]>::trim_ascii));
    let pairs = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with(b"#"));
    let pairs: Vec<(usize, &[u8])> = pairs.collect();
    match pairs.len() {
        0 => Err("the standard input has no pair; write FROM and TO, one pair a line".to_owned()),
        all if PAIR_LIMIT < all => {
            Err(format!("the standard input has {all} pairs; one run traces at most {PAIR_LIMIT}"))
        }
        _ => Ok(pairs),
    }
}

impl<'t> Tracer<'_, '_, 't> {
    /// Follows the packet of a pair, or returns the mistake in its line.
    ///
    /// # Errors
    /// The line cannot be traced.
    pub fn pair(&mut self, line: usize, pair: &[u8]) -> Result<TraceResult<'t>, TraceMistake> {
        let words = str::from_utf8(pair).map(|it| it.split_whitespace().collect::<Vec<_>>());
        let traced = match words.as_deref() {
            Ok([from, to]) => self.trace(from, to),
            Ok(_) => Err("expected FROM and TO, with a space between them".to_owned()),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        let mistake = |it: String| TraceMistake { line, message: escaped(&it, SHOWN) };
        traced.map(|it| it.at_line(line)).map_err(mistake)
    }
}

/// Returns a result of a pair as a line of JSON.
///
/// # Errors
/// Never, as a result can be written.
pub fn line(result: &Result<TraceResult, TraceMistake>) -> serde_json::Result<String> {
    match result {
        Ok(traced) => JsonDocument::of(traced).line(),
        Err(mistake) => JsonDocument::of(mistake).line(),
    }
}
