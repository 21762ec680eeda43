//! Forwarding views: one cluster as another one sees it, which is everything about its addresses that
//! the way of a packet to them, or from them, depends on.

use super::equivalence_class::{EquivalenceClass, PieceView};
use super::local_addresses::LocalBlock;

/// The view of one cluster from another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForwardingView {
    /// Its equivalence classes.
    pub(super) classes: Vec<EquivalenceClass>,
    /// The place in `class` of each of its blocks, in their order.
    class_of: Vec<u32>,
    /// Whether no packet leaves for any of it.
    pub(super) is_kept: bool,
}

impl ForwardingView {
    /// Returns the view of a cluster for which no packet leaves, without the reason.
    pub(super) fn kept() -> Self {
        Self {
            is_kept: true,
            ..Self::default()
        }
    }

    /// Adds a block to those that are seen like it.
    pub(super) fn add(&mut self, local: &LocalBlock, views: &[PieceView]) {
        let mut alike = self.classes.iter();
        let alike = alike.position(|it| it.class == local.class && it.views == views);
        let place = alike.unwrap_or(self.classes.len());
        match self.classes.get_mut(place) {
            Some(alike) => alike.blocks.push(local.block),
            None => self.classes.push(EquivalenceClass {
                class: local.class,
                views: views.to_vec(),
                blocks: vec![local.block],
            }),
        }
        self.class_of.push(u32::try_from(place).unwrap_or(u32::MAX));
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.class_of.len()
    }

    /// Returns the number of kinds of blocks.
    pub(crate) fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Returns the place among what is alike of the block of that number.
    pub(crate) fn class_of(&self, block: usize) -> Option<usize> {
        usize::try_from(*self.class_of.get(block)?).ok()
    }

    /// Returns whether nothing in it is known by a number of the cluster that looks, so that others may
    /// see the same.
    pub(super) fn is_portable(&self) -> bool {
        self.classes.iter().all(EquivalenceClass::is_portable)
    }
}
