//! Harms: the losses of parts, and those of which it is known that they end paths of others.

use std::cmp::Reverse;

use super::lost_nodes::LostNodes;
use super::obstacle::OutageObstacle;
use super::part::FleetPart;
use super::proof::OutageResult;
use crate::agent::fabric::SiteId;

/// Parts whose loss ends paths of others.
#[derive(Clone, Debug)]
pub struct Harm {
    /// The part, or two that are lost together.
    pub parts: Vec<FleetPart>,
    /// Their nodes.
    pub lost: LostNodes,
    /// The paths.
    pub result: OutageResult,
}

/// A part and its nodes, which are in one cluster.
pub(super) struct PartLoss {
    pub(super) part: FleetPart,
    pub(super) site: SiteId,
    pub(super) lost: LostNodes,
}

/// The loss of a part that is not recognised as harmless.
pub(super) struct ProvedLoss {
    pub(super) loss: PartLoss,
    pub(super) result: Result<OutageResult, OutageObstacle>,
}

/// Sorts parts by the number of paths that end without them, the largest first.
pub(super) fn sort(harmful: &mut [Harm]) {
    harmful.sort_by_key(|it| Reverse(it.result.paths()));
}
