//! Held paths: between which blocks of two clusters packets and their answers arrive.

use std::collections::BTreeMap;

use super::blocks::{Blocks, PlaceMap, TranslatedRow};
use super::places::{BITS, Places, add_place, ones};
use crate::agent::fabric::{SitePair, Sites};
use crate::proof::reach::{AddressBlock, Proven, Reach};

/// Pairs of a sender and a receiver. Many senders have the same receivers, which are there once: the cost depends
/// on the number of blocks and not of pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Different sets of receivers, a bit for each. The first one has the number 1.
    rows: Vec<Box<[u64]>>,
    /// The number of the receivers of each sender.
    row_of: Vec<RowNumber>,
}

/// The number of a set of receivers.
type RowNumber = usize;

/// The number of the set without any receiver.
const EMPTY: RowNumber = 0;

/// The rows that result from a row, by its number and that of what is done with it.
#[derive(Default)]
struct KnownRows {
    last: Option<((RowNumber, usize), RowNumber)>,
    all: BTreeMap<(RowNumber, usize), RowNumber>,
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

/// The largest number of rows that are compared with a new one.
const NEAR: usize = 4;

/// Results of one proof that are valid for other clusters too.
pub(super) struct KnownPaths<'r> {
    proven: Proven<'r>,
    /// The places of blocks that are seen alike. Most clusters see the same ones of another cluster.
    rows: BlockRows,
}

/// The places of some blocks, by where these are in memory and how many there are.
type BlockRows = BTreeMap<(usize, usize), Vec<u64>>;

/// Senders with the same receivers.
struct AlikeRows {
    /// The place of the senders in memory, and their number.
    place: (usize, usize),
    senders: Vec<u64>,
    whole: Vec<u64>,
    partial: Vec<u64>,
}

