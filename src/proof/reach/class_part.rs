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
    /// Returns its parts with those of other classes of its family, sender by sender: both whole if all nodes see both
    /// alike, or if no packet leaves for the other class.
    pub(super) fn parts_to<'r>(&'r self, others: &'r [Self]) -> impl Iterator<Item = PartPair<'r>> {
        let others = others.iter().filter(|it| it.family() == self.family());
        others.flat_map(move |other| {
            let is_whole = other.is_kept() || self.is_uniform() && other.is_uniform();
            let whole = is_whole.then(|| PartPair { sender: self.into(), receiver: other.into() });
            let parts = (!is_whole).then(|| {
                self.parts().flat_map(move |sender| {
                    let receivers = other.parts();
                    receivers.map(move |receiver| PartPair { sender, receiver })
                })
            });
            whole.into_iter().chain(parts.into_iter().flatten())
        })
    }

    /// Returns a part for each block.
    pub(super) fn parts(&self) -> impl Iterator<Item = ClassPart<'_>> {
        let blocks = self.blocks.chunks(1);
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
