//! Pauses: nodes that forget their sessions when Kilo writes all of WireGuard, and that have nothing of their own to send
//! (`kilo.md` §2.10).

use super::passage::Passage;
use super::peer_change::{ChangedPeer, Difference, PeerChange, PeerChangeKind};
use crate::agent::model::Model;
use crate::kilo::id::SegmentId;

/// Returns the names of the nodes of a target at which traffic pauses: those that lead a segment, perhaps, send no
/// keepalives, and had a tunnel before.
pub(super) fn pausing(passage: &Passage, changes: &[PeerChange]) -> Vec<String> {
    if !changes.iter().any(|it| rewrites(&it.peer)) {
        return Vec::new();
    }
    let (now, after) = (&passage.peers.now.model, &passage.peers.after.model);
    let topology = &after.topology;
    let had_peers = now.peers.ids().any(|it| now.share(it).is_some());
    let segments = topology.segments.ids();
    let segments = segments.filter(|it| had_peers || has_others(*it, after));
    let leaders = segments.flat_map(|it| topology.possible_leaders(it));
    let silent = leaders.filter(|it| topology.nodes[*it].kilo.keepalive == 0);
    let names = silent.map(|it| topology.nodes[it].kilo.name.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns whether Kilo writes all of WireGuard again for a change. It does not write the keepalive of a Peer there.
pub(super) fn rewrites(peer: &ChangedPeer) -> bool {
    let is_keepalive = |it: &Difference| matches!(it, Difference::Keepalive { .. });
    match &peer.kind {
        PeerChangeKind::Changed(differences) => !differences.iter().all(is_keepalive),
        PeerChangeKind::Added { .. } | PeerChangeKind::Removed { .. } => true,
    }
}

/// Returns whether a segment has a tunnel to another one of its cluster.
fn has_others(segment: SegmentId, model: &Model) -> bool {
    let mut others = model.topology.segments.ids();
    others.any(|it| !model.topology.are_one(segment, it))
}
