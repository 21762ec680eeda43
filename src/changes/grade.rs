//! Grades: how severe changes are, and why they are not better.

use schemars::JsonSchema;
use serde::Serialize;

use super::forgotten_sessions::ForgottenAddresses;
use super::path_change::{EndedPaths, PathCounts};
use crate::config::capacity::Quantity;
use crate::name::ClusterName;

/// The severity of changes, the best first.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// No Peer changes, and no path is lost or loses its proof.
    #[default]
    None,
    /// Paths are only gained, and nothing that works is disturbed.
    Additive,
    /// Only paths to nodes or addresses that no longer exist are removed, and nothing that works is disturbed.
    Cleanup,
    /// Requests in changed clusters may get no answer for at most 30 seconds. Nodes behind NAT that send nothing may be
    /// unreachable for up to 205 seconds.
    Brief,
    /// A path is lost, no longer proved, or interrupted for longer.
    Disruptive,
    /// A target loses all of its Peers, or all Peers of a source.
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
    /// Something becomes of this many paths.
    Paths(PathReason, PathCounts),
    /// Something becomes of this many Peers or ranges.
    Peers(PeerReason, usize),
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
    /// The two clusters of a path have too many states to prove all of them.
    UnprovenPaths,
    /// Kilo is busy for this many seconds, and what changes is interrupted for that long.
    Busy(f64),
    /// A quantity passes its warning.
    LimitPassed(Quantity),
    /// Nodes forget their sessions, and have nothing of their own to send (`kilo.md` §2.10).
    Pause {
        /// The number of leaders without the annotation `kilo.squat.ai/persistent-keepalive`.
        nodes: usize,
    },
    /// Nodes may forget the addresses from which nodes behind NAT are seen (`kilo.md` §2.9).
    AddressesForgotten(ForgottenAddresses),
    /// Paths to nodes or addresses that the new version does not have.
    PathsEnded(EndedPaths),
    /// Peers or ranges are only added.
    Added,
}

/// A reason of a number of paths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathReason {
    /// Paths that worked do not work in the new version.
    Lost,
    /// Paths that were proved are only assumed to work in the new version.
    NoLongerProved,
    /// New paths are only assumed to work.
    Assumed,
    /// Paths do not work while only one of two clusters has its new Peers.
    Apart,
    /// Paths may stay interrupted until agents list all Peers again, which takes up to 10 minutes.
    Stuck,
    /// Paths are interrupted while the Peers arrive.
    Paused,
    /// Paths that worked, are down now, and work with the new Peers.
    Repaired,
}

/// A reason of a number of Peers or ranges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerReason {
    /// This many Peers go with keys of no known node. Their paths cannot be proved, so they count as lost.
    StrangersRemoved,
    /// Peers lose this many ranges, and no other Peer of their source has them. Without the old nodes, no proof shows
    /// what was there, so all of it counts as lost.
    RangesLost,
    /// Peers lose this many ranges to which no packets are followed: `WireGuard` addresses of nodes that stay, and ranges
    /// that no node or cluster of the old version has.
    RangesUnproved,
    /// This many Peers that stay get another key.
    KeysChanged,
    /// This many Peers that stay get another endpoint.
    EndpointsChanged,
    /// This many ranges move from a carrier in their network to one that is not in it. No snapshot shows that it has a
    /// route to them.
    NetworksLeft,
    /// This many ranges get another carrier, so connections to them break once.
    CarriersMoved,
    /// This many Peers that stay differ in another way than by ranges of nodes.
    OthersChanged,
    /// This many Peers get a keepalive or lose it, so Kilo treats an address that it has learned in another way
    /// (`kilo.md` §2.9).
    RoamingChanged,
    /// This many Peers lose ranges for others with the same addresses. Kilo deletes old routes before it adds new
    /// ones.
    RangesReplaced,
    /// This many Peers lose ranges of nodes. The proof shows what becomes of their paths.
    RangesRemoved,
    /// This many Peers go. The proof shows what becomes of their paths.
    Removed,
    /// This many Peers get another keepalive, which Kilo does not write into WireGuard.
    KeepalivesChanged,
}

impl Grade {
    /// Returns its name, as people and programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Additive => "additive",
            Self::Cleanup => "cleanup",
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
            Self::KeysLost(_)
            | Self::Unapplied { .. }
            | Self::Unproven(_)
            | Self::UnprovenPaths
            | Self::Busy(_) => Grade::Disruptive,
            Self::LimitPassed(_) | Self::Pause { .. } | Self::AddressesForgotten(_) => Grade::Brief,
            Self::PathsEnded(_) => Grade::Cleanup,
            Self::Added => Grade::Additive,
            Self::Paths(reason, _) => reason.grade(),
            Self::Peers(reason, _) => reason.grade(),
        }
    }
}

impl PathReason {
    fn grade(self) -> Grade {
        match self {
            Self::Lost | Self::NoLongerProved | Self::Apart | Self::Stuck => Grade::Disruptive,
            Self::Paused => Grade::Brief,
            Self::Repaired | Self::Assumed => Grade::Additive,
        }
    }
}

impl PeerReason {
    fn grade(self) -> Grade {
        match self {
            Self::StrangersRemoved | Self::RangesLost | Self::NetworksLeft => Grade::Disruptive,
            Self::KeysChanged
            | Self::EndpointsChanged
            | Self::CarriersMoved
            | Self::RangesUnproved
            | Self::OthersChanged
            | Self::RangesReplaced
            | Self::RoamingChanged => Grade::Brief,
            Self::RangesRemoved | Self::Removed => Grade::Cleanup,
            Self::KeepalivesChanged => Grade::Additive,
        }
    }
}
