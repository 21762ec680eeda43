//! Causes: what failures have in common.

use crate::agent::fabric::{Fabric, SiteId};
use crate::agent::model::Tunnel;
use crate::diagnostic::Rule;
use crate::net::Cidr;
use crate::packet::trace::Trace;
use crate::packet::{Ending, rule};

/// The common cause of failures: whether nodes' claims cause it, the verdict, and the deciding fact.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct FailureCause {
    pub(super) is_claimed: bool,
    pub(super) verdict: Option<&'static Rule>,
    by: By,
}

/// The fact that decides that a packet fails; clusters by their numbers.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum By {
    /// A cluster has no Peer at all.
    Peerless(SiteId),
    /// Other clusters lack Peers of this one.
    Missing(SiteId),
    /// A Peer of a cluster, by its name, has a key that no node has, in any cluster.
    Named(SiteId, String),
    /// Peers of a cluster have keys that no node has, in any cluster.
    Unknown(SiteId),
    /// A cluster has a range in a tunnel that keeps it from another cluster.
    Range(SiteId, SiteId, Tunnel, Cidr),
    /// Nothing more is known to be common than the clusters.
    Pair(SiteId, SiteId),
    /// Only the first of the two clusters is common to several pairs.
    Cluster(SiteId),
}

/// Failures that others explain, those of packets in the other direction.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Explained<'c> {
    /// A source is rejected, which is decided by the same.
    SourceRejected(&'c By),
    /// Packets are not accepted.
    NotAccepted,
}

impl FailureCause {
    /// Returns the cause of a failure.
    pub(super) fn find(fabric: &Fabric, trace: &Trace, is_claimed: bool) -> Self {
        Self { is_claimed, verdict: trace.verdict(), by: By::find(fabric, trace) }
    }

    /// Returns the cause that it has in common with others of the same verdict and clusters; none if it
    /// is not one of many.
    pub(super) fn wider(&self) -> Option<Self> {
        let by = match self.by {
            By::Named(of, _) => By::Unknown(of),
            By::Range(near, far, ..) => By::Pair(near, far),
            By::Pair(near, _) => By::Cluster(near),
            By::Peerless(_) | By::Missing(_) | By::Unknown(_) | By::Cluster(_) => return None,
        };
        Some(Self { by, ..*self })
    }

    /// Returns the failures that it explains: what rejects a source also takes the way to it, and packets
    /// that a cluster does not accept are from one to which it has no way.
    pub(super) fn explains(&self) -> Option<Explained<'_>> {
        let verdict = self.verdict?;
        if *verdict == rule::STOLEN_BY {
            Some(Explained::SourceRejected(&self.by))
        } else if [&rule::NO_ROUTE, &rule::UNKNOWN_KEY].contains(&verdict) {
            Some(Explained::NotAccepted)
        } else {
            None
        }
    }

    /// Returns which failures may explain it.
    pub(super) fn explained(&self) -> Option<Explained<'_>> {
        let verdict = self.verdict?;
        if *verdict == rule::SOURCE_REJECTED {
            Some(Explained::SourceRejected(&self.by))
        } else if *verdict == rule::NOT_ACCEPTED {
            Some(Explained::NotAccepted)
        } else {
            None
        }
    }
}

impl By {
    fn find(fabric: &Fabric, trace: &Trace) -> Self {
        let (from, to) = (trace.packet.from.site, trace.packet.to.site());
        let other = |near: SiteId| if near == from { to } else { from };
        let is_peerless = |near: SiteId| fabric.site(near).model.peers.is_empty();
        match trace.ending() {
            Ending::NoRoute { at: near } | Ending::NotAccepted { by: near, .. } => {
                if is_peerless(near.site) {
                    Self::Peerless(near.site)
                } else {
                    Self::Missing(other(near.site))
                }
            }
            Ending::UnknownKey { at, claim, range } => {
                let peers = &fabric.site(at.site).model.peers;
                match claim.tunnel {
                    Tunnel::Peer(peer) => {
                        Self::Named(other(at.site), peers[peer].applied.name.clone())
                    }
                    Tunnel::Segment(_) => Self::Range(at.site, to, claim.tunnel, *range),
                }
            }
            Ending::StolenBy { at, claim, range, .. } => {
                Self::Range(at.site, to, claim.tunnel, *range)
            }
            Ending::Loops { at, peer, range, .. } => {
                Self::Range(at.site, to, Tunnel::Peer(*peer), *range)
            }
            Ending::SourceRejected { by, owner: Some((claim, range)), .. } => {
                Self::Range(by.site, from, claim.tunnel, *range)
            }
            Ending::SourceRejected { by, .. } => Self::Pair(by.site, from),
            Ending::Delivered
            | Ending::LocalShadow { .. }
            | Ending::NoHop { .. }
            | Ending::NoInitiator { .. }
            | Ending::Flapping { .. }
            | Ending::Ambiguous { .. }
            | Ending::NotReady { .. } => Self::Pair(from, to),
        }
    }
}
