//! Contenders: which of the segments that are left for a target can carry ranges of the whole cluster.

use std::collections::BTreeSet;

use super::carrier::Carrier;
use super::succession::Tier;
use crate::membership::Unready;

/// The segments that are left for a target, by their places.
pub(super) struct Contenders {
    all: Vec<Contender>,
    /// Those that no anchor has to name, lost or not: first those with at least half as many nodes as the
    /// one with most, then the others, both in order of name. So a node with a location of its own does
    /// not come first, and one that comes or goes rarely changes who does.
    ranked: [Vec<usize>; 2],
}

/// A segment that could carry ranges.
#[derive(Clone, Copy)]
pub(super) struct Contender {
    pub(super) is_dialled: bool,
    /// Whether it can be dialled and Kilo counts it. If Kilo counts none of those that can be dialled,
    /// all of them are able.
    pub(super) is_able: bool,
    /// The reason why Kilo does not count it, if it does not.
    pub(super) unready: Option<Unready>,
}

impl Contenders {
    pub(super) fn new(left: &[Carrier]) -> Self {
        let is_dialled = |it: &Carrier| it.candidate.endpoint.is_some();
        let is_counted = |it: &Carrier| is_dialled(it) && it.candidate.unready.is_none();
        let is_any_counted = left.iter().any(is_counted);
        let is_able = |it: &Carrier| is_dialled(it) && (is_counted(it) || !is_any_counted);
        // A target that takes nothing of any node may still take what is the whole cluster's.
        let gives = |it: &Carrier| it.ranges().next().is_some();
        let is_any_giving = left.iter().any(|it| is_able(it) && gives(it));
        let unnamed: Vec<(usize, usize)> = left
            .iter()
            .enumerate()
            .filter(|(_, it)| is_dialled(it) && (!is_any_giving || gives(it)))
            .map(|(at, it)| (at, it.candidate.nodes))
            .collect();
        let most = unnamed.iter().map(|it| it.1).max().unwrap_or_default();
        // Speakers are in order of name.
        let (large, small): (Vec<_>, Vec<_>) = unnamed.into_iter().partition(|it| most <= 2 * it.1);
        let all = left.iter().map(|it| Contender {
            is_dialled: is_dialled(it),
            is_able: is_able(it),
            unready: it.candidate.unready,
        });
        Self {
            all: all.collect(),
            ranked: [large, small].map(|it| it.into_iter().map(|it| it.0).collect()),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<Contender> {
        self.all.get(at).copied()
    }

    pub(super) fn is_able(&self, at: usize) -> bool {
        self.get(at).is_some_and(|it| it.is_able)
    }

    /// Returns whether any segment can carry something.
    pub(super) fn has_able(&self) -> bool {
        self.all.iter().any(|it| it.is_able)
    }

    /// Returns how many segments could be dialled, but cannot carry anything.
    pub(super) fn unable(&self) -> usize {
        self.all.iter().filter(|it| it.is_dialled).filter(|it| !it.is_able).count()
    }

    /// Returns whether a segment carries ranges without being named, if it is not lost.
    pub(super) fn is_ranked(&self, at: usize) -> bool {
        self.ranked.iter().any(|it| it.binary_search(&at).is_ok())
    }

    /// Returns the segments in order of preference, each once: the named ones, those near the range, all
    /// others by rank. Those that can carry nothing keep their places.
    pub(super) fn tiers(&self, named: &[Option<usize>], near: &[usize]) -> Vec<Tier> {
        let able = |at: usize| Some(at).filter(|it| self.is_able(*it));
        let of_names: Tier = named.iter().map(|it| it.and_then(able)).collect();
        let mut known: BTreeSet<usize> = named.iter().copied().flatten().collect();
        let [large, small] = &self.ranked;
        let unnamed = [near, large, small].map(|tier| -> Tier {
            tier.iter().copied().filter(|it| known.insert(*it)).map(able).collect()
        });
        std::iter::once(of_names).chain(unnamed).collect()
    }
}
