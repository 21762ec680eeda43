//! Obstacles: reasons why an outage is not examined.

/// The reason why it is not known what an outage does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OutageObstacle {
    /// The nodes of a cluster report different granularities, and those that are left do not have the majority that
    /// all of them have.
    Granularity,
    /// It is not known how Kilo numbers the WireGuard addresses of a cluster, and paths may depend on them.
    Numbering,
    /// The proof takes too many steps.
    Steps,
}

impl OutageObstacle {
    /// Returns the reason as a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Granularity => "without these nodes, the granularity of the cluster is uncertain",
            Self::Numbering => {
                "the snapshot does not show how Kilo numbers the WireGuard addresses of the cluster"
            }
            Self::Steps => "the proof takes too many steps (raise `--ceiling steps`)",
        }
    }
}
