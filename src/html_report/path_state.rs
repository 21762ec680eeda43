//! States: what becomes of the paths from one cluster to another, as a sign, a word and a colour.

use std::collections::BTreeSet;

use serde::Serialize;

use super::proof_document::{PagePairing, PageTally};

/// The state of the paths from one cluster to another, the worst first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PathState {
    /// No declared path works.
    Fails,
    /// Some declared paths fail.
    Partly,
    /// Paths work although the clusters have no link.
    Undeclared,
    /// Some declared paths depend on conditions that no file shows.
    Assumed,
    /// All declared paths work.
    Works,
    /// The snapshot of a cluster is missing.
    Unread,
    /// No path is declared.
    Unlinked,
}

/// A state as the legend explains it.
#[derive(Clone, Copy, Serialize)]
pub(super) struct StateLegend {
    state: PathState,
    sign: &'static str,
    word: &'static str,
}

impl PathState {
    /// All states.
    const ALL: [Self; 7] = [
        Self::Works,
        Self::Assumed,
        Self::Partly,
        Self::Fails,
        Self::Undeclared,
        Self::Unread,
        Self::Unlinked,
    ];

    /// Returns the state of paths.
    pub(super) fn of(tally: PageTally, is_linked: bool) -> Self {
        let held = tally.working + tally.assumed;
        match tally.declared {
            0 if 0 < tally.undeclared_working && !is_linked => Self::Undeclared,
            0 => Self::Unlinked,
            _ if held == 0 => Self::Fails,
            declared if held < declared => Self::Partly,
            _ if 0 < tally.assumed => Self::Assumed,
            _ => Self::Works,
        }
    }

    /// Returns whether there is something to look at.
    pub(super) fn is_trouble(self) -> bool {
        self <= Self::Assumed
    }

    /// Returns its sign, for people who see no colours.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Fails => "✗",
            Self::Partly => "◐",
            Self::Undeclared => "+",
            Self::Assumed => "?",
            Self::Works => "✓",
            Self::Unread => "…",
            Self::Unlinked => "·",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Fails => "no declared path works",
            Self::Partly => "some declared paths fail",
            Self::Undeclared => "reachable without a link",
            Self::Assumed => "works if an assumption holds",
            Self::Works => "all declared paths work",
            Self::Unread => "unknown, a snapshot is missing",
            Self::Unlinked => "no declared path",
        }
    }

    /// Returns the legend of some states.
    pub(super) fn legend(used: &BTreeSet<Self>) -> impl Iterator<Item = StateLegend> {
        let used = Self::ALL.into_iter().filter(|it| used.contains(it));
        used.map(|state| StateLegend { state, sign: state.sign(), word: state.words() })
    }
}

impl PageTally {
    /// Returns the sum of two numbers of paths.
    fn plus(self, other: Self) -> Self {
        Self {
            declared: self.declared + other.declared,
            working: self.working + other.working,
            assumed: self.assumed + other.assumed,
            undeclared_working: self.undeclared_working + other.undeclared_working,
        }
    }

    /// Returns the number of declared paths that fail.
    pub(super) fn failing(self) -> u64 {
        self.declared.saturating_sub(self.working + self.assumed)
    }
}

impl PagePairing {
    /// Returns all its paths.
    pub(super) fn total(&self) -> PageTally {
        let classes = self.classes.iter().map(|it| it.tally);
        classes.fold(PageTally::default(), PageTally::plus)
    }

    /// Returns the states of all its paths, and of those of each class.
    pub(super) fn states(&self) -> impl Iterator<Item = PathState> {
        let classes = self.classes.iter();
        let classes = classes.map(|it| PathState::of(it.tally, self.linked));
        classes.chain([self.state()])
    }

    /// Returns the state of all its paths.
    pub(super) fn state(&self) -> PathState {
        PathState::of(self.total(), self.linked)
    }
}