/// The paths of one state, by how much of them holds.
#[derive(Clone, Debug, Default)]
pub(super) struct StateProof {
    /// Paths on which all packets and their answers arrive.
    pub(super) whole: Held,
    /// Paths on which some of them do: a block has addresses that others claim too.
    pub(super) partial: Held,
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

/// Returns the places of blocks that are seen alike, among all blocks of their cluster.
fn row<'k>(rows: &'k mut BlockRows, blocks: &[AddressBlock], all: &Blocks) -> &'k [u64] {
    let row = rows.entry((blocks.as_ptr().addr(), blocks.len()));
    row.or_insert_with(|| {
        let mut row = all.row();
        for place in all.places(blocks) {
            add_place(&mut row, place);
        }
        row
    })
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
        let KnownPaths { proven, rows } = known;
        let mut alike: Option<AlikeRows> = None;
        for verdict in reach.between(from, to, proven) {
            let place = (verdict.senders.as_ptr().addr(), verdict.senders.len());
            if alike.as_ref().is_none_or(|it| it.place != place) {
                if let Some(alike) = alike.take() {
                    proof.add(&alike);
                }
                alike = Some(AlikeRows {
                    place,
                    senders: row(rows, &verdict.senders, senders).to_vec(),
                    whole: receivers.row(),
                    partial: receivers.row(),
                });
            }
            let Some(alike) = &mut alike else { continue };
            let own = if verdict.holds() {
                &mut alike.whole
            } else if verdict.holds_in_part() {
                &mut alike.partial
            } else {
                continue;
            };
            let reached = row(rows, &verdict.receivers, receivers);
            let words = own.iter_mut().zip(reached);
            words.for_each(|(word, other)| *word |= other);
        }
        if let Some(alike) = alike {
            proof.add(&alike);
        }
        proof
    }

    fn add(&mut self, alike: &AlikeRows) {
        let senders = Places(&alike.senders);
        self.whole.add_rows(senders, Places(&alike.whole));
        self.partial.add_rows(senders, Places(&alike.partial));
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

impl KnownRows {
    fn get_or(&mut self, from: (RowNumber, usize), find: impl FnOnce() -> RowNumber) -> RowNumber {
        if let Some((_, row)) = self.last.filter(|it| it.0 == from) {
            return row;
        }
        let row = *self.all.entry(from).or_insert_with(find);
        self.last = Some((from, row));
        row
    }
}

impl Held {
    /// Returns the receivers of each sender that has any.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, Places<'_>)> {
        let senders = self.row_of.iter().enumerate();
        let rows = senders.map(|(sender, row)| (sender, Places(self.words(*row))));
        rows.filter(|it| !it.1.is_empty())
    }

    /// Returns the senders that have the same receivers, with these.
    pub(super) fn groups(&self) -> impl Iterator<Item = (Vec<usize>, Places<'_>)> {
        let mut senders: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len() + 1];
        for (sender, row) in self.row_of.iter().enumerate() {
            if let Some(alike) = senders.get_mut(*row) {
                alike.push(sender);
            }
        }
        let rows = senders.into_iter().zip(EMPTY..);
        let groups = rows.map(|(senders, row)| (senders, Places(self.words(row))));
        groups.filter(|(senders, row)| !senders.is_empty() && !row.is_empty())
    }

    fn words(&self, row: RowNumber) -> &[u64] {
        let row = row.checked_sub(1).and_then(|it| self.rows.get(it));
        row.map_or(&[], |it| it)
    }

    /// Returns the number of a row, which is new if none of the last ones is equal.
    fn number(&mut self, words: Vec<u64>) -> RowNumber {
        if words.iter().all(|it| *it == 0) {
            return EMPTY;
        }
        let mut last = self.rows.iter().enumerate().rev().take(NEAR);
        if let Some((known, _)) = last.find(|it| **it.1 == *words) {
            return known + 1;
        }
        self.rows.push(words.into());
        self.rows.len()
    }

    /// Sets the receivers of a sender.
    fn set(&mut self, sender: usize, row: RowNumber) {
        if self.row_of.len() <= sender {
            self.row_of.resize(sender + 1, EMPTY);
        }
        if let Some(own) = self.row_of.get_mut(sender) {
            *own = row;
        }
    }

    /// Adds the paths from a sender. `number` is that of the receivers among those with which rows are `known`.
    fn add_row(&mut self, sender: usize, receivers: Places, number: usize, known: &mut KnownRows) {
        if receivers.is_empty() {
            return;
        }
        let before = self.row(sender);
        let after = known.get_or((before, number), || {
            let all = combined(self.words(before), receivers.0, |one, other| one | other);
            self.number(all)
        });
        self.set(sender, after);
    }

    /// Adds the paths from some senders to the same receivers.
    fn add_rows(&mut self, senders: Places, receivers: Places) {
        let mut known = KnownRows::default();
        for sender in senders.iter() {
            self.add_row(sender, receivers, 0, &mut known);
        }
    }

    /// Adds the paths of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let mut known = KnownRows::default();
        for (sender, row) in other.row_of.iter().enumerate() {
            self.add_row(sender, Places(other.words(*row)), *row, &mut known);
        }
    }

    /// Returns the paths that are not in another one, usually none of them.
    pub(super) fn without(&self, other: &Self) -> Self {
        if other.rows.is_empty() {
            return self.clone();
        }
        let mut rest = Self::default();
        let mut known = KnownRows::default();
        for (sender, own) in self.row_of.iter().enumerate() {
            let others = other.row(sender);
            let left = known.get_or((*own, others), || {
                let (own, others) = (self.words(*own), other.words(others));
                rest.number(combined(own, others, |one, other| one & !other))
            });
            if left != EMPTY {
                rest.set(sender, left);
            }
        }
        rest
    }

    /// Returns the paths between senders and receivers of kinds that are meant, of which there are few.
    pub(super) fn between<T: Copy + Default + PartialEq>(
        &self,
        senders: &[T],
        receivers: &[T],
        are_meant: impl Fn(T, T) -> bool,
    ) -> Self {
        let kind = |all: &[T], place: usize| all.get(place).copied().unwrap_or_default();
        let mut kinds: Vec<T> = Vec::new();
        let mut paths = Self::default();
        let mut known = KnownRows::default();
        for (sender, own) in self.row_of.iter().enumerate() {
            let of = kind(senders, sender);
            let number = kinds.iter().position(|it| *it == of).unwrap_or(kinds.len());
            if number == kinds.len() {
                kinds.push(of);
            }
            let meant = known.get_or((*own, number), || {
                let words = self.words(*own).iter().enumerate();
                let words = words.map(|(word, bits)| {
                    let is_meant = |bit: &usize| are_meant(of, kind(receivers, word * BITS + bit));
                    let meant = ones(*bits).filter(is_meant);
                    meant.fold(0, |word, bit| word | 1 << bit)
                });
                paths.number(words.collect())
            });
            if meant != EMPTY {
                paths.set(sender, meant);
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
        let [mut of_kept, mut of_gone, mut of_ended] = [(); 3].map(|()| KnownRows::default());
        for (number, (group, row)) in self.groups().enumerate() {
            let TranslatedRow { kept, gone, ended } = receivers.translated(row);
            for sender in group {
                let from = senders.at(sender);
                if from.end.is_some() {
                    translated
                        .ended
                        .add_row(sender, row, 2 * number + 1, &mut of_ended);
                    continue;
                }
                translated
                    .ended
                    .add_row(sender, Places(&ended), 2 * number, &mut of_ended);
                // Of a sender that is not there, or only in part, all paths are gone.
                let (gone, is_partial) = if from.is_whole {
                    (Places(&gone), 0)
                } else {
                    (row, 1)
                };
                translated
                    .gone
                    .add_row(sender, gone, 2 * number + is_partial, &mut of_gone);
                if let Some(place) = from.place {
                    translated
                        .kept
                        .add_row(place, Places(&kept), number, &mut of_kept);
                }
            }
        }
        translated.gone = translated.gone.without(&translated.ended);
        translated
    }

    /// Returns the ended paths whose ends have other addresses now, none of which takes their place; `works` are the
    /// paths that work now.
    pub(super) fn unreplaced(
        &self,
        senders: &PlaceMap,
        receivers: &PlaceMap,
        works: &Self,
    ) -> Self {
        let now = works.through_successors(senders, self.row_of.len());
        let mut unreplaced = Self::default();
        let mut known = KnownRows::default();
        for (sender, own) in self.row_of.iter().enumerate() {
            if !senders.is_replaced(sender) {
                continue;
            }
            let reached = now.row(sender);
            let left = known.get_or((*own, reached), || {
                let (own, reached) = (Places(self.words(*own)), Places(now.words(reached)));
                unreplaced.number(receivers.unreached(own, reached))
            });
            if left != EMPTY {
                unreplaced.set(sender, left);
            }
        }
        unreplaced
    }

    /// Returns what is reached from the blocks that are there instead of each of the first senders.
    fn through_successors(&self, senders: &PlaceMap, count: usize) -> Self {
        let [mut of_sets, mut all] = [(); 2].map(|()| Self::default());
        let mut known = KnownRows::default();
        for (number, blocks) in senders.successors.sets.iter().enumerate() {
            for row in blocks.iter().map(|it| self.row(*it)) {
                of_sets.add_row(number, Places(self.words(row)), row, &mut known);
            }
        }
        let mut known = KnownRows::default();
        for sender in 0..count {
            if let Some(place) = senders.at(sender).place {
                let row = self.row(place);
                all.add_row(sender, Places(self.words(row)), 2 * row, &mut known);
            }
            if let Some(set) = senders.successors.of_block.get(&sender) {
                let row = of_sets.row(*set);
                all.add_row(sender, Places(of_sets.words(row)), 2 * row + 1, &mut known);
            }
        }
        all
    }

    /// Returns the number of the receivers of a sender.
    fn row(&self, sender: usize) -> RowNumber {
        self.row_of.get(sender).copied().unwrap_or(EMPTY)
    }

    /// Returns whether there is no path.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Combines two rows, of which the shorter one ends with words without any receiver.
fn combined(one: &[u64], other: &[u64], combine: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    let word = |row: &[u64], place: usize| row.get(place).copied().unwrap_or_default();
    let places = 0..one.len().max(other.len());
    places
        .map(|it| combine(word(one, it), word(other, it)))
        .collect()
}
