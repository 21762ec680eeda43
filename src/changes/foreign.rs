//! Foreign Peers: those of a cluster that belong to no mesh, and that no engine prunes.

use std::collections::BTreeSet;

use crate::agent::applied::{Applied, AppliedFile};
use crate::mesh::{Mesh, is_ours};

/// Returns the foreign Peers of a cluster that has some files and gets others; none if it has none. They
/// stay when the others arrive, so they belong to both versions.
///
/// A Peer with the key of one that arrives is not foreign. The new Peer replaces it, as it does the Peers
/// of `kgctl` and of the operator.
pub fn foreign_peers(
    has: &[AppliedFile],
    gets: &[AppliedFile],
    meshes: &[Mesh],
) -> Option<AppliedFile> {
    let known = gets.iter().flat_map(|it| &it.content.peers);
    let names: BTreeSet<&str> = known.clone().map(|it| it.name.as_str()).collect();
    let keys: BTreeSet<[u8; 32]> = known.filter_map(key).collect();
    let is_replaced = |peer: &Applied| {
        names.contains(peer.name.as_str()) || key(peer).is_some_and(|it| keys.contains(&it))
    };
    let foreign = has.iter().flat_map(|it| &it.content.peers).filter(|it| {
        // Engines prune what was rendered for a mesh that is not there any more.
        let is_ours = is_ours(&it.name, meshes) || it.claims.is_rendered;
        !is_replaced(it) && !is_ours
    });
    let foreign: Vec<_> = foreign.cloned().collect();
    let source = &has.first()?.source;
    (!foreign.is_empty()).then(|| AppliedFile::of_peers(source, foreign))
}

fn key(peer: &Applied) -> Option<[u8; 32]> {
    peer.spec.as_ref().ok().map(|it| it.key)
}
