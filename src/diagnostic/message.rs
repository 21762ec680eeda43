//! Messages: what people read. No decision follows from a text.

use std::fmt;

use serde::Serialize;

/// The problem of a finding. It can be printed and compared with others, but has no text to search in.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Message(pub(super) String);

impl Message {
    /// Returns the text, for output only.
    pub fn shown(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
