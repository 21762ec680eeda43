//! Path sets: pairs of a sender and a receiver, each a block of its cluster by its place there.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::blocks::PlaceMap;

/// Pairs of a sender and a receiver. Many senders have the same receivers, which are there once: the cost depends
/// on the number of blocks and not of pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSet {
    /// Different sets of receivers. The first one has the number 1.
    rows: Vec<FixedBitSet>,
    /// The number of the receivers of each sender.
    row_of: Vec<RowNumber>,
}

/// The number of a set of receivers.
type RowNumber = usize;

/// The number of the set without any receiver.
const EMPTY: RowNumber = 0;

static NOBODY: FixedBitSet = FixedBitSet::new();

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
    pub(super) kept: PathSet,
    /// Those of which one end is lost, at least in part, in their old numbers.
    pub(super) gone: PathSet,
    /// Those of which one end does not exist any more, in their old numbers.
    pub(super) ended: PathSet,
}

/// The largest number of rows that are compared with a new one.
const NEAR: usize = 4;

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

impl PathSet {
    /// Returns the receivers of each sender that has any.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &FixedBitSet)> {
        let senders = self.row_of.iter().enumerate().filter(|it| *it.1 != EMPTY);
        senders.map(|(sender, row)| (sender, self.receivers(*row)))
    }

    /// Returns the senders that have the same receivers, with these.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Vec<usize>, &FixedBitSet)> {
        let mut senders: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len() + 1];
        for (sender, row) in self.row_of.iter().enumerate() {
            if let Some(alike) = senders.get_mut(*row) {
                alike.push(sender);
            }
        }
        let groups = senders.into_iter().skip(EMPTY + 1).zip(&self.rows);
        groups.filter(|(senders, _)| !senders.is_empty())
    }

    fn receivers(&self, row: RowNumber) -> &FixedBitSet {
        row.checked_sub(1).and_then(|it| self.rows.get(it)).unwrap_or(&NOBODY)
    }

    /// Returns the number of a row, which is new if none of the last ones is equal.
    fn number(&mut self, row: FixedBitSet) -> RowNumber {
        if row.is_clear() {
            return EMPTY;
        }
        let mut last = self.rows.iter().enumerate().rev().take(NEAR);
        if let Some((known, _)) = last.find(|it| it.1.as_slice() == row.as_slice()) {
            return known + 1;
        }
        self.rows.push(row);
        self.rows.len()
    }

    /// Sets the receivers of a sender.
    fn set(&mut self, sender: usize, row: RowNumber) {
        if row == EMPTY {
            return;
        }
        if self.row_of.len() <= sender {
            self.row_of.resize(sender + 1, EMPTY);
        }
        if let Some(own) = self.row_of.get_mut(sender) {
            *own = row;
        }
    }

    /// Adds the paths from a sender. `number` is that of the receivers among those with which rows are `known`.
    fn add_row(
        &mut self,
        sender: usize,
        receivers: &FixedBitSet,
        number: usize,
        known: &mut KnownRows,
    ) {
        if receivers.is_clear() {
            return;
        }
        let before = self.row(sender);
        let after = known.get_or((before, number), || {
            let mut all = self.receivers(before).clone();
            all.union_with(receivers);
            self.number(all)
        });
        self.set(sender, after);
    }

    /// Adds the paths from some senders to the same receivers.
    pub(crate) fn add_rows(&mut self, senders: &FixedBitSet, receivers: &FixedBitSet) {
        let mut known = KnownRows::default();
        for sender in senders.ones() {
            self.add_row(sender, receivers, 0, &mut known);
        }
    }

    /// Adds the paths of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut known = KnownRows::default();
        for (sender, row) in other.row_of.iter().enumerate() {
            self.add_row(sender, other.receivers(*row), *row, &mut known);
        }
    }

    /// Returns the paths that are not in another one, usually none of them.
    pub(crate) fn without(&self, other: &Self) -> Self {
        if other.rows.is_empty() {
            return self.clone();
        }
        let mut rest = Self::default();
        let mut known = KnownRows::default();
        for (sender, own) in self.row_of.iter().enumerate() {
            let others = other.row(sender);
            let left = known.get_or((*own, others), || {
                let mut left = self.receivers(*own).clone();
                left.difference_with(other.receivers(others));
                rest.number(left)
            });
            rest.set(sender, left);
        }
        rest
    }

    /// Returns the paths that are in another one, too.
    pub(super) fn common(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    /// Keeps the paths between some senders and receivers.
    pub(crate) fn retain(&mut self, senders: &FixedBitSet, receivers: &FixedBitSet) {
        for (sender, row) in self.row_of.iter_mut().enumerate() {
            if !senders.contains(sender) {
                *row = EMPTY;
            }
        }
        for row in &mut self.rows {
            row.intersect_with(receivers);
        }
    }

    /// Returns the paths between senders and receivers of kinds that are meant, of which there are few.
    pub(crate) fn between<T: Copy + Default + PartialEq>(
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
                let meant =
                    self.receivers(*own).ones().filter(|it| are_meant(of, kind(receivers, *it)));
                paths.number(meant.collect())
            });
            paths.set(sender, meant);
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
        let Translated { kept, gone, ended } = &mut translated;
        let [mut of_kept, mut of_gone, mut of_ended] = [(); 3].map(|()| KnownRows::default());
        for (number, (group, row)) in self.groups().enumerate() {
            let to = receivers.translated(row);
            for sender in group {
                let from = senders.at(sender);
                if from.end.is_some() {
                    ended.add_row(sender, row, 2 * number + 1, &mut of_ended);
                    continue;
                }
                ended.add_row(sender, &to.ended, 2 * number, &mut of_ended);
                // Of a sender that is not there, or only in part, all paths are gone.
                if from.is_whole {
                    gone.add_row(sender, &to.gone, 2 * number, &mut of_gone);
                } else {
                    gone.add_row(sender, row, 2 * number + 1, &mut of_gone);
                }
                if let Some(place) = from.place {
                    kept.add_row(place, &to.kept, number, &mut of_kept);
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
                let (own, reached) = (self.receivers(*own), now.receivers(reached));
                unreplaced.number(receivers.unreached(own, reached))
            });
            unreplaced.set(sender, left);
        }
        unreplaced
    }

    /// Returns what is reached from the blocks that are there instead of each of the first senders.
    fn through_successors(&self, senders: &PlaceMap, count: usize) -> Self {
        let [mut of_sets, mut all] = [(); 2].map(|()| Self::default());
        let mut known = KnownRows::default();
        for (number, blocks) in senders.successors.sets.iter().enumerate() {
            for row in blocks.iter().map(|it| self.row(*it)) {
                of_sets.add_row(number, self.receivers(row), row, &mut known);
            }
        }
        let mut known = KnownRows::default();
        for sender in 0..count {
            if let Some(place) = senders.at(sender).place {
                let row = self.row(place);
                all.add_row(sender, self.receivers(row), 2 * row, &mut known);
            }
            if let Some(set) = senders.successors.of_block.get(&sender) {
                let row = of_sets.row(*set);
                all.add_row(sender, of_sets.receivers(row), 2 * row + 1, &mut known);
            }
        }
        all
    }

    /// Returns the number of the receivers of a sender.
    fn row(&self, sender: usize) -> RowNumber {
        self.row_of.get(sender).copied().unwrap_or(EMPTY)
    }

    /// Returns whether there is no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
