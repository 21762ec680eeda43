//! Answers: the results of the commands, of which a page is made.

/// The texts of the documents of the commands. If a command has none, the reason takes its place.
#[derive(Clone, Debug)]
pub struct MeshAnswers {
    /// The document of `validate`.
    pub validation: String,
    /// The document of `verify`.
    pub verification: Result<String, String>,
    /// The document of `outage`.
    pub outage: Result<String, String>,
    /// The document of `capacity`.
    pub capacity: Result<String, String>,
    /// The document of `graph --level nodes`.
    pub graph: Result<String, String>,
    /// The picture of `graph`, as SVG.
    pub picture: Option<String>,
    /// The document of `diff`, if there is an old version.
    pub difference: Option<Result<String, String>>,
    /// The documents of `trace` for the smallest packets of failures, one a line and in their order. There can be fewer of
    /// them.
    pub traces: String,
}
