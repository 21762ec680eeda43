//! Grades: how severe changes are, and why they are not better.

use super::path_change::PathCounts;
use crate::config::capacity::Quantity;
use crate::name::ClusterName;

/// The severity of changes.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Grade {
    /// No Peer changes.
    #[default]
    None,
    /// Paths are only gained, and nothing that works is disturbed.
    Additive,
    /// Changed paths may be interrupted for at most 30 seconds.
    Brief,
    /// A path is lost, or interrupted for longer.
    Disruptive,
    /// A target loses all of its Peers, or everything of a source.
    Destructive,
}

/// A reason for the grade of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It loses all of its Peers.
    Emptied,
    /// It loses all Peers of a source.
    SourceGone(ClusterName),
    /// No path to or from a cluster works any more.
    AllPathsLost(ClusterName),
    /// Paths that worked do not work in the new version.
    PathsLost(PathCounts),
    /// Paths do not work while only one of two clusters has its new Peers.
    PathsApart(PathCounts),
    /// Paths may stay interrupted until agents list all Peers again, which takes up to 10 minutes.
    PathsStuck(PathCounts),
    /// Agents may forget the keys of these Peers until they list all Peers again.
    KeysLost(Vec<String>),
    /// Changes of these Peers never reach WireGuard (`kilo.md` §2.10).
    Unapplied {
        /// The Peers.
        peers: Vec<String>,
        /// The Peers without an endpoint that hide them.
        because_of: Vec<String>,
    },
    /// Not every order of these Peers could be tried.
    Unproven(Vec<String>),
    /// This many Peers go with keys of no known node. Their paths cannot be proved, so they count as lost.
    StrangersRemoved(usize),
    /// Peers lose this many ranges, and no other Peer of their source has them. Without the old nodes, no proof shows
    /// what was there, so all of it counts as lost.
    RangesLost(usize),
    /// The two clusters of a path have too many states to prove all of them.
    UnprovenPaths,
    /// Kilo is busy for this many seconds, and what changes is interrupted for that long.
    Busy(f64),
    /// Paths are interrupted while the Peers arrive.
    PathsPaused(PathCounts),
    /// This many Peers that stay get another key.
    KeysChanged(usize),
    /// This many Peers that stay get another endpoint.
    EndpointsChanged(usize),
    /// This many ranges get another carrier, so connections to them break once.
    CarriersMoved(usize),
    /// This many Peers that stay differ in another way than by new ranges.
    OthersChanged(usize),
    /// This many Peers go.
    Removed(usize),
    /// A quantity passes its warning.
    LimitPassed(Quantity),
    /// Any changed Peer silences streams in one direction for 15 seconds, on this many leaders without
    /// the annotation `kilo.squat.ai/persistent-keepalive` (`kilo.md` §2.10).
    SilentStreams(usize),
    /// Peers or ranges are only added.
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
            Self::Emptied | Self::SourceGone(_) | Self::AllPathsLost(_) => Grade::Destructive,
            Self::PathsLost(_)
            | Self::PathsApart(_)
            | Self::PathsStuck(_)
            | Self::KeysLost(_)
            | Self::StrangersRemoved(_)
            | Self::RangesLost(_)
            | Self::Unapplied { .. }
            | Self::Unproven(_)
            | Self::UnprovenPaths
            | Self::Busy(_) => Grade::Disruptive,
            Self::PathsPaused(_)
            | Self::KeysChanged(_)
            | Self::EndpointsChanged(_)
            | Self::CarriersMoved(_)
            | Self::OthersChanged(_)
            | Self::Removed(_)
            | Self::LimitPassed(_)
            | Self::SilentStreams(_) => Grade::Brief,
            Self::Added => Grade::Additive,
        }
    }
}
