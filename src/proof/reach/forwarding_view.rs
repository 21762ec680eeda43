//! Forwarding views: one cluster as another one sees it, which is everything about its addresses that
//! the way of a packet to them, or from them, depends on.

use std::collections::BTreeMap;

use super::equivalence_class::{EquivalenceClass, PieceView};
use super::local_addresses::LocalBlock;
use crate::mesh::AddressClass;
use crate::net::Family;

/// The view of one cluster from another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForwardingView {
    pub(super) classes: Vec<EquivalenceClass>,
    /// The place in `class` of each of its blocks, in their order.
    class_of: Vec<u32>,
    /// Whether no packet leaves for any of it.
    pub(super) is_kept: bool,
    /// The number of pieces of its blocks, if some are missing because there are too many.
    cut: Option<u64>,
}

/// The numbers of pieces of some classes: what it takes to find out about packets from or to them.
#[derive(Clone, Copy, Debug, Default)]
struct ClassSizes {
    /// Of a block of each class that all nodes see alike.
    uniform: u64,
    /// Those of them that are plain, between which it is found out once.
    plain: u64,
    /// Of all blocks of classes that all nodes see alike.
    alike: u64,
    /// Of a block of each of the other classes.
    unlike: u64,
    /// Of all blocks of the other classes.
    apart: u64,
}

/// The number of steps in which a packet and its answer are followed if no range has many claims.
const FOLLOWED: u64 = 16;

/// The number of claims of one range that are looked at in a step.
const CLAIMS_IN_STEP: usize = 8;

impl ClassSizes {
    fn of<'c>(classes: impl Iterator<Item = &'c EquivalenceClass>) -> Self {
        let mut sizes = Self::default();
        for class in classes {
            let [pieces, blocks] = [class.views.len(), class.blocks.len()].map(count);
            let all = pieces.saturating_mul(blocks);
            if class.is_uniform() {
                sizes.uniform += pieces;
                sizes.alike = sizes.alike.saturating_add(all);
                sizes.plain += if class.is_plain() { pieces } else { 0 };
            } else {
                sizes.unlike += pieces;
                sizes.apart = sizes.apart.saturating_add(all);
            }
        }
        sizes
    }

    /// Returns how many steps it takes to find out about packets from these classes to others.
    fn steps_to(self, others: Self, followed: u64) -> u64 {
        let known = self.plain.saturating_mul(others.plain);
        let pairs = [
            (self.uniform, others.uniform),
            (self.alike, others.unlike),
            (self.unlike, others.alike),
            (self.apart, others.apart),
        ];
        let pairs = pairs.map(|(from, to)| from.saturating_mul(to));
        let all = pairs.into_iter().fold(0, u64::saturating_add);
        (all - known).saturating_mul(followed).saturating_add(known)
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A view that is being put together.
#[derive(Default)]
pub(super) struct SortedBlocks {
    view: ForwardingView,
    /// The places of the classes behind the first [`FEW`].
    places: BTreeMap<AddressClass, BTreeMap<Vec<PieceView>, usize>>,
}

/// The number of classes that are compared before a class is looked up. Most views have fewer.
const FEW: usize = 8;

impl SortedBlocks {
    /// Adds a block to those that are seen like it.
    pub(super) fn add(&mut self, local: &LocalBlock, views: &[PieceView]) {
        let place = self.place(local.class, views);
        if let Some(alike) = self.view.classes.get_mut(place) {
            alike.blocks.push(local.block);
        }
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        self.view.class_of.push(place);
    }

    /// Returns the place of a class, which is new if none is like it.
    fn place(&mut self, class: AddressClass, views: &[PieceView]) -> usize {
        let classes = &mut self.view.classes;
        let mut first = classes.iter().take(FEW);
        if let Some(place) = first.position(|it| it.class == class && it.views == views) {
            return place;
        }
        let later = self.places.entry(class).or_default();
        if let Some(place) = later.get(views) {
            return *place;
        }
        let place = classes.len();
        if FEW <= place {
            later.insert(views.to_vec(), place);
        }
        classes.push(EquivalenceClass { class, views: views.to_vec(), blocks: Vec::new() });
        place
    }

    /// Returns the number of classes so far.
    pub(super) fn class_count(&self) -> usize {
        self.view.class_count()
    }

    /// Returns the view with all blocks.
    pub(super) fn finished(mut self) -> ForwardingView {
        self.view.is_kept = self.view.classes.iter().all(EquivalenceClass::is_kept);
        self.view
    }

    /// Returns the view of a cluster with this number of pieces, which are too many.
    pub(super) fn cut(pieces: u64) -> ForwardingView {
        ForwardingView { cut: Some(pieces), ..ForwardingView::default() }
    }
}

impl ForwardingView {
    /// Returns the view of a cluster for which no packet leaves, without the reason.
    pub(super) fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    /// Returns how many steps it takes at most to find out what becomes of packets from this cluster to
    /// another one, which it sees so, given the largest number of claims of a range that one of them compares.
    /// Without all blocks, it is more than any proof takes.
    pub(super) fn steps_to(&self, other: &Self, claims: usize) -> u64 {
        if [self, other].iter().any(|it| it.classes.is_empty() && it.cut.is_none()) {
            return 0;
        }
        let followed = FOLLOWED + count(claims / CLAIMS_IN_STEP);
        if self.cut.is_some() || other.cut.is_some() {
            let pieces = [self, other].map(|it| it.cut.unwrap_or(count(it.class_of.len())));
            return pieces.into_iter().fold(FOLLOWED, u64::saturating_mul);
        }
        let senders = self.classes.iter().filter(|it| it.can_send());
        let steps = [Family::V4, Family::V6].map(|family| {
            let is_meant = |it: &&EquivalenceClass| it.family() == Some(family);
            let senders = senders.clone().filter(is_meant);
            let receivers = other.classes.iter().filter(is_meant);
            let kept = receivers.clone().filter(|it| it.is_kept());
            let kept = count(kept.count()).saturating_mul(count(senders.clone().count()));
            let receivers = ClassSizes::of(receivers.filter(|it| !it.is_kept()));
            kept.saturating_add(ClassSizes::of(senders).steps_to(receivers, followed))
        });
        steps.into_iter().fold(0, u64::saturating_add)
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
