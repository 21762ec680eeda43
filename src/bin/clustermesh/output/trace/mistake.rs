//! Mistakes in lines of a batch, as objects for programs.

use clustermesh::diagnostic::escaped;
use clustermesh::report::json::JsonDocument;
use clustermesh::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;

/// The longest message, in characters.
const SHOWN: usize = 2000;

/// A line of `clustermesh trace --batch` that cannot be traced. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TraceMistake", example = ExampleFile(include_str!("mistake/example.json")))]
#[serde(rename_all = "camelCase")]
pub(crate) struct TraceMistake {
    /// The number of the line of the standard input, from 1.
    line: usize,
    /// The mistake in one sentence.
    message: String,
}

impl TraceMistake {
    pub(crate) fn new(line: usize, error: &anyhow::Error) -> Self {
        Self { line, message: escaped(&format!("{error:#}"), SHOWN) }
    }

    /// Returns the object as a line.
    pub(crate) fn line(self) -> serde_json::Result<String> {
        JsonDocument::of(self).line()
    }
}
