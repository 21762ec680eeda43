//! Place maps: where the blocks of a cluster are in another version of it.

use std::collections::BTreeMap;

use super::ended::EndKind;

/// The place of each block of a cluster among those of another version of it, if it is there.
pub(super) struct PlaceMap {
    places: Vec<BlockPlace>,
    /// The blocks that a node has instead of one that it does not have any more.
    successors: BTreeMap<usize, Vec<usize>>,
    /// Whether each block has the place that it had, which is usual.
    pub(super) is_unchanged: bool,
}

/// A block in another version of its cluster.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace {
    /// The place of the block with its addresses, or with some of them.
    pub(super) place: Option<usize>,
    /// True if none of its addresses is gone.
    pub(super) is_whole: bool,
    /// The reason why no node has its addresses any more; none if they are there, or lost.
    pub(super) end: Option<EndKind>,
}

impl PlaceMap {
    /// Takes the place of each block, and the successors of those that have any.
    pub(super) fn new(places: Vec<BlockPlace>, successors: BTreeMap<usize, Vec<usize>>) -> Self {
        let mut numbered = places.iter().enumerate();
        Self {
            is_unchanged: numbered.all(|(place, it)| it.is_whole && it.place == Some(place)),
            places,
            successors,
        }
    }

    /// Returns the blocks by which the owner of a block is reached: itself, or its successors.
    pub(super) fn instead_of(&self, block: usize) -> impl Iterator<Item = usize> {
        let successors = self.successors.get(&block).into_iter().flatten().copied();
        self.at(block).place.into_iter().chain(successors)
    }

    /// Returns, for each block in their order, those by which its owner is reached.
    pub(super) fn instead(&self) -> impl Iterator<Item = Vec<usize>> {
        (0..self.places.len()).map(|it| self.instead_of(it).collect())
    }

    /// Returns the place of each block, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        self.places.iter().map(|it| it.place)
    }

    /// Returns the place of a block.
    pub(super) fn at(&self, block: usize) -> BlockPlace {
        let gone = BlockPlace {
            place: None,
            is_whole: false,
            end: None,
        };
        self.places.get(block).copied().unwrap_or(gone)
    }
}
