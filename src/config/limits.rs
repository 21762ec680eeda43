//! Limits: when a snapshot is not plausible, and when rendered manifests are reported as too few or
//! too many.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use super::capacity::{Capacity, WrittenCapacity};
use super::ceilings::WrittenCeilings;
use crate::diagnostic::Finding;
use crate::place::Place;

/// Declares the limits, each with its name and range in a config, its type and the default.
macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident $key:literal: $written:ty, $range:tt; $number:ty [$what:literal] $usual:literal;)*) => {
        /// Limits for snapshots, rendered manifests and the load of clusters.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub struct Limits {
            $(#[doc = $what] pub $field: $number,)*
            /// The load that a target can carry.
            pub capacity: Capacity,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self {
                    $($field: $usual,)*
                    capacity: Capacity::default(),
                }
            }
        }

        impl Limits {
            /// Returns all of them but those of the load, by their names in a config.
            pub fn all(&self) -> [(&'static str, u64); [$($usual,)*].len()] {
                fn number(limit: impl TryInto<u64>) -> u64 {
                    limit.try_into().unwrap_or(u64::MAX)
                }
                [$(($key, number(self.$field)),)*]
            }
        }

        /// Limits. A snapshot beyond them is only written with `--accept`. Manifests beyond them are
        /// rendered, with a warning.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[schemars(rename = "Limits")]
        #[serde(deny_unknown_fields)]
        pub(super) struct WrittenLimits {
            $(
                $(#[$doc])*
                #[schemars(range $range, extend("default" = Limits::default().$field))]
                #[serde(rename = $key)]
                $field: Option<$written>,
            )*
            /// Limits of the load of a target, as `clustermesh capacity` computes it.
            capacity: Option<WrittenCapacity>,
            /// Limits on the size of a run. Larger input is refused.
            pub(super) ceilings: Option<WrittenCeilings>,
        }

        impl WrittenLimits {
            pub(super) fn limits(self, place: &Place) -> Result<Limits, Vec<Finding>> {
                fn limit<T: TryFrom<u32>>(written: Option<impl Into<u32>>, usual: T) -> T {
                    let written = written.and_then(|it| T::try_from(it.into()).ok());
                    written.unwrap_or(usual)
                }
                let capacity = self.capacity.map(|it| it.capacity(&place.key("capacity")));
                Ok(Limits {
                    $($field: limit(self.$field, $usual),)*
                    capacity: capacity.transpose()?.unwrap_or_default(),
                })
            }
        }
    };
}

limits! {
    /// The maximum number of nodes of a cluster; default: 500.
    nodes "nodes": NonZeroU32, (min = 1, max = 1_000_000);
    usize ["The most nodes of a cluster."] 500;
    /// The smallest number of lost usable nodes that is reported; default: 2.
    lost_nodes "lostNodes": NonZeroU32, (min = 1, max = 1_000_000);
    usize ["The fewest usable nodes whose loss is a shrinkage."] 2;
    /// The share of its usable nodes that a cluster may lose, in percent; default: 25.
    lost_percent "lostPercent": u8, (max = 100);
    usize ["The percentage of the usable nodes that may be lost."] 25;
    /// The weight, in percent, of a lost node that was deleted from the API; default: 50.
    gone_percent "gonePercent": u8, (max = 100);
    usize ["The weight of a node whose object is gone from the API, in percent."] 50;
    /// The number of seconds that the heartbeat of a node's Kilo agent may be older than that of
    /// most nodes before the node is stale; default: 300. Kilo itself drops a node after 60
    /// seconds.
    stale_after_seconds "staleAfterSeconds": u32, (min = 60, max = 31_536_000);
    u32 ["The longest delay of a node's heartbeat behind most nodes of its cluster, in seconds."] 300;
    /// The smallest number of lost Peers of a source that is reported; default: 2.
    lost_peers "lostPeers": NonZeroU32, (min = 1, max = 1_000_000);
    usize ["The fewest Peers of a source whose loss in a target is a shrinkage."] 2;
    /// The share of the Peers of one source that a target may lose, in percent; default: 25.
    lost_peers_percent "lostPeersPercent": u8, (max = 100);
    usize ["The percentage of its Peers of a source that a target may lose."] 25;
    /// The maximum size in bytes of a Peer as JSON; default: 262,144, the limit of the annotation
    /// that `kubectl apply` writes.
    peer_bytes "peerBytes": NonZeroU32, (min = 1, max = 1_000_000_000);
    usize ["The largest Peer, in bytes of the annotation of `kubectl apply`."] 262_144;
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
