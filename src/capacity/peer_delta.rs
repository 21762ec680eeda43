//! The Peers of a cluster that change together. Each is an apply of its own.

use schemars::JsonSchema;
use serde::Serialize;

use super::load::NodeLoad;
use super::time::Applies;
use crate::agent::comparison::{Pair, compare};
use crate::agent::model::Model;
use crate::agent::peers::{ClusterPeer, PeerId, PeerShare};
use crate::config::capacity::Costs;

/// A set of changes that are applied together. New and changed Peers are applied first; removed Peers
/// are deleted at the end.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct PeerDelta {
    /// Peers that are added.
    pub added: usize,
    /// The number of allowed IPs of these.
    #[serde(skip)]
    pub added_ranges: usize,
    /// Peers that are changed.
    pub changed: usize,
    /// The number of allowed IPs of these before.
    #[serde(skip)]
    pub changed_from: usize,
    /// The number of allowed IPs of these afterwards.
    #[serde(skip)]
    pub changed_to: usize,
    /// Peers that are removed.
    pub removed: usize,
    /// The number of allowed IPs of these.
    #[serde(skip)]
    pub removed_ranges: usize,
    /// The number of allowed IPs before.
    #[serde(skip)]
    pub ranges_before: usize,
}

impl PeerDelta {
    /// Compares the current Peers of a cluster with the wanted ones.
    pub fn between(before: &Model, after: &Model) -> Self {
        Self::count(before, after, compare(&before.peers, &after.peers))
    }

    /// Counts what is known to differ between them.
    pub fn count(
        before: &Model,
        after: &Model,
        differences: impl IntoIterator<Item = Pair<PeerId>>,
    ) -> Self {
        let mut delta =
            Self { ranges_before: before.peers.iter().map(ranges).sum(), ..Self::default() };
        for pair in differences {
            match pair.among(&before.peers, &after.peers) {
                Pair::Same(_) => {}
                Pair::Changed { before, after } => {
                    delta.changed += 1;
                    delta.changed_from += ranges(before);
                    delta.changed_to += ranges(after);
                }
                Pair::Removed(gone) => {
                    delta.removed += 1;
                    delta.removed_ranges += ranges(gone);
                }
                Pair::Added(come) => {
                    delta.added += 1;
                    delta.added_ranges += ranges(come);
                }
            }
        }
        delta
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changed + self.added + self.removed == 0
    }

    /// Returns how many allowed IPs there are in the end.
    pub fn ranges_after(&self) -> usize {
        (self.peak()).saturating_sub(self.removed_ranges)
    }

    /// Returns how many there are when all are there that come, and none has gone.
    fn peak(&self) -> usize {
        self.moved() + self.added_ranges
    }

    /// Returns how many there are when those have changed that do.
    fn moved(&self) -> usize {
        (self.ranges_before + self.changed_to).saturating_sub(self.changed_from)
    }

    /// Returns how many seconds the busiest node of a cluster is busy with it.
    pub fn seconds(&self, nodes: &NodeLoad, costs: &Costs) -> f64 {
        let steps = [
            (self.changed, self.ranges_before, self.moved()),
            (self.added, self.moved(), self.peak()),
            (self.removed, self.peak(), self.ranges_after()),
        ];
        let applies = steps.map(|(times, before, after)| Applies { times, before, after });
        applies.iter().map(|it| it.seconds(nodes, costs)).sum()
    }
}

fn ranges(peer: &ClusterPeer) -> usize {
    peer.share().map_or(0, PeerShare::count)
}
