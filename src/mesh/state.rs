//! States: whether a cluster exchanges Peers with those that its mesh links it to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a cluster exchanges Peers with the clusters that it is linked to.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum State {
    /// The cluster exchanges Peers.
    #[default]
    Joined,
    /// The cluster does not exchange Peers yet. Its entry and its nodes are checked, and its ranges
    /// are reserved.
    Joining,
    /// The cluster no longer exchanges Peers. Its ranges stay reserved, and its empty folder makes
    /// GitOps delete the Peers that it still has.
    Leaving,
}

/// The state of a link of a topology, given by the states of both ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Link {
    /// Both ends exchange Peers.
    Exchange,
    /// An end is still joining, so there are no Peers yet.
    Planned,
    /// An end is leaving, so their Peers are removed.
    Ended,
}

impl Link {
    /// Returns the state of a link between clusters of these states.
    pub fn new(one: State, other: State) -> Self {
        match (one, other) {
            (State::Leaving, _) | (_, State::Leaving) => Self::Ended,
            (State::Joining, _) | (_, State::Joining) => Self::Planned,
            (State::Joined, State::Joined) => Self::Exchange,
        }
    }
}
