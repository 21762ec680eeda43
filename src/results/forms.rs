//! The forms that every result has.

use crate::report::page::PageForm;

/// A result of a command.
pub trait ResultForms {
    /// Returns the page for people, or the one in Markdown.
    fn page(&self, form: PageForm) -> String;

    /// Returns the JSON document.
    ///
    /// # Errors
    /// Never, as every result can be written.
    fn json(&self) -> serde_json::Result<String>;
}
