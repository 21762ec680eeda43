//! Places: numbers of blocks, a bit for each.

use std::iter;

/// A set of places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'h>(pub(super) &'h [u64]);

/// The number of places in a word.
pub(super) const BITS: usize = 64;

impl<'h> Places<'h> {
    /// Returns its places, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> + use<'h> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(number, &word)| ones(word).map(move |bit| number * BITS + bit))
    }

    /// Returns whether it has no place.
    pub(super) fn is_empty(self) -> bool {
        self.0.iter().all(|it| *it == 0)
    }

    /// Returns whether a place is among them.
    pub(super) fn has(self, place: usize) -> bool {
        let word = self.0.get(place / BITS);
        word.is_some_and(|it| it >> (place % BITS) & 1 == 1)
    }
}

/// Returns the places of the bits of a word that are set.
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.checked_sub(1)?;
        usize::try_from(place).ok()
    })
}

/// Sets the bit of a place.
pub(super) fn add_place(row: &mut Vec<u64>, place: usize) {
    if row.len() <= place / BITS {
        row.resize(place / BITS + 1, 0);
    }
    if let Some(word) = row.get_mut(place / BITS) {
        *word |= 1 << (place % BITS);
    }
}
