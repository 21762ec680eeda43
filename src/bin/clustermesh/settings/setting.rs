//! A setting: a value, and who said so.

use clustermesh::place::Place;

/// A value, and who said so.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    /// What is so.
    pub(crate) value: T,
    /// Who said so.
    pub(crate) origin: Origin,
}

impl<T> Setting<T> {
    /// Returns whether a person said so for this run, with a flag or a variable.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.origin, Origin::Flag(_) | Origin::Variable(_))
    }
}

/// Who said something.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// The config, at this place.
    File(Place),
    /// Nobody.
    Default,
}
