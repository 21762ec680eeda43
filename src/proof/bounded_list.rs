//! Bounded lists: the first few things of each kind, and how many others there are.

use std::collections::BTreeMap;

/// The largest number of things of one kind that a proof lists one by one. People need a few to find
/// out what they have in common; the others are counted.
pub const APART: usize = 16;

/// Things of several kinds.
pub trait Kinded {
    /// The kinds.
    type Kind: Copy + Ord;

    /// Returns the kind of the thing.
    fn kind(&self) -> Self::Kind;
}

/// The first things of each kind, and the number of the others.
#[derive(Clone, Debug)]
pub struct BoundedList<T: Kinded> {
    /// The largest number of things of one kind that are listed.
    most: usize,
    listed: Vec<T>,
    /// The number of things of each kind, with those that are listed.
    counts: BTreeMap<T::Kind, usize>,
}

impl<T: Kinded> BoundedList<T> {
    /// Lists at most this number of things of each kind, and counts the others.
    pub fn new(most: usize, things: impl IntoIterator<Item = T>) -> Self {
        let mut list = Self { most, listed: Vec::new(), counts: BTreeMap::new() };
        things.into_iter().for_each(|it| list.add(it));
        list
    }

    /// Returns the things that are listed, in the order in which they were added.
    pub fn listed(&self) -> &[T] {
        &self.listed
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Returns how many things of a kind there are, with those that are listed.
    pub fn count(&self, kind: T::Kind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    /// Returns how many things of a kind are not listed.
    pub fn more(&self, kind: T::Kind) -> usize {
        self.count(kind).saturating_sub(self.most)
    }

    /// Returns how many things are not listed.
    pub fn unlisted(&self) -> usize {
        self.counts.keys().map(|kind| self.more(*kind)).sum()
    }

    fn add(&mut self, thing: T) {
        let count = self.counts.entry(thing.kind()).or_default();
        *count += 1;
        if *count <= self.most {
            self.listed.push(thing);
        }
    }
}
