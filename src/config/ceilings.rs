//! Ceilings: how much input a run accepts, so that no input keeps a CI job or an Argo CD plugin busy for minutes; and
//! limits: when a snapshot is not plausible, and when rendered manifests are reported as too few or too many.
//!
//! With the built-in values, every command that reads only files needs at most ten seconds of CPU time and 1 GiB
//! of memory. A config comes from the repository, like the input, so it can only lower them; a flag or
//! a variable comes from the user who runs the command.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use super::capacity::{Capacity, WrittenCapacity};
use crate::diagnostic::Finding;
use crate::mesh::{Entry, Mesh};
use crate::place::Place;

/// Declares what has a ceiling, each with what is counted and the default.
macro_rules! ceilings {
    ($($(#[$doc:meta])* $counted:ident $field:ident [$what:literal] $most:literal;)*) => {
        /// The default ceilings.
        const BUILT_IN: Ceilings = Ceilings { $($field: $most,)* };

        /// The largest accepted numbers of a run, over all meshes.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub struct Ceilings {
            $($field: usize,)*
        }

        /// Something that has a ceiling.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Counted {
            $(#[doc = $what] $counted,)*
        }

        /// Limits on the size of a run. The config can only lower them; `--ceiling NAME=N` and
        /// `CLUSTERMESH_CEILINGS` can also raise them.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[schemars(rename = "Ceilings")]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(super) struct WrittenCeilings {
            $(
                $(#[$doc])*
                #[schemars(range(min = 1, max = BUILT_IN.$field), extend("default" = BUILT_IN.$field))]
                $field: Option<u32>,
            )*
        }

        impl Counted {
            /// Everything that has a ceiling.
            pub const ALL: [Self; [$($most,)*].len()] = [$(Self::$counted,)*];

            /// Returns its name in configs and flags.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$counted => stringify!($field),)*
                }
            }
        }

        impl Ceilings {
            /// Returns the most that is accepted.
            pub fn most(&self, counted: Counted) -> usize {
                match counted {
                    $(Counted::$counted => self.$field,)*
                }
            }

            /// Returns the ceilings with one of them changed.
            #[must_use]
            pub fn with(mut self, ceiling: Ceiling) -> Self {
                match ceiling.counted {
                    $(Counted::$counted => self.$field = ceiling.most,)*
                }
                self
            }
        }

        impl WrittenCeilings {
            pub(super) fn ceilings(&self) -> Ceilings {
                let most = |written: Option<u32>| usize::try_from(written?).ok();
                Ceilings {
                    $($field: most(self.$field).unwrap_or(BUILT_IN.$field),)*
                }
            }
        }
    };
}

ceilings! {
    /// The maximum number of clusters in all meshes.
    Clusters clusters ["Entries of meshes."] 400;
    /// The maximum number of nodes in all snapshots.
    Nodes nodes ["Nodes in snapshots."] 80_000;
    /// The maximum number of ranges that all clusters declare and accept.
    Ranges ranges ["Ranges that entries declare or accept."] 20_000;
    /// The maximum number of items in `anchors`, including the ranges and nodes that they name.
    Anchors anchors ["Items of `anchors`, and the ranges and nodes that these name."] 5_000;
    /// The maximum number of expectations.
    Expectations expectations ["Expectations."] 2_000;
    /// The maximum number of Peers of all targets.
    Peers peers ["Peers of all targets."] 500_000;
    /// The maximum number of steps of a proof.
    Steps steps ["Steps of a proof."] 10_000_000;
}

/// A ceiling that someone sets, as in `clusters=1000`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ceiling {
    /// The counted item.
    pub counted: Counted,
    /// The most of it.
    pub most: usize,
}

/// A text that sets no ceiling.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum CeilingError {
    /// It is not of the form `NAME=N`.
    #[error("write `NAME=N`, such as `clusters=1000`")]
    Form,
    /// Nothing has this name.
    #[error("known names: clusters, nodes, ranges, anchors, expectations, peers, steps")]
    Name,
    /// The number is not a positive integer.
    #[error("the number must be a positive integer")]
    Number,
}

/// More of something than a run accepts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exceeded {
    /// The counted item.
    pub counted: Counted,
    /// Their number.
    pub count: usize,
    /// The largest accepted number.
    pub most: usize,
    /// The line with most of them, if there is one.
    pub place: Option<Place>,
}

impl Default for Ceilings {
    fn default() -> Self {
        BUILT_IN
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Peers => "Peers",
            Self::Steps => "steps of the proof",
            _ => self.name(),
        })
    }
}

impl FromStr for Ceiling {
    type Err = CeilingError;

    fn from_str(text: &str) -> Result<Self, CeilingError> {
        let (name, number) = text.split_once('=').ok_or(CeilingError::Form)?;
        let counted = Counted::ALL.into_iter().find(|it| it.name() == name.trim());
        let most: Option<usize> = number.trim().parse().ok();
        Ok(Self {
            counted: counted.ok_or(CeilingError::Name)?,
            most: most.filter(|it| 0 < *it).ok_or(CeilingError::Number)?,
        })
    }
}

impl Ceilings {
    /// Returns the most steps of a proof.
    pub fn most_steps(&self) -> u64 {
        u64::try_from(self.steps).unwrap_or(u64::MAX)
    }

    /// Returns whether there is more of something than is accepted.
    pub fn exceeded(&self, counted: Counted, count: usize) -> Option<Exceeded> {
        let most = self.most(counted);
        (most < count).then_some(Exceeded { counted, count, most, place: None })
    }

    /// Returns what meshes have too much of.
    pub fn exceeded_by(&self, meshes: &[Mesh]) -> Vec<Exceeded> {
        let entries = || meshes.iter().flat_map(Mesh::all_entries);
        let summed = |counted: Counted, key: &str, count: fn(&Entry) -> usize| {
            let mut exceeded = self.exceeded(counted, entries().map(count).sum())?;
            let largest = entries().max_by_key(|entry| count(entry));
            exceeded.place = largest.map(|entry| entry.place.key(key));
            Some(exceeded)
        };
        [
            summed(Counted::Clusters, "name", |_| 1),
            summed(Counted::Ranges, "name", ranges),
            summed(Counted::Anchors, "anchors", anchors),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn ranges(entry: &Entry) -> usize {
    entry.networks.all().len()
        + entry.accepted_lists().flatten().count()
        + entry.local_networks.len()
}

fn anchors(entry: &Entry) -> usize {
    entry.anchors.iter().map(|it| 1 + it.nodes.len() + it.ranges.iter().flatten().count()).sum()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_a_name_and_a_positive_number() {
        for counted in Counted::ALL {
            let text = format!("{}=7", counted.name());
            assert_eq!(text.parse(), Ok(Ceiling { counted, most: 7 }));
            let ceilings = Ceilings::default().with(Ceiling { counted, most: 7 });
            assert_eq!(ceilings.exceeded(counted, 7), None);
            assert_eq!(ceilings.exceeded(counted, 8).map(|it| it.most), Some(7));
            let others = Counted::ALL.into_iter().filter(|it| *it != counted);
            for other in others {
                assert_eq!(ceilings.most(other), Ceilings::default().most(other));
            }
        }
        for (text, error) in [
            ("clusters", CeilingError::Form),
            ("cluster=5", CeilingError::Name),
            ("clusters=0", CeilingError::Number),
            ("clusters=-1", CeilingError::Number),
            ("clusters=1e3", CeilingError::Number),
        ] {
            assert_eq!(text.parse::<Ceiling>(), Err(error));
        }
    }
}
