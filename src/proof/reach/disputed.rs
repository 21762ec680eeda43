//! Disputed ranges: those of a cluster's tunnels that are not, for certain, of one segment of its own.

use super::uncovered::are_of_one_segment;
use crate::agent::fabric::Site;
use crate::agent::model::TunnelClaim;
use crate::net::prefixes::{Prefixes, Span};

/// The ranges that a Peer has, or that no segment has for certain.
///
/// Ground is separate: regardless of the cluster's own ranges there, packets to it leave on no
/// node, and packets from it are accepted on no node.
#[derive(Debug)]
pub(super) struct Disputed<'s> {
    tunnels: &'s Prefixes<TunnelClaim>,
    /// Whether keys are shared, so that no range is any segment's for certain.
    is_everything: bool,
}

impl<'s> Disputed<'s> {
    pub(super) fn find(site: &'s Site) -> Self {
        Self { tunnels: &site.model.tunnels, is_everything: site.model.has_shared_keys() }
    }

    /// Returns whether any address of `span` is in one of them.
    pub(super) fn meets(&self, span: Span) -> bool {
        let mut meeting = self.tunnels.meeting(span);
        self.is_everything || meeting.any(|slot| !are_of_one_segment(self.tunnels.at(slot).1))
    }
}
