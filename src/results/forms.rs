//! The forms that every result has.

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::json::JsonDocument;
use crate::report::page::PageForm;

/// A result of a command. Its JSON document has its fields.
pub trait ResultForms: JsonSchema + Serialize {
    /// Returns the page for people, or the one in Markdown.
    fn page(&self, form: PageForm) -> String;

    /// Returns the JSON document.
    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(self).text()
    }
}
