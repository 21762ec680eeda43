//! The cost of a guard: what an API server spends on one Peer before it gives up.

use super::{Guard, PeerForm};

/// The cost at which an API server refuses a Peer instead of judging it (`PerCallLimit` in
/// `k8s.io/apiserver/pkg/apis/cel`).
pub const MOST_COST: usize = 1_000_000;

/// The cost of a Peer in the expression that costs most: each allowed IP is compared with each range of its source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cost {
    /// The cost of the expression.
    pub cost: usize,
    /// The number of allowed IPs of the Peer.
    pub allowed_ips: usize,
    /// The number of accepted ranges of its source.
    pub ranges: usize,
}

impl Cost {
    /// Returns the cost of a Peer.
    pub fn of(guard: &Guard, form: &PeerForm) -> Self {
        let key = form.key();
        let ranges = guard.declared.sources.get(&key).map_or(0, Vec::len);
        Self::new(form.ranges.len(), ranges)
    }

    fn new(allowed_ips: usize, ranges: usize) -> Self {
        Self {
            cost: allowed_ips * (PER_ALLOWED_IP + PER_COMPARISON * ranges),
            allowed_ips,
            ranges,
        }
    }
}

/// The measured cost of an allowed IP, and of its comparison with an IPv6 range, which costs more than with an IPv4
/// range. `tests/cluster` holds both against the API server.
const PER_ALLOWED_IP: usize = 30;
const PER_COMPARISON: usize = 9;
