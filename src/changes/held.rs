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

/// Pairs of a sender and a receiver.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Held(Vec<Places>);

/// The paths of one state, by how much of them holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct StateProof {
    /// Paths on which all packets and their answers arrive.
    pub(super) whole: Held,
    /// Paths on which some of them do: a block has addresses that others claim too.
    pub(super) partial: Held,
}

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

    fn without(&self, other: &Self) -> Self {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        let words = self.0.iter().zip(others);
        Self(words.map(|(word, other)| word & !other).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|it| *it == 0)
    }
}

impl StateProof {
    /// Proves which paths hold.
    pub(super) fn new<'r>(
        reach: &'r Reach,
        (from, to): (SiteId, SiteId),
        (senders, receivers): (&Blocks, &Blocks),
        proven: &mut Proven<'r>,
    ) -> Self {
        let mut proof = Self::default();
        for verdict in reach.between(from, to, proven) {
            let paths = if verdict.holds() {
                &mut proof.whole
            } else if verdict.holds_in_part() {
                &mut proof.partial
            } else {
                continue;
            };
            let mut row = Places::default();
            for receiver in verdict.receivers.iter() {
                if let Some(place) = receivers.place(receiver) {
                    row.insert(place);
                }
            }
            let places = verdict.senders.iter().filter_map(|it| senders.place(it));
            places.for_each(|place| paths.add_row(place, &row));
        }
        proof
    }

    /// Returns the paths that are not among others.
    pub(super) fn without(&self, others: &Held) -> Self {
        Self {
            whole: self.whole.without(others),
            partial: self.partial.without(others),
        }
    }

    /// Returns whether none holds.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.partial.is_empty()
    }

    /// Returns the paths that hold at least in part.
    pub(super) fn any(&self) -> Held {
        let mut any = self.whole.clone();
        any.add(&self.partial);
        any
    }
}

impl Held {
    /// Returns the receivers of each sender.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &Places)> {
        let rows = self.0.iter().enumerate();
        rows.filter(|it| !it.1.is_empty())
    }

    /// Returns the pairs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.rows()
            .flat_map(|(sender, row)| row.iter().map(move |receiver| (sender, receiver)))
    }

    /// Adds a path.
    pub(super) fn insert(&mut self, sender: usize, receiver: usize) {
        let mut row = Places::default();
        row.insert(receiver);
        self.add_row(sender, &row);
    }

    fn add_row(&mut self, sender: usize, receivers: &Places) {
        if self.0.len() <= sender {
            self.0.resize(sender + 1, Places::default());
        }
        if let Some(row) = self.0.get_mut(sender) {
            row.add(receivers);
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

    /// Returns the paths that are not in another one.
    pub(super) fn without(&self, other: &Self) -> Self {
        let none = Places::default();
        let others = other.0.iter().chain(std::iter::repeat(&none));
        let rows = self.0.iter().zip(others);
        Self(rows.map(|(row, other)| row.without(other)).collect())
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
