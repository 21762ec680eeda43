//! The cost of a guard: what an API server spends on one Peer before it gives up.

use super::{Guard, PeerForm};
use crate::net::Family;

/// The cost at which an API server refuses a Peer instead of judging it (`PerCallLimit` in
/// `k8s.io/apiserver/pkg/apis/cel`).
pub const MOST_COST: usize = 1_000_000;

/// The cost of an allowed IP, without its comparisons. `tests/cluster` compares this cost and those of comparisons
/// with an API server.
const ALLOWED_IP: usize = 34;

/// The cost of the expression that costs most: each allowed IP of a Peer is compared with each range of its source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GuardCost {
    /// The cost of the expression.
    pub cost: usize,
    /// The number of allowed IPs of the Peer.
    pub allowed_ips: usize,
    /// The number of accepted ranges of its source.
    pub ranges: usize,
}

impl GuardCost {
    /// Returns the cost of a Peer.
    pub fn of(guard: &Guard, form: &PeerForm) -> Self {
        let ranges = guard.declared.sources.get(&form.key());
        let ranges = ranges.map_or(&[][..], Vec::as_slice);
        let comparisons = ranges.iter().map(|it| match it.family() {
            Family::V4 => 4,
            Family::V6 => 5,
        });
        let allowed_ips = form.ranges.len();
        Self {
            cost: allowed_ips * (ALLOWED_IP + comparisons.sum::<usize>()),
            allowed_ips,
            ranges: ranges.len(),
        }
    }
}
