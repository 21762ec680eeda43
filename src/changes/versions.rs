//! Versions: something of the old version of a fleet, and the same of the new one.

use super::Version;
use crate::agent::fabric::Fabric;

/// Something in both versions. Each keeps its own lifetime, so there are two types.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Versions<Old, New = Old> {
    pub(super) before: Old,
    pub(super) after: New,
}

impl<'o, 'p, 'n, 'q> Versions<&Version<'o, 'p>, &Version<'n, 'q>> {
    /// Returns the Peers of every cluster.
    pub(super) fn fabrics(self) -> Versions<&'o Fabric<'p>, &'n Fabric<'q>> {
        Versions::new(self.before.fabric, self.after.fabric)
    }
}

impl<Old, New> Versions<Old, New> {
    pub(super) fn new(before: Old, after: New) -> Self {
        Self { before, after }
    }
}

impl<T> Versions<T> {
    /// Applies a function to each version.
    pub(super) fn map<U>(self, mut make: impl FnMut(T) -> U) -> Versions<U> {
        Versions::new(make(self.before), make(self.after))
    }
}
