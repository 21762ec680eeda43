//! Lost ranges: those that a target reached, and that no Peer gets instead.

use std::collections::BTreeSet;

use super::peer_change::{Difference, PeerChange, PeerChangeKind};
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};

/// Counts the ranges that Peers lose and that no Peer gains. Those of Peers without a known node, which count as
/// lost by themselves, are left out.
pub(super) fn lost_ranges(changes: &[PeerChange]) -> usize {
    let mut lost: BTreeSet<Cidr> = BTreeSet::new();
    let mut gained: Vec<Cidr> = Vec::new();
    let peers = changes.iter().map(|it| &it.peer);
    for peer in peers.filter(|it| !it.is_removed_stranger()) {
        match &peer.kind {
            PeerChangeKind::Removed { ranges, .. } => lost.extend(ranges),
            PeerChangeKind::Added { ranges, .. } => gained.extend(ranges),
            PeerChangeKind::Changed(_) => {}
        }
        for difference in peer.differences() {
            match difference {
                Difference::RangesLost(ranges) => lost.extend(ranges),
                Difference::RangesGained(ranges) => gained.extend(ranges),
                _ => {}
            }
        }
    }
    let gained: Vec<(Cidr, ())> = gained.into_iter().map(|it| (it, ())).collect();
    let gained = Prefixes::new(&gained);
    lost.retain(|it| gained.around(Span::new(*it)).next().is_none());
    lost.len()
}
