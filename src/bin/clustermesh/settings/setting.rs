//! A setting: a value and its source.

use clustermesh::place::Place;

/// A value and its source.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    /// The source of the value.
    pub(crate) origin: SettingOrigin,
}

impl<T> Setting<T> {
    /// Returns whether it was set for this run, with a flag or a variable.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.origin, SettingOrigin::Flag(_) | SettingOrigin::Variable(_))
    }
}

/// The source of a value.
#[derive(Clone, Debug)]
pub(crate) enum SettingOrigin {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// The config, at this place.
    File(Place),
    Default,
}
