//! Mistakes in lines of a batch, as objects for programs.

use clustermesh::diagnostic::{escaped, plain_json};
use clustermesh::schema;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::json::API_VERSION;

/// The kind of the object.
const KIND: &str = "TraceMistake";

/// The longest message, in characters.
const SHOWN: usize = 2000;

/// A line of `clustermesh trace --batch` that cannot be traced. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TraceMistake", example = example())]
#[serde(rename_all = "camelCase")]
pub(crate) struct TraceMistake {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: &'static str,
    /// The number of the line of the standard input, from 1.
    line: usize,
    /// The mistake in one sentence.
    message: String,
}

impl TraceMistake {
    pub(crate) fn new(line: usize, error: &anyhow::Error) -> Self {
        Self {
            api_version: API_VERSION,
            kind: KIND,
            line,
            message: escaped(&format!("{error:#}"), SHOWN),
        }
    }

    /// Returns the object as a line.
    pub(crate) fn line(&self) -> anyhow::Result<String> {
        Ok(plain_json(serde_json::to_string(self)?) + "\n")
    }
}

/// Returns the JSON Schema of the object.
pub(crate) fn schema() -> Schema {
    schema::of_output::<TraceMistake>()
}

fn example() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "line": 3,
        "message": "FROM: unknown cluster `wst`; did you mean `west`?",
    })
}
