//! Disputed ranges: those of a cluster's tunnels that are not, for certain, of one segment of its own.

use super::uncovered::are_of_one_segment;
use crate::agent::fabric::Site;
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::net::prefixes::{Prefixes, Span};

/// The ranges that a Peer has, or that no segment has for certain.
///
/// Ground is separate: regardless of the cluster's own ranges there, packets to it leave on no
/// node, and packets from it are accepted on no node.
#[derive(Debug)]
pub(super) struct Disputed<'s> {
    tunnels: &'s Prefixes<TunnelClaim>,
    /// The ranges of tunnels that are of one segment for certain. There are few of them.
    undisputed: Prefixes<()>,
    /// Whether keys are shared, so that no range is any segment's for certain.
    is_everything: bool,
}

impl<'s> Disputed<'s> {
    pub(super) fn find(site: &'s Site) -> Self {
        let tunnels = &site.model.tunnels;
        let segments = site.model.topology.segments.ids();
        let ranges = segments.flat_map(|it| site.model.ranges(Tunnel::Segment(it)));
        let undisputed = ranges.filter(|range| {
            let slot = tunnels.exactly(*range);
            slot.is_some_and(|it| are_of_one_segment(tunnels.at(it).1))
        });
        let undisputed: Vec<_> = undisputed.map(|range| (range, ())).collect();
        Self {
            tunnels,
            undisputed: Prefixes::new(&undisputed),
            is_everything: site.model.has_shared_keys(),
        }
    }

    /// Returns whether any address of `span` is in one of them.
    pub(super) fn meets(&self, span: Span) -> bool {
        // More ranges than those of segments.
        self.is_everything
            || self.undisputed.within(span).len() < self.tunnels.within(span).len()
            || self.undisputed.around(span).count() < self.tunnels.around(span).count()
    }
}
