//! The texts of the files that results point into, and what of them may be quoted.

use std::borrow::Cow;
use std::ops::Range;

use super::presentable;
use super::repository::Repository;
use super::shown_source::ShownSource;
use crate::diagnostic::Finding;
use crate::document::{Position, Source};
use crate::place::Place;

/// Files by their names.
pub trait SourceTexts {
    /// Returns the file of a name, unless it cannot be read any more.
    fn get(&self, name: &str) -> Option<&ShownSource>;

    /// Returns the files that were read from the start.
    fn read(&self) -> Vec<&Source>;

    /// Returns the repository in which they are.
    fn repository(&self) -> Repository;

    /// Returns from where to where a place reaches, the end being the first character after.
    fn positions(&self, place: &Place) -> Option<Range<Position>> {
        let source = self.get(&place.source)?.source();
        let span = source.locate(place)?;
        Some(source.position(span.start)..source.position(span.end))
    }

    /// Returns a place as `file:line:column`.
    fn shown_place(&self, place: &Place) -> String {
        match self.positions(place) {
            Some(positions) => {
                let Position { line, column } = positions.start;
                format!("{}:{line}:{column}", place.source)
            }
            None => place.source.to_string(),
        }
    }

    /// Returns whether nothing of a file may be shown but where a problem is.
    fn is_withheld(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.text().is_none())
    }

    /// Returns findings as they may be shown: only the places in foreign files, and our files
    /// without secrets.
    fn presentable<'f>(&self, findings: &'f [Finding]) -> Cow<'f, [Finding]> {
        presentable::findings(|name| self.get(name), findings)
    }
}
