//! Held paths: between which blocks of two clusters packets and their answers arrive.

use std::collections::BTreeMap;
use std::iter;

use super::place_map::PlaceMap;
use crate::agent::fabric::{Owner, Site, SitePair, Sites};
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'h>(&'h [u64]);

/// Pairs of a sender and a receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// The number of words for the receivers of one sender.
    words: usize,
    /// A bit for each receiver of each sender.
    bits: Vec<u64>,
}

/// Paths in the numbers of another version.
#[derive(Default)]
pub(super) struct Translated {
    /// Those of which both ends are there, at least in part.
    pub(super) kept: Held,
    /// Those of which one end is lost, at least in part, in their old numbers.
    pub(super) gone: Held,
    /// Those of which one end does not exist any more, in their old numbers.
    pub(super) ended: Held,
}

/// The number of places in a word.
const BITS: usize = 64;

/// The number of blocks that are compared before a block is looked up.
const NEAR: usize = 4;

/// Results of one proof that are valid for other clusters too.
pub(super) struct KnownPaths<'r> {
    proven: Proven<'r>,
    /// The places of blocks that are seen alike, by where these are in memory and how many there are. Most
    /// clusters see the same ones of another cluster.
    rows: BTreeMap<(usize, usize), Vec<u64>>,
}

/// The paths of one state, by how much of them holds.
#[derive(Clone, Debug, Default)]
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

    /// Returns room for a bit for each.
    fn row(&self) -> Vec<u64> {
        vec![0; self.all.len().div_ceil(BITS)]
    }

    /// Returns the places of blocks. Most are in their order, and near each other.
    fn places(&self, blocks: &[AddressBlock]) -> impl Iterator<Item = usize> {
        let mut next = 0;
        blocks.iter().filter_map(move |block| {
            let mut near = self.all.iter().skip(next).take(NEAR);
            let near = near.position(|it| it == block).map(|it| next + it);
            let place = near.or_else(|| self.place(block))?;
            next = place + 1;
            Some(place)
        })
    }

    /// Returns the place of a block.
    fn place(&self, block: &AddressBlock) -> Option<usize> {
        self.places.get(&(block.owner, block.span)).copied()
    }
}

impl<'h> Places<'h> {
    /// Returns its places, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> + use<'h> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(number, &word)| ones(word).map(move |bit| number * BITS + bit))
    }

    fn is_empty(self) -> bool {
        self.0.iter().all(|it| *it == 0)
    }

    fn has(self, place: usize) -> bool {
        let word = self.0.get(place / BITS);
        word.is_some_and(|it| it >> (place % BITS) & 1 == 1)
    }
}

/// Returns the places of the bits of a word that are set.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.checked_sub(1)?;
        usize::try_from(place).ok()
    })
}

impl Default for KnownPaths<'_> {
    fn default() -> Self {
        Self {
            // Only which paths hold is of interest.
            proven: Proven::with_lost(),
            rows: BTreeMap::new(),
        }
    }
}

impl KnownPaths<'_> {
    /// Returns the places of blocks that are seen alike, among all blocks of their cluster.
    fn row(&mut self, blocks: &[AddressBlock], all: &Blocks) -> Places<'_> {
        let row = self.rows.entry((blocks.as_ptr().addr(), blocks.len()));
        Places(row.or_insert_with(|| {
            let mut row = all.row();
            for place in all.places(blocks) {
                if let Some(word) = row.get_mut(place / BITS) {
                    *word |= 1 << (place % BITS);
                }
            }
            row
        }))
    }
}

