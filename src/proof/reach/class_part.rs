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

/// Parts of two classes between which packets are followed together.
pub(super) struct PartPair<'r> {
    pub(super) sender: ClassPart<'r>,
    pub(super) receiver: ClassPart<'r>,
}

impl EquivalenceClass {
    /// Returns its parts with those of other classes of its family, sender by sender. A class is whole unless the nodes of
    /// its own cluster see the other class differently, or if no packet leaves for the other class.
    pub(super) fn parts_to<'r>(&'r self, others: &'r [Self]) -> impl Iterator<Item = PartPair<'r>> {
        let others = others.iter().filter(|it| it.family() == self.family());
        others.flat_map(move |other| {
            let is_kept = other.is_kept();
            let receivers = move || other.parts(is_kept || self.is_uniform());
            self.parts(is_kept || other.is_uniform()).flat_map(move |sender| {
                receivers().map(move |receiver| PartPair { sender, receiver })
            })
        })
    }

    /// Returns all blocks as one part, or a part for each block.
    fn parts(&self, is_whole: bool) -> impl Iterator<Item = ClassPart<'_>> {
        let blocks = self.blocks.chunks(if is_whole { self.blocks.len().max(1) } else { 1 });
        blocks.map(|blocks| ClassPart { class: self, blocks })
    }
}

impl<'r> From<&'r EquivalenceClass> for ClassPart<'r> {
    fn from(class: &'r EquivalenceClass) -> Self {
        Self { class, blocks: &class.blocks }
    }
}

impl ClassPart<'_> {
    /// Returns the first block, cut unless all of its addresses are treated alike.
    pub(super) fn first(self, cut: impl FnOnce(Span) -> Vec<Span>) -> Option<CutBlock> {
        let block = *self.blocks.first()?;
        let pieces = if self.class.is_whole() { vec![block.span] } else { cut(block.span) };
        Some(CutBlock { block, pieces })
    }
}
