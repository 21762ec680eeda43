//! Numbers that always lead to a thing, so that a look-up cannot fail.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Deref, Index, IndexMut, Range};

/// A number in a list of things of one kind, which only the list creates.
///
/// Tables have millions of these, so they are small: an optional one too has four bytes. A list of four billion
/// things does not fit into the memory of a run.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Id<K>(NonZeroU32, PhantomData<K>);

/// Something about each of the things of one kind, in an order that does not change.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Numbered<K, T>(Vec<T>, PhantomData<K>);

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        (self.0.get() - 1).fmt(formatter)
    }
}

impl<K> Id<K> {
    /// Returns its place in any list of the same things.
    pub fn index(self) -> usize {
        usize::try_from(self.0.get() - 1).unwrap_or(usize::MAX)
    }

    fn new(place: usize) -> Self {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        Self(NonZeroU32::MIN.saturating_add(place), PhantomData)
    }
}

impl<K, T> Numbered<K, T> {
    /// Takes something about each of the things, in their order.
    pub fn new(all: Vec<T>) -> Self {
        Self(all, PhantomData)
    }

    /// Adds one of the things behind the others.
    pub fn push(&mut self, thing: T) -> Id<K> {
        self.0.push(thing);
        Id::new(self.0.len() - 1)
    }

    /// Returns the last of the first things that are all of a kind, in a list that is sorted so.
    pub fn last_before(&self, is_before: impl FnMut(&T) -> bool) -> Option<Id<K>> {
        let count = self.0.partition_point(is_before);
        count.checked_sub(1).map(Id::new)
    }

    /// Returns all numbers.
    pub fn ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = Id<K>> + ExactSizeIterator + Clone + use<K, T> {
        (0..self.0.len()).map(Id::new)
    }

    /// Returns the numbers of the things at some places.
    pub fn ids_at(
        &self,
        places: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = Id<K>> + ExactSizeIterator + Clone + use<K, T> {
        (places.start..places.end.min(self.0.len())).map(Id::new)
    }

    /// Returns all things with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (Id<K>, &T)> {
        self.ids().zip(&self.0)
    }

    /// Returns all things with their numbers, to change them.
    pub fn numbered_mut(&mut self) -> impl Iterator<Item = (Id<K>, &mut T)> {
        self.ids().zip(&mut self.0)
    }

    /// Returns something else about the same things, with the same numbers.
    pub fn map<'n, U>(&'n self, map: impl FnMut(&'n T) -> U) -> Numbered<K, U> {
        Numbered::new(self.0.iter().map(map).collect())
    }

    /// Returns something else about the same things, found by their numbers.
    pub fn map_ids<U>(&self, map: impl FnMut(Id<K>) -> U) -> Numbered<K, U> {
        Numbered::new(self.ids().map(map).collect())
    }

    /// Returns the first thing of a kind.
    pub fn position(&self, is_meant: impl FnMut(&T) -> bool) -> Option<Id<K>> {
        self.0.iter().position(is_meant).map(Id::new)
    }

    /// Finds a thing in a list that is sorted so.
    pub fn find(&self, compare: impl FnMut(&T) -> Ordering) -> Option<Id<K>> {
        self.0.binary_search_by(compare).ok().map(Id::new)
    }
}

impl<K, T> Default for Numbered<K, T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<'n, K, T> IntoIterator for &'n Numbered<K, T> {
    type Item = &'n T;
    type IntoIter = std::slice::Iter<'n, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<K, T> Index<Id<K>> for Numbered<K, T> {
    type Output = T;

    fn index(&self, id: Id<K>) -> &T {
        &self.0[id.index()]
    }
}

impl<K, T> IndexMut<Id<K>> for Numbered<K, T> {
    fn index_mut(&mut self, id: Id<K>) -> &mut T {
        &mut self.0[id.index()]
    }
}

impl<K, T> Deref for Numbered<K, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
