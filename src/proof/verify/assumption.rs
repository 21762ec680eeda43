//! Assumptions: what no snapshot shows and declared paths need.

use std::collections::BTreeSet;

use crate::agent::fabric::{DialPremise, NodeRef, SiteId, SitePair};
use crate::net::Cidr;
use crate::packet::premise::Premise;

/// Promises that hold only under a premise.
#[derive(Clone, Debug)]
pub struct Assumption {
    /// The condition, for one of them.
    pub premise: Premise,
    /// The number of pairs.
    pub pairs: u64,
    /// Between which clusters.
    pub between: BTreeSet<SitePair>,
    /// The nodes of which something must be so.
    pub nodes: BTreeSet<NodeRef>,
}

/// The common part of premises: the cluster whose nodes must meet the condition, the cluster that they dial,
/// or again their own, and the subject.
pub(super) type AlikePremises = (SiteId, SiteId, PremiseSubject);

/// The subject of a premise.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum PremiseSubject {
    /// The addresses of pods.
    Pods,
    /// The sources of packets from pods.
    Sources,
    /// Endpoints at which others are dialled.
    Dial(DialPremise),
    Range(Cidr),
    /// A LAN that a Peer takes.
    Lan(Cidr),
    /// Routes between nodes and their leaders.
    Plugin,
}

impl Assumption {
    /// Adds paths with the same kind of premise.
    pub(super) fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.between.extend(other.between);
        self.nodes.extend(other.nodes);
        self.premise = self.premise.min(other.premise);
    }
}
