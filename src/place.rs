//! Places: positions in files.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A value, or the key of one, in a document of a file.
///
/// Lines and columns are looked up when it is printed, not when it is made.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// The file, as the shell calls it.
    pub source: Arc<str>,
    /// The index of the document in that file.
    pub document: usize,
    /// The value in that document.
    pub pointer: Pointer,
    /// The part of the value.
    pub part: Part,
}

/// A part of a value.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Part {
    /// The key that names it in its mapping.
    Key,
    /// The value itself.
    Value,
    /// These bytes of the file, because it has no tree to point into.
    Bytes {
        /// The first version.
        start: u32,
        /// The one after the last.
        end: u32,
    },
}

/// A JSON pointer (RFC 6901); empty for the whole document.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pointer(String);

impl Place {
    /// Returns the place of a whole document.
    pub fn document(source: &Arc<str>, document: usize) -> Self {
        Self {
            source: Arc::clone(source),
            document,
            pointer: Pointer::default(),
            part: Part::Value,
        }
    }

    /// Returns the place of some bytes of the file.
    #[must_use]
    pub fn bytes(mut self, bytes: &Range<usize>) -> Self {
        // No file that is read is longer.
        let bound = |byte| u32::try_from(byte).unwrap_or(u32::MAX);
        self.part = Part::Bytes { start: bound(bytes.start), end: bound(bytes.end) };
        self
    }

    /// Returns the place of the value under `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.at(self.pointer.key(key))
    }

    /// Returns the place of the item at `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.at(self.pointer.index(index))
    }

    /// Returns the place of this value's key instead of the value.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.part = Part::Key;
        self
    }

    fn at(&self, pointer: Pointer) -> Self {
        Self {
            source: Arc::clone(&self.source),
            document: self.document,
            pointer,
            part: Part::Value,
        }
    }
}

impl Pointer {
    /// Returns the pointer to the value under `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + key.len() + 8);
        text.push_str(&self.0);
        text.push('/');
        for character in key.chars() {
            match character {
                '~' => text.push_str("~0"),
                '/' => text.push_str("~1"),
                other => text.push(other),
            }
        }
        Self(text)
    }

    /// Returns the pointer to the item at `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// Returns the pointer to what holds this value; of the root it is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        self.around().unwrap_or_default()
    }

    /// Returns the pointer to what holds this value, unless that is the root.
    pub(crate) fn around(&self) -> Option<Self> {
        let (around, _) = self.0.rsplit_once('/')?;
        Some(Self(around.to_owned()))
    }

    /// Returns whether it points to what `other` points to, or into it.
    pub fn is_within(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&other.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns its steps from the root, unescaped.
    pub fn steps(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_survive_slashes_and_tildes() {
        let pointer = Pointer::default().key("a/b~c").index(3);
        assert_eq!(pointer.to_string(), "/a~1b~0c/3");
        assert_eq!(pointer.steps().collect::<Vec<_>>(), ["a/b~c", "3"]);
    }

    #[test]
    fn a_value_is_within_what_holds_it_and_not_within_its_namesake() {
        let (one, ten) = (Pointer::default().index(1), Pointer::default().index(10));
        assert!(one.key("a").is_within(&one) && !ten.is_within(&one));
        assert_eq!(one.key("a").parent(), one);
        assert_eq!(Pointer::default().parent(), Pointer::default());
    }
}
