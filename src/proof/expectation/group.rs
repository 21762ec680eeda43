//! Groups: what is meant of a cluster, by what another one sees alike of it.

use std::collections::BTreeMap;

use super::meant::Chosen;
use crate::proof::reach::{AddressBlock, ForwardingView};

/// Some blocks with the same result, represented by one of them.
#[derive(Clone, Copy)]
pub(super) struct Lot {
    pub(super) count: u64,
    pub(super) first: AddressBlock,
    /// The one with the smallest addresses.
    pub(super) least: AddressBlock,
}

impl Lot {
    pub(super) fn from_blocks(blocks: impl Iterator<Item = AddressBlock>) -> Option<Self> {
        let one = |block| Self { count: 1, first: block, least: block };
        blocks.map(one).reduce(Self::and)
    }

    fn and(self, other: Self) -> Self {
        let is_less = other.least.span.first < self.least.span.first;
        Self {
            count: self.count + other.count,
            least: if is_less { other.least } else { self.least },
            ..self
        }
    }
}

/// The meant parts of blocks that another cluster sees alike.
pub(super) struct ClassGroup {
    /// Their place among what is alike.
    pub(super) class: usize,
    /// All of it.
    pub(super) lot: Lot,
    parts: Vec<AddressBlock>,
    wholes: Vec<AddressBlock>,
}

impl ClassGroup {
    /// Returns what is chosen of a cluster, in the order in which another one sees it.
    pub(super) fn all(chosen: &Chosen, view: &ForwardingView) -> Vec<Self> {
        // Nodes that take no part fail for a reason of their own.
        let mut groups: BTreeMap<(usize, bool), [Vec<AddressBlock>; 2]> = BTreeMap::new();
        for pick in &chosen.ready {
            if let Some(class) = view.class_of(pick.number) {
                let [parts, wholes] = groups.entry((class, pick.is_absent)).or_default();
                let blocks = if pick.is_whole { wholes } else { parts };
                blocks.push(pick.block);
            }
        }
        let groups = groups.into_iter().filter_map(|((class, _), [parts, wholes])| {
            let lot = Lot::from_blocks(parts.iter().chain(&wholes).copied())?;
            Some(Self { class, lot, parts, wholes })
        });
        groups.collect()
    }

    /// Returns whether all addresses of every block are meant.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the blocks, those that are meant as a whole last.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &AddressBlock> {
        self.parts.iter().chain(&self.wholes)
    }

    /// Returns it in lots; whole blocks are one if they fare alike.
    pub(super) fn lots(&self, are_alike: bool) -> Vec<Lot> {
        let size = if are_alike { self.wholes.len() } else { 1 };
        let wholes = self.wholes.chunks(size.max(1));
        let lots = self.parts.chunks(1).chain(wholes);
        lots.filter_map(|it| Lot::from_blocks(it.iter().copied())).collect()
    }
}
