//! Held paths: between which blocks of two clusters packets and their answers arrive.

use std::collections::BTreeMap;

use crate::agent::fabric::{Owner, Site, SiteId};
use crate::net::prefixes::Span;
use crate::proof::reach::{AddressBlock, Proven, Reach, address_blocks};

/// The blocks of a cluster, and the place of each.
#[derive(Default)]
pub(super) struct Blocks {
    /// In the order in which a proof has them.
    pub(super) all: Vec<AddressBlock>,
    places: BTreeMap<(Owner, Span), usize>,
}

/// A set of places.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Places(Vec<u64>);

/// The pairs of a sender and a receiver between which packets and their answers arrive.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Held(Vec<Places>);

impl Blocks {
    /// Finds the blocks of a cluster.
    pub(super) fn new(site: &Site) -> Self {
        let all = address_blocks(site).into_iter();
        let all: Vec<AddressBlock> = all.filter(|it| it.owner.class().is_some()).collect();
        let places = all.iter().zip(0..);
        Self {
            places: places
                .map(|(it, place)| ((it.owner, it.span), place))
                .collect(),
            all,
        }
    }

    /// Returns the place of a block.
    pub(super) fn place(&self, block: &AddressBlock) -> Option<usize> {
        self.places.get(&(block.owner, block.span)).copied()
    }
}

impl Places {
    const BITS: usize = 64;

    /// Adds a place.
    pub(super) fn insert(&mut self, place: usize) {
        let word = place / Self::BITS;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (place % Self::BITS);
        }
    }

    /// Returns its places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(number, &word)| {
            let set = (0..Self::BITS).filter(move |bit| word >> bit & 1 == 1);
            set.map(move |bit| number * Self::BITS + bit)
        })
    }

    fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    fn combined(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        let words = self.0.iter().zip(others);
        Self(words.map(|(word, other)| combine(*word, other)).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|it| *it == 0)
    }
}

impl Held {
    /// Proves which paths hold.
    pub(super) fn prove<'r>(
        reach: &'r Reach,
        (from, to): (SiteId, SiteId),
        (senders, receivers): (&Blocks, &Blocks),
        proven: &mut Proven<'r>,
    ) -> Self {
        let mut held = Self(vec![Places::default(); senders.all.len()]);
        for verdict in reach.between(from, to, proven) {
            if !verdict.holds() {
                continue;
            }
            let mut row = Places::default();
            for receiver in verdict.receivers.iter() {
                if let Some(place) = receivers.place(receiver) {
                    row.insert(place);
                }
            }
            let places = verdict.senders.iter().filter_map(|it| senders.place(it));
            for place in places {
                if let Some(of_sender) = held.0.get_mut(place) {
                    of_sender.add(&row);
                }
            }
        }
        held
    }

    /// Returns the receivers of each sender.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &Places)> {
        let rows = self.0.iter().enumerate();
        rows.filter(|it| !it.1.is_empty())
    }

    /// Adds a path.
    fn insert(&mut self, sender: usize, receiver: usize) {
        if self.0.len() <= sender {
            self.0.resize(sender + 1, Places::default());
        }
        if let Some(row) = self.0.get_mut(sender) {
            row.insert(receiver);
        }
    }

    /// Adds the paths of another one.
    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Places::default());
        }
        for (row, other) in self.0.iter_mut().zip(&other.0) {
            row.add(other);
        }
    }

    /// Returns the paths that are in both.
    pub(super) fn and(&self, other: &Self) -> Self {
        let none = Places::default();
        let others = other.0.iter().chain(std::iter::repeat(&none));
        let rows = self.0.iter().zip(others);
        Self(
            rows.map(|(row, other)| row.combined(other, |a, b| a & b))
                .collect(),
        )
    }

    /// Returns the paths that are not in another one.
    pub(super) fn without(&self, other: &Self) -> Self {
        let none = Places::default();
        let others = other.0.iter().chain(std::iter::repeat(&none));
        let rows = self.0.iter().zip(others);
        Self(
            rows.map(|(row, other)| row.combined(other, |a, b| a & !b))
                .collect(),
        )
    }

    /// Returns the paths in other numbers of blocks, and those of which an end has none, in their own.
    pub(super) fn translated(
        &self,
        (senders, receivers): (&[Option<usize>], &[Option<usize>]),
    ) -> (Self, Self) {
        let (mut kept, mut gone) = (Self::default(), Self::default());
        let place = |all: &[Option<usize>], it: usize| all.get(it).copied().flatten();
        for (sender, row) in self.rows() {
            for receiver in row.iter() {
                match (place(senders, sender), place(receivers, receiver)) {
                    (Some(sender), Some(receiver)) => kept.insert(sender, receiver),
                    _ => gone.insert(sender, receiver),
                }
            }
        }
        (kept, gone)
    }

    /// Returns whether there is no path.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Places::is_empty)
    }
}
