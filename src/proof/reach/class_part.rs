//! Parts of equivalence classes, for which packets are followed.

use super::AddressBlock;
use super::equivalence_class::EquivalenceClass;
use crate::net::prefixes::Span;

/// Some blocks of an equivalence class.
#[derive(Clone, Copy)]
pub(super) struct ClassPart<'r> {
    pub(super) class: &'r EquivalenceClass,
    pub(super) blocks: &'r [AddressBlock],
}

/// A block, and the pieces of it that may be treated differently.
pub(super) struct CutBlock {
    pub(super) block: AddressBlock,
    pub(super) pieces: Vec<Span>,
}

impl EquivalenceClass {
    /// Returns a part for each block.
    pub(super) fn parts(&self) -> impl Iterator<Item = ClassPart<'_>> {
        let blocks = self.blocks.chunks(1);
        blocks.map(|blocks| ClassPart {
            class: self,
            blocks,
        })
    }
}

impl<'r> From<&'r EquivalenceClass> for ClassPart<'r> {
    fn from(class: &'r EquivalenceClass) -> Self {
        Self {
            class,
            blocks: &class.blocks,
        }
    }
}

impl ClassPart<'_> {
    /// Returns the first block, cut unless all of its addresses are treated alike.
    pub(super) fn first(self, cut: impl FnOnce(Span) -> Vec<Span>) -> Option<CutBlock> {
        let block = *self.blocks.first()?;
        let pieces = if self.class.is_whole() {
            vec![block.span]
        } else {
            cut(block.span)
        };
        Some(CutBlock { block, pieces })
    }
}
