//! Blocks: the addresses of a cluster between which paths are held, and their places in other versions.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::ended::EndKind;
use crate::agent::fabric::{Owner, Site};
use crate::net::prefixes::Span;
use crate::proof::reach::{AddressBlock, address_blocks};

/// The blocks of a cluster, and the place of each.
#[derive(Default)]
pub(crate) struct Blocks {
    /// In the order in which a proof has them.
    pub(crate) all: Vec<AddressBlock>,
    places: BTreeMap<(Owner, Option<Span>), usize>,
}

/// The place of each block of a cluster among those of another version of it, if it is there.
pub(super) struct PlaceMap {
    places: Vec<BlockPlace>,
    /// The blocks that nodes have instead of those that they do not have any more.
    pub(super) successors: Successors,
    /// Whether each block has the place that it had, which is usual.
    pub(super) is_unchanged: bool,
}

/// The blocks that nodes have instead of others. The old ones of a node have the same successors.
#[derive(Default)]
pub(super) struct Successors {
    /// Sets of new blocks.
    pub(super) sets: Vec<Vec<usize>>,
    /// The number of the set of each old block that has one.
    pub(super) of_block: BTreeMap<usize, usize>,
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

/// Receivers of a row in the numbers of another version.
#[derive(Default)]
pub(super) struct TranslatedRow {
    /// Those that are there, at least in part, in their new numbers.
    pub(super) kept: FixedBitSet,
    /// Those that are lost, at least in part, in their old numbers.
    pub(super) gone: FixedBitSet,
    /// Those that do not exist any more, in their old numbers.
    pub(super) ended: FixedBitSet,
}

/// The number of blocks that are compared before a block is looked up.
const NEAR: usize = 4;

impl Blocks {
    /// Finds the blocks of a cluster.
    pub(crate) fn new(site: &Site) -> Self {
        let all = address_blocks(site).into_iter();
        let all: Vec<AddressBlock> = all.filter(|it| it.owner.class().is_some()).collect();
        let places = all.iter().zip(0..);
        Self { places: places.map(|(it, place)| (identity(it), place)).collect(), all }
    }

    /// Returns the places of the blocks that are meant.
    pub(crate) fn of(&self, mut are_meant: impl FnMut(&AddressBlock) -> bool) -> FixedBitSet {
        let mut places = self.none();
        let meant = self.all.iter().enumerate().filter(|it| are_meant(it.1));
        places.extend(meant.map(|it| it.0));
        places
    }

    /// Returns no place, with room for all.
    pub(crate) fn none(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(self.all.len())
    }

    /// Returns the places of blocks. Most are in their order, and near each other.
    pub(super) fn places(&self, blocks: &[AddressBlock]) -> FixedBitSet {
        let mut places = self.none();
        let mut next = 0;
        for block in blocks {
            let mut near = self.all.iter().skip(next).take(NEAR);
            let near = near.position(|it| it == block).map(|it| next + it);
            let place = || self.places.get(&identity(block)).copied();
            if let Some(place) = near.or_else(place) {
                places.insert(place);
                next = place + 1;
            }
        }
        places
    }
}

/// Returns what a block is found by. The address of a node is found by the node: in another state of Kilo, it may
/// be another one.
fn identity(block: &AddressBlock) -> (Owner, Option<Span>) {
    let is_of_node = matches!(block.owner, Owner::Node(_));
    (block.owner, (!is_of_node).then_some(block.span))
}

impl PlaceMap {
    /// Takes the place of each block, and the successors of those that have any.
    pub(super) fn new(places: Vec<BlockPlace>, successors: Successors) -> Self {
        let mut numbered = places.iter().enumerate();
        Self {
            is_unchanged: numbered.all(|(place, it)| it.is_whole && it.place == Some(place)),
            places,
            successors,
        }
    }

    /// Returns whether the owner of a block is still there: with the block itself, or with its successors.
    pub(super) fn is_replaced(&self, block: usize) -> bool {
        self.at(block).place.is_some() || self.successors.of_block.contains_key(&block)
    }

    /// Returns the blocks of a row whose owner is there, but is not reached.
    pub(super) fn unreached(&self, row: &FixedBitSet, reached: &FixedBitSet) -> FixedBitSet {
        let sets = self.successors.sets.iter();
        let sets: Vec<bool> =
            sets.map(|blocks| blocks.iter().any(|it| reached.contains(*it))).collect();
        let is_reached = |block: usize| {
            let set = self.successors.of_block.get(&block);
            let place = self.at(block).place;
            place.is_some_and(|it| reached.contains(it))
                || set.and_then(|it| sets.get(*it)) == Some(&true)
        };
        row.ones().filter(|it| self.is_replaced(*it) && !is_reached(*it)).collect()
    }

    /// Returns the place of each block, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        self.places.iter().map(|it| it.place)
    }

    /// Returns blocks in the numbers of the other version.
    pub(super) fn translated(&self, row: &FixedBitSet) -> TranslatedRow {
        let mut translated = TranslatedRow::default();
        if self.is_unchanged {
            translated.kept.clone_from(row);
            return translated;
        }
        for block in row.ones() {
            let to = self.at(block);
            if to.end.is_some() {
                translated.ended.grow_and_insert(block);
            } else if !to.is_whole {
                translated.gone.grow_and_insert(block);
            }
            if let Some(place) = to.place {
                translated.kept.grow_and_insert(place);
            }
        }
        translated
    }

    /// Returns the place of a block.
    pub(super) fn at(&self, block: usize) -> BlockPlace {
        let gone = BlockPlace { place: None, is_whole: false, end: None };
        self.places.get(block).copied().unwrap_or(gone)
    }
}
