//! Obstacles: reasons why an outage is not examined.

use schemars::JsonSchema;
use serde::Serialize;

/// The reason why it is not known what an outage does.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[schemars(rename = "Obstacle")]
#[serde(rename_all = "lowercase")]
pub enum OutageObstacle {
    // They report different granularities, and those that are left do not have the majority that all of them have.
    /// Without these nodes, the granularity of the cluster is uncertain.
    Granularity,
    // Paths may depend on them.
    /// The snapshot does not show how Kilo numbers the WireGuard addresses of the cluster.
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
