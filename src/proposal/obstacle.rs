//! Obstacles: what keeps clusters from being joined.

use thiserror::Error;

use super::ranges::RangeProblem;
use crate::name::ClusterName;
use crate::net::Cidr;

/// A reason for which clusters cannot be joined.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Obstacle {
    /// A cluster whose ranges are unknown.
    #[error("{problem}")]
    Range {
        /// The cluster.
        cluster: ClusterName,
        /// The problem.
        problem: RangeProblem,
    },
    /// Two ranges with common addresses.
    #[error("{moves} overlaps {stays}")]
    Overlap {
        /// The range that is easier to change.
        moves: RangeUse,
        /// The other one.
        stays: RangeUse,
        /// A range for the first that no cluster uses.
        free: Option<Cidr>,
    },
    /// A value that no mesh accepts.
    #[error("no valid mesh can be proposed: {0}")]
    Refused(String),
}

/// A range of a cluster and its use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RangeUse {
    /// The cluster.
    pub cluster: ClusterName,
    /// The range.
    pub cidr: Cidr,
    /// The addresses in it.
    pub purpose: RangePurpose,
}

/// The addresses in a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RangePurpose {
    /// The addresses of pods.
    Pods,
    /// The WireGuard addresses of nodes.
    Wireguard,
    /// Addresses of Services, of other networks, or of several kinds, as a mesh declares them.
    Declared,
}

impl Obstacle {
    /// Returns the cluster that is to be changed.
    pub fn cluster(&self) -> Option<&ClusterName> {
        match self {
            Self::Range { cluster, .. } => Some(cluster),
            Self::Overlap { moves, .. } => Some(&moves.cluster),
            Self::Refused(_) => None,
        }
    }

    /// Returns what to do.
    pub fn help(&self) -> String {
        match self {
            Self::Range { problem, .. } => problem.help().to_owned(),
            Self::Overlap { moves, free, .. } => {
                let (cluster, range) =
                    (&moves.cluster, free.map_or_else(String::new, |it| format!(", such as {it}")));
                if moves.purpose == RangePurpose::Wireguard {
                    format!(
                        "start Kilo in `{cluster}` with a `--subnet` that no other cluster uses{range}; \
                         then run `clustermesh init` again"
                    )
                } else {
                    format!(
                        "clusters with common pod addresses cannot be joined: rebuild `{cluster}` with a \
                         `--cluster-cidr` that no other cluster uses{range}"
                    )
                }
            }
            Self::Refused(_) => {
                "write mesh.yaml by hand; `clustermesh init` without `--context` and \
                                 `--from` writes an example"
                    .to_owned()
            }
        }
    }
}

impl std::fmt::Display for RangeUse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let used = match self.purpose {
            RangePurpose::Pods => "pod range",
            RangePurpose::Wireguard => "WireGuard range",
            RangePurpose::Declared => "declared range",
        };
        write!(formatter, "the {used} {} of `{}`", self.cidr, self.cluster)
    }
}
