//! Grades: how severe changes are, and why they are not better.

use crate::name::ClusterName;

/// How severe changes are.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Grade {
    /// No Peer changes.
    #[default]
    None,
    /// Paths are only gained, and nothing that works is disturbed.
    Additive,
    /// What changes is interrupted for at most 30 seconds.
    Brief,
    /// A path is lost, or interrupted for longer.
    Disruptive,
    /// A target loses all of its Peers, or all of those of a source.
    Destructive,
}

/// An engine that applies Peers, by the order of its steps.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Engine {
    /// Applies, then prunes.
    Flux,
    /// Prunes, then applies.
    ArgoCd,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Flux, Self::ArgoCd];
}

/// Why a target's grade is not better.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It loses all of its Peers.
    Emptied,
    /// It loses all Peers of a source.
    SourceGone(ClusterName),
    /// Peers change in a way that was not proved to be harmless.
    Unproven {
        /// The number of Peers.
        peers: usize,
    },
    /// Peers are added, and nothing else changes.
    Added,
}

impl Grade {
    /// All of them, the best first.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Additive,
        Self::Brief,
        Self::Disruptive,
        Self::Destructive,
    ];

    /// Returns its name, as people and programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Additive => "additive",
            Self::Brief => "brief",
            Self::Disruptive => "disruptive",
            Self::Destructive => "destructive",
        }
    }
}

impl Reason {
    /// Returns the best grade that it leaves.
    pub fn grade(&self) -> Grade {
        match self {
            Self::Emptied | Self::SourceGone(_) => Grade::Destructive,
            Self::Unproven { .. } => Grade::Disruptive,
            Self::Added => Grade::Additive,
        }
    }
}
