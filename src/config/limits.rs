//! Limits: when a snapshot is not plausible, and when rendered manifests are reported as too few or
//! too many.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use super::capacity::{Capacity, WrittenCapacity};
use super::ceilings::WrittenCeilings;
use crate::diagnostic::Finding;
use crate::place::Place;

/// Limits for snapshots, rendered manifests and the load of clusters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The most nodes of a cluster.
    pub nodes: usize,
    /// The fewest usable nodes whose loss is a shrinkage.
    pub lost_nodes: usize,
    /// The percentage of the usable nodes that may be lost.
    pub lost_percent: usize,
    /// The weight of a node whose object is gone from the API, in percent.
    pub gone_percent: usize,
    /// The longest delay of a node's heartbeat behind most nodes of its cluster, in seconds.
    pub stale_after_seconds: u32,
    /// The fewest Peers of a source whose loss in a target is a shrinkage.
    pub lost_peers: usize,
    /// The percentage of its Peers of a source that a target may lose.
    pub lost_peers_percent: usize,
    /// The largest Peer, in bytes of the annotation of `kubectl apply`.
    pub peer_bytes: usize,
    /// The load that a target can carry.
    pub capacity: Capacity,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 500,
            lost_nodes: 2,
            lost_percent: 25,
            gone_percent: 50,
            stale_after_seconds: 300,
            lost_peers: 2,
            lost_peers_percent: 25,
            peer_bytes: 262_144,
            capacity: Capacity::default(),
        }
    }
}

impl Limits {
    /// Returns whether a cluster with this number of usable nodes loses more of them than is plausible,
    /// given the sum of their weights in percent.
    pub fn are_exceeded(&self, percents: usize, nodes: usize) -> bool {
        let is_share = self.lost_percent * nodes < percents;
        let is_many = 100 * self.lost_nodes <= percents;
        is_share && is_many
    }
}

/// Limits. A snapshot beyond them is only written with `--accept`. Manifests beyond them are
/// rendered, with a warning.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenLimits {
    /// The maximum number of nodes of a cluster; default: 500.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = Limits::default().nodes))]
    nodes: Option<NonZeroU32>,
    /// The smallest number of lost usable nodes that is reported; default: 2.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = Limits::default().lost_nodes))]
    lost_nodes: Option<NonZeroU32>,
    /// The share of its usable nodes that a cluster may lose, in percent; default: 25.
    #[schemars(range(max = 100), extend("default" = Limits::default().lost_percent))]
    lost_percent: Option<u8>,
    /// The weight, in percent, of a lost node that was deleted from the API; default: 50.
    #[schemars(range(max = 100), extend("default" = Limits::default().gone_percent))]
    gone_percent: Option<u8>,
    /// The number of seconds that the heartbeat of a node's Kilo agent may be older than that of
    /// most nodes before the node is stale; default: 300. Kilo itself drops a node after 60
    /// seconds.
    #[schemars(
        range(min = 60, max = 31_536_000),
        extend("default" = Limits::default().stale_after_seconds)
    )]
    stale_after_seconds: Option<u32>,
    /// The smallest number of lost Peers of a source that is reported; default: 2.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = Limits::default().lost_peers))]
    lost_peers: Option<NonZeroU32>,
    /// The share of the Peers of one source that a target may lose, in percent; default: 25.
    #[schemars(range(max = 100), extend("default" = Limits::default().lost_peers_percent))]
    lost_peers_percent: Option<u8>,
    /// The maximum size in bytes of a Peer as JSON; default: 262,144, the limit of the annotation
    /// that `kubectl apply` writes.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("default" = Limits::default().peer_bytes))]
    peer_bytes: Option<NonZeroU32>,
    /// Limits of the load of a target, as `clustermesh capacity` computes it.
    capacity: Option<WrittenCapacity>,
    /// Limits on the size of a run. Larger input is refused.
    pub(super) ceilings: Option<WrittenCeilings>,
}

impl WrittenLimits {
    pub(super) fn limits(self, place: &Place) -> Result<Limits, Vec<Finding>> {
        let default = Limits::default();
        let capacity = self
            .capacity
            .map(|it| it.capacity(&place.key("capacity")))
            .transpose()?
            .unwrap_or_default();
        let count = |number: Option<NonZeroU32>, default| {
            number.map_or(default, |it| usize::try_from(it.get()).unwrap_or(default))
        };
        Ok(Limits {
            nodes: count(self.nodes, default.nodes),
            lost_nodes: count(self.lost_nodes, default.lost_nodes),
            lost_percent: self.lost_percent.map_or(default.lost_percent, usize::from),
            gone_percent: self.gone_percent.map_or(default.gone_percent, usize::from),
            stale_after_seconds: self
                .stale_after_seconds
                .unwrap_or(default.stale_after_seconds),
            lost_peers: count(self.lost_peers, default.lost_peers),
            lost_peers_percent: self
                .lost_peers_percent
                .map_or(default.lost_peers_percent, usize::from),
            peer_bytes: count(self.peer_bytes, default.peer_bytes),
            capacity,
        })
    }
}
