//! The part of a verification about clusters that join.

use std::fmt::Write as _;

use crate::joining::{self, Joiner};

use super::{Matrix, Verified, in_markdown};
use crate::report::width::Width;
use crate::results::findings::{self, markdown};

/// The largest size of the findings in Markdown, in bytes.
const FINDINGS: usize = 10_000;

/// A verification with the clusters that join.
pub struct JoinVerification<'a, 'f> {
    /// The clusters that could join now.
    pub joiners: &'a [Joiner],
    /// The clusters that cannot join before they have a snapshot.
    pub waiting: &'a [Joiner],
    /// The result, of which only the findings that are new count; nothing if no cluster could join now.
    pub verified: Option<Verified<'a, 'f>>,
}

impl JoinVerification<'_, '_> {
    /// Returns the section for people.
    pub(super) fn human(&self, width: Width) -> String {
        let mut text = String::new();
        if let Some(verified) = &self.verified {
            let names = joining::listed(self.joiners);
            let heading = width.wrapped(0, &format!("With {names} joined:"));
            let _ = write!(text, "\n{heading}\n\n{}", verified.aligned());
            for piece in verified.report().pieces(width) {
                text.push_str(&piece);
                text.push('\n');
            }
            text.push_str(&width.wrapped(0, &verified.summary()));
        }
        text.push_str(&width.wrapped(0, &self.waiting()));
        text
    }

    /// Returns how many findings there are with the clusters that join; nothing if there are none.
    pub fn counts(&self) -> Option<String> {
        let counts = findings::counts(self.verified.as_ref()?.findings)?;
        Some(format!("With {} joined: {counts}", joining::listed(self.joiners)))
    }

    /// Returns the section in Markdown.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        if let Some(verified) = &self.verified {
            let Matrix { table, rest } = verified.matrix();
            let names = joining::listed(self.joiners);
            let _ = write!(
                text,
                "\n#### With {names} joined\n{}{}\n{rest}{}",
                markdown::lists(&verified.report(), FINDINGS),
                in_markdown(table),
                verified.summary()
            );
        }
        text.push_str(&self.waiting());
        text
    }

    /// Returns the clusters that are not verified.
    fn waiting(&self) -> String {
        if self.waiting.is_empty() {
            return String::new();
        }
        let names = joining::listed(self.waiting);
        format!("\nNot verified, because a snapshot is missing: {names}.\n")
    }
}