impl StateProof {
    /// Proves which paths hold.
    pub(super) fn new<'r>(
        reach: &'r Reach,
        SitePair { from, to }: SitePair,
        blocks: &Sites<Blocks>,
        known: &mut KnownPaths<'r>,
    ) -> Self {
        let (senders, receivers) = (&blocks[from], &blocks[to]);
        let mut proof = Self::default();
        if reach.is_kept(from, to) {
            return proof;
        }
        let verdicts = reach.between(from, to, &mut known.proven);
        let place = |it: &[AddressBlock]| (it.as_ptr(), it.len());
        for alike in verdicts.chunk_by(|a, b| place(&a.senders) == place(&b.senders)) {
            let (mut whole, mut partial) = (receivers.row(), receivers.row());
            for verdict in alike {
                let row = if verdict.holds() {
                    &mut whole
                } else if verdict.holds_in_part() {
                    &mut partial
                } else {
                    continue;
                };
                let reached = known.row(&verdict.receivers, receivers);
                let words = row.iter_mut().zip(reached.0);
                words.for_each(|(word, other)| *word |= other);
            }
            let Some(first) = alike.first() else {
                continue;
            };
            let senders = known.row(&first.senders, senders);
            proof.whole.add_rows(senders, Places(&whole));
            proof.partial.add_rows(senders, Places(&partial));
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
    /// Returns the receivers of each sender that has any.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, Places<'_>)> {
        let rows = self.bits.chunks(self.words.max(1)).enumerate();
        let rows = rows.filter(|it| it.1.iter().any(|it| *it != 0));
        rows.map(|(sender, words)| (sender, Places(words)))
    }

    /// Returns the ended paths whose ends have other addresses now, none of which takes their place.
    pub(super) fn unreplaced(
        &self,
        senders: &PlaceMap,
        receivers: &PlaceMap,
        new: &[&Self],
    ) -> Self {
        let mut unreplaced = Self::default();
        let instead: Vec<Vec<usize>> = receivers.instead().collect();
        for (sender, row) in self.rows() {
            let from: Vec<usize> = senders.instead_of(sender).collect();
            if from.is_empty() {
                continue;
            }
            let mut reached: Vec<u64> = Vec::new();
            for words in from
                .iter()
                .flat_map(|from| new.iter().map(|it| it.row(*from)))
            {
                reached.resize(reached.len().max(words.len()), 0);
                let words = reached.iter_mut().zip(words);
                words.for_each(|(word, other)| *word |= other);
            }
            let is_lost = |receiver: &usize| {
                let to = instead.get(*receiver).map_or(&[][..], Vec::as_slice);
                !to.is_empty() && !to.iter().any(|it| Places(&reached).has(*it))
            };
            let lost = row.iter().filter(is_lost);
            lost.for_each(|it| unreplaced.insert(sender, it));
        }
        unreplaced
    }

    /// Returns the receivers of a sender.
    fn row(&self, sender: usize) -> &[u64] {
        let start = sender * self.words;
        self.bits.get(start..start + self.words).unwrap_or_default()
    }

    /// Adds a path.
    fn insert(&mut self, sender: usize, receiver: usize) {
        self.widen(receiver / BITS + 1);
        let place = sender * self.words + receiver / BITS;
        if self.bits.len() <= place {
            self.bits.resize((sender + 1) * self.words, 0);
        }
        if let Some(word) = self.bits.get_mut(place) {
            *word |= 1 << (receiver % BITS);
        }
    }

    /// Adds the paths from some senders to the same receivers.
    fn add_rows(&mut self, senders: Places, receivers: Places) {
        let Some(last) = senders.iter().last().filter(|_| !receivers.is_empty()) else {
            return;
        };
        self.widen(receivers.0.len());
        let size = self.bits.len().max((last + 1) * self.words);
        self.bits.resize(size, 0);
        senders.iter().for_each(|it| self.add_row(it, receivers));
    }

    fn add_row(&mut self, sender: usize, receivers: Places) {
        self.widen(receivers.0.len());
        let place = sender * self.words;
        if self.bits.len() <= place {
            self.bits.resize(place + self.words, 0);
        }
        if let Some(row) = self.bits.get_mut(place..) {
            row.iter_mut()
                .zip(receivers.0)
                .for_each(|(word, other)| *word |= other);
        }
    }

    /// Makes room for receivers of this many words.
    fn widen(&mut self, words: usize) {
        if words <= self.words {
            return;
        }
        let rows = self.bits.chunks(self.words.max(1)).flat_map(|row| {
            let rest = iter::repeat_n(0, words - self.words);
            row.iter().copied().chain(rest)
        });
        self.bits = rows.collect();
        self.words = words;
    }

    /// Adds the paths of another one.
    pub(super) fn add(&mut self, other: &Self) {
        if self.words != other.words {
            other
                .rows()
                .for_each(|(sender, row)| self.add_row(sender, row));
            return;
        }
        if self.bits.len() < other.bits.len() {
            self.bits.resize(other.bits.len(), 0);
        }
        for (word, other) in self.bits.iter_mut().zip(&other.bits) {
            *word |= other;
        }
    }

    /// Returns the paths that are not in another one, usually none of them.
    pub(super) fn without(&self, other: &Self) -> Self {
        if other.bits.is_empty() {
            return self.clone();
        }
        if self.words != other.words {
            let (mut rest, mut others) = (self.clone(), other.clone());
            rest.widen(other.words);
            others.widen(rest.words);
            return rest.without(&others);
        }
        let others = other.bits.iter().copied().chain(iter::repeat(0));
        let left = self
            .bits
            .iter()
            .zip(others)
            .map(|(own, other)| own & !other);
        if left.clone().all(|it| it == 0) {
            return Self::default();
        }
        Self {
            words: self.words,
            bits: left.collect(),
        }
    }

    /// Returns the paths between senders and receivers of kinds that are meant, of which there are few.
    pub(super) fn between<T: Copy + Default + PartialEq>(
        &self,
        senders: &[T],
        receivers: &[T],
        are_meant: impl Fn(T, T) -> bool,
    ) -> Self {
        let kind = |all: &[T], place: usize| all.get(place).copied().unwrap_or_default();
        let mut among: Vec<(T, Vec<u64>)> = Vec::new();
        let mut paths = self.clone();
        for (sender, row) in paths.bits.chunks_mut(self.words.max(1)).enumerate() {
            let sender = kind(senders, sender);
            if among.iter().all(|it| it.0 != sender) {
                let words = (0..self.words).map(|word| {
                    let places = (0..BITS).map(|bit| (bit, kind(receivers, word * BITS + bit)));
                    let meant = places.filter(|it| are_meant(sender, it.1));
                    meant.fold(0, |word, (bit, _)| word | 1 << bit)
                });
                among.push((sender, words.collect()));
            }
            let receivers = among.iter().filter(|it| it.0 == sender);
            for (word, meant) in row.iter_mut().zip(receivers.flat_map(|it| &it.1)) {
                *word &= meant;
            }
        }
        paths
    }

    /// Returns the paths in the numbers of another version.
    pub(super) fn translated(&self, senders: &PlaceMap, receivers: &PlaceMap) -> Translated {
        let mut translated = Translated::default();
        if senders.is_unchanged && receivers.is_unchanged {
            translated.kept = self.clone();
            return translated;
        }
        for (sender, row) in self.rows() {
            let from = senders.at(sender);
            if from.end.is_some() {
                translated.ended.add_row(sender, row);
                continue;
            }
            if !from.is_whole {
                translated.gone.add_row(sender, row);
            }
            if receivers.is_unchanged {
                if let Some(place) = from.place {
                    translated.kept.add_row(place, row);
                }
                continue;
            }
            for receiver in row.iter() {
                let to = receivers.at(receiver);
                if to.end.is_some() {
                    translated.ended.insert(sender, receiver);
                } else if !to.is_whole {
                    translated.gone.insert(sender, receiver);
                }
                if let Some((from, to)) = from.place.zip(to.place) {
                    translated.kept.insert(from, to);
                }
            }
        }
        translated.gone = translated.gone.without(&translated.ended);
        translated
    }

    /// Returns whether there is no path.
    pub(super) fn is_empty(&self) -> bool {
        self.bits.iter().all(|it| *it == 0)
    }
}
