//! Changes of Peers that have nothing to do with each other, so that no order of them matters.

use super::peer_differences::PeerDifferences;
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, SiteId};
use crate::agent::peers::has_same_routes;

/// Returns whether nothing of any Peer of a target that changes depends on another Peer: each keeps its key
/// and its ranges, and no other has them or leads to its segment.
pub(super) fn are_independent(peers: &PeerDifferences, target: SiteId, fabric: &Fabric) -> bool {
    let model = &peers.after.model;
    if !model.contests.is_empty() || !model.tunnels.are_unique() {
        return false;
    }
    let have_same_routes = peers.have_same_routes();
    let mut segments = Vec::with_capacity(peers.pairs.len());
    for pair in &peers.pairs {
        let Pair::Changed { before, after } = *pair else {
            return false;
        };
        let new = &model.peers[after];
        let keeps_all = new.share().is_some_and(|it| it.lost().is_empty());
        let old = || &peers.now.model.peers[before];
        let has_same_routes = || have_same_routes || has_same_routes(old().applied, new.applied);
        if !keeps_all || !has_same_routes() {
            return false;
        }
        match fabric.holding(target, after) {
            Holding::Nobody => {}
            Holding::One(at) => {
                let segment = fabric.site(at.site).segment(at.node);
                segments.extend(segment.map(|it| (at.site, it)));
            }
            Holding::Many => return false,
        }
    }
    segments.sort_unstable();
    segments.windows(2).all(|pair| match pair {
        [one, other] => one != other,
        _ => true,
    })
}
