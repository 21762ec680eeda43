//! Families: which kinds of address something has.

use std::net::IpAddr;

use super::{Family, family};

/// Some of the two kinds of address.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Families {
    v4: bool,
    v6: bool,
}

impl Families {
    /// Returns both kinds.
    pub fn all() -> Self {
        Self { v4: true, v6: true }
    }

    /// Returns whether a kind is among them.
    pub fn has(self, family: Family) -> bool {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }

    /// Returns whether neither kind is.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns whether all kinds of some others are.
    pub fn contain(self, others: Self) -> bool {
        (self.v4 || !others.v4) && (self.v6 || !others.v6)
    }

    /// Returns whether any kind is among both.
    pub fn meet(self, others: Self) -> bool {
        self.v4 && others.v4 || self.v6 && others.v6
    }

    /// Returns the first kind.
    pub fn first(self) -> Option<Family> {
        [Family::V4, Family::V6].into_iter().find(|it| self.has(*it))
    }

    /// Adds a kind.
    pub fn insert(&mut self, new: Family) {
        match new {
            Family::V4 => self.v4 = true,
            Family::V6 => self.v6 = true,
        }
    }
}

impl FromIterator<IpAddr> for Families {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        addresses.into_iter().fold(Self::default(), |mut all, it| {
            all.insert(family(it));
            all
        })
    }
}
