//! Linked Peers: those that lead to a node of a cluster with which Peers are exchanged.

use super::links::MeshLinks;
use crate::agent::fabric::{Fabric, Holding, NodeRef, SiteId};
use crate::agent::peers::{PeerId, PeerShare};

/// A Peer of a cluster that leads to a node of a cluster which it exchanges Peers with.
#[derive(Clone, Copy)]
pub(super) struct LinkedPeer<'f> {
    /// The number of the Peer.
    pub(super) id: PeerId,
    /// The part of it that Kilo keeps.
    pub(super) share: &'f PeerShare<'f>,
    /// The only node that has its key.
    pub(super) at: NodeRef,
}

/// Returns the linked Peers of a cluster.
pub(super) fn linked_peers<'f>(
    fabric: &'f Fabric,
    viewer: SiteId,
    links: &'f MeshLinks,
) -> impl Iterator<Item = LinkedPeer<'f>> {
    let peers = fabric.site(viewer).model.peers.numbered();
    peers.filter_map(move |(id, peer)| {
        let share = peer.share()?;
        let Holding::One(at) = fabric.holding(viewer, id) else {
            return None;
        };
        // Between others, packets that arrive are found among the pairs.
        let is_linked = at.site != viewer && links.exchange(viewer, at.site).is_some();
        is_linked.then_some(LinkedPeer { id, share, at })
    })
}
