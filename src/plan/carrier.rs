//! Carriers: the candidates of a source that are left for a target, and their ranges.

use crate::membership::PeerCandidate;
use crate::net::Cidr;

/// A candidate that is left for a target, and what it gives.
pub(super) struct Carrier<'f> {
    pub(super) candidate: &'f PeerCandidate,
    pub(super) ranges: Vec<Cidr>,
}
