//! Answers: the results of the commands, of which a page is made.

use serde_json::Value;

/// The results of the commands, as documents. If a command has none, the reason takes its place.
#[derive(Clone, Debug)]
pub struct MeshAnswers {
    /// The document of `validate`.
    pub validation: Value,
    /// The document of `verify --survive 1`.
    pub verification: Result<Value, String>,
    /// The document of `capacity`.
    pub capacity: Result<Value, String>,
    /// The document of `graph --level nodes`.
    pub graph: Result<Value, String>,
    /// The picture of `graph`, as SVG.
    pub picture: Option<String>,
    /// The document of `diff`, if there is an old version.
    pub difference: Option<Result<Value, String>>,
    /// The documents of `trace` for the smallest packets of failures, in their order. There can be fewer of them.
    pub traces: Vec<Value>,
}
