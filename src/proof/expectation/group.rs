//! Groups: what is meant of a cluster, by what another one sees alike of it.

use std::collections::BTreeMap;

use super::meant::Chosen;
use crate::proof::reach::{Parcel, Sight};

/// Some parcels of which one stands for all.
#[derive(Clone, Copy)]
pub(super) struct Lot {
    pub(super) count: u64,
    pub(super) first: Parcel,
    /// The one with the smallest addresses.
    pub(super) least: Parcel,
}

impl Lot {
    pub(super) fn of(parcels: impl Iterator<Item = Parcel>) -> Option<Self> {
        let one = |parcel| Self {
            count: 1,
            first: parcel,
            least: parcel,
        };
        parcels.map(one).reduce(Self::and)
    }

    fn and(self, other: Self) -> Self {
        let is_less = other.least.span.first < self.least.span.first;
        Self {
            count: self.count + other.count,
            least: if is_less { other.least } else { self.least },
            ..self
        }
    }
}

/// What is meant of some parcels that another cluster sees alike.
pub(super) struct Group {
    /// Their place among what is alike.
    pub(super) kin: usize,
    /// All of it.
    pub(super) lot: Lot,
    parts: Vec<Parcel>,
    wholes: Vec<Parcel>,
}

impl Group {
    /// Returns what is chosen of a cluster, in the order in which another one sees it.
    pub(super) fn all(chosen: &Chosen, sight: &Sight) -> Vec<Self> {
        let mut groups: BTreeMap<usize, [Vec<Parcel>; 2]> = BTreeMap::new();
        for pick in &chosen.ready {
            if let Some(kin) = sight.kin_of(pick.number) {
                let [parts, wholes] = groups.entry(kin).or_default();
                let parcels = if pick.is_whole { wholes } else { parts };
                parcels.push(pick.parcel);
            }
        }
        let groups = groups.into_iter().filter_map(|(kin, [parts, wholes])| {
            let lot = Lot::of(parts.iter().chain(&wholes).copied())?;
            Some(Self {
                kin,
                lot,
                parts,
                wholes,
            })
        });
        groups.collect()
    }

    /// Returns whether all addresses of every parcel are meant.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns it in lots; whole parcels are one if they fare alike.
    pub(super) fn lots(&self, are_alike: bool) -> Vec<Lot> {
        let size = if are_alike { self.wholes.len() } else { 1 };
        let wholes = self.wholes.chunks(size.max(1));
        let lots = self.parts.chunks(1).chain(wholes);
        lots.filter_map(|it| Lot::of(it.iter().copied())).collect()
    }
}
