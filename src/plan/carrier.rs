//! Carriers: the candidates of a source that are left for a target, and their ranges.

use crate::membership::PeerCandidate;
use crate::net::Cidr;

/// A candidate that is left for a target, and what it gives.
pub(super) struct Carrier<'f> {
    pub(super) candidate: &'f PeerCandidate,
    /// The ranges of pods.
    pub(super) pods: Vec<Cidr>,
    /// All other ranges.
    pub(super) others: Vec<Cidr>,
}

impl Carrier<'_> {
    pub(super) fn ranges(&self) -> impl Iterator<Item = Cidr> {
        self.pods.iter().chain(&self.others).copied()
    }
}
