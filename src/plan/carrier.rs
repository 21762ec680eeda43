//! Carriers: the candidates of a source that are left for a target, and their ranges.

use crate::membership::PeerCandidate;
use crate::net::Cidr;

/// A candidate that is left for a target, and what it gives.
pub(super) struct Carrier<'f> {
    pub(super) candidate: &'f PeerCandidate,
    pub(super) ranges: Vec<Cidr>,
}

impl Carrier<'_> {
    /// Returns whether it can be dialled and has something of its own to give.
    pub(super) fn is_dialled_for_its_own(&self) -> bool {
        self.candidate.endpoint.is_some() && !self.ranges.is_empty()
    }
}
