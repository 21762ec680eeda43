//! A file that results point into, and the part of it that may be shown.

use std::cell::OnceCell;
use std::ops::Range;

use super::own_files;
use super::secrets::Secrets;
use crate::document::Source;

/// A file that was read.
pub struct ShownSource {
    source: Source,
    /// Whether our first line is enough to show it.
    is_rendered: bool,
    look: OnceCell<FileLook>,
}

/// The parts of a file that may be shown.
enum FileLook {
    /// Nothing but where a problem is.
    Withheld,
    /// All but its secrets.
    Shown {
        secrets: Secrets,
        /// The text without them, if there are any.
        masked: Option<String>,
    },
}

impl ShownSource {
    /// Returns a file, of the rendered tree or of people.
    pub fn new(source: Source, is_rendered: bool) -> Self {
        Self { source, is_rendered, look: OnceCell::new() }
    }

    /// Returns the file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the text as it may be shown, in which every span is where it was; nothing if it may not be shown.
    pub fn text(&self) -> Option<&str> {
        match self.look() {
            FileLook::Withheld => None,
            FileLook::Shown { masked, .. } => Some(masked.as_deref().unwrap_or(&self.source.text)),
        }
    }

    /// Returns whether all of the text may be shown.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.look(), FileLook::Shown { masked: None, .. })
    }

    /// Returns a message about a place without the secrets there.
    pub(super) fn strike(&self, span: &Range<usize>, message: &str) -> String {
        match self.look() {
            FileLook::Withheld => message.to_owned(),
            FileLook::Shown { secrets, .. } => secrets.strike(&self.source.text, span, message),
        }
    }

    fn look(&self) -> &FileLook {
        self.look.get_or_init(|| {
            let text = &self.source.text;
            let is_ours = if self.is_rendered {
                own_files::is_rendered(text)
            } else {
                own_files::is_ours(text)
            };
            if !is_ours {
                return FileLook::Withheld;
            }
            let secrets = Secrets::find(text);
            let masked = (!secrets.is_empty()).then(|| secrets.masked(text));
            FileLook::Shown { secrets, masked }
        })
    }
}
