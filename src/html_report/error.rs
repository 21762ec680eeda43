//! Errors: the reasons why there is no page.

use thiserror::Error;

/// The reason why there is no page. Both are bugs in clustermesh.
#[derive(Debug, Error)]
pub enum HtmlError {
    /// A document has another form than its schema.
    #[error("cannot read the document of `clustermesh {command}`")]
    Document {
        /// The command.
        command: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The template does not fit its values.
    #[error("cannot fill in the page")]
    Template(#[from] minijinja::Error),
}
