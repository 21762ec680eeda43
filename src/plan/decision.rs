//! Decisions: what of a source is withheld from a target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::withheld::TargetReason;
use crate::fleet::MemberId;
use crate::membership::CandidateId;
use crate::net::Cidr;

/// The parts that are cut out of ranges, by range.
pub(super) type Holes = BTreeMap<Cidr, BTreeSet<Cidr>>;

/// The Peers and ranges of a source that are withheld from a target.
#[derive(Default)]
pub(super) struct SourceDecision {
    pub(super) excluded: BTreeSet<CandidateId>,
    /// The ranges.
    pub(super) withheld: BTreeSet<Cidr>,
    /// The parts that are cut out of the other ranges.
    pub(super) holes: Holes,
    /// The findings about both.
    pub(super) reasons: Vec<Arc<TargetReason>>,
}

/// The decisions for a target, by source; most sources have none.
pub(super) type Decisions = BTreeMap<MemberId, SourceDecision>;
