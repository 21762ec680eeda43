//! External peers as clusters of one node, which is what their Peers and their own WireGuard look like.

use std::sync::Arc;

use super::SnapshotFile;
use crate::kilo::node::annotation;
use crate::mesh::{ExternalPeer, Mesh};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::snapshot::{Node, Snapshot};
use crate::string_map::StringMap;
use crate::wireguard::text_of_key;

/// Returns a snapshot with one node for each external peer, derived from the mesh alone.
pub fn external_snapshots(meshes: &[Mesh]) -> impl Iterator<Item = (ClusterName, SnapshotFile)> {
    meshes.iter().flat_map(|it| &it.externals).map(|it| {
        let snapshot = Snapshot {
            cluster: it.entry.name.clone(),
            dropped_labels: Vec::new(),
            kept_labels: Vec::new(),
            nodes: vec![node(it)],
        };
        let file = SnapshotFile {
            snapshot: Arc::new(snapshot),
            source: Arc::clone(&it.entry.place.source),
        };
        (it.entry.name.clone(), file)
    })
}

/// Returns its only node. It has a range of each family as its own, as a node has pod CIDRs, and carries the others.
fn node(external: &ExternalPeer) -> Node {
    let name = external.entry.name.external().unwrap_or_default();
    let mut own: Vec<Cidr> = Vec::new();
    for range in external.entry.networks.all() {
        if own.iter().all(|it| it.family() != range.cidr.family()) {
            own.push(range.cidr);
        }
    }
    let mut annotations = StringMap::default();
    let mut annotate = |key: &str, value: &str| annotations.insert(key, value);
    annotate(annotation::KEY, &text_of_key(external.key.as_bytes()));
    annotate(annotation::GRANULARITY, "full");
    annotate(annotation::FORCE_INTERNAL_IP, "-");
    // `clustermesh wireguard` writes a keepalive for each of its Peers.
    annotate(annotation::PERSISTENT_KEEPALIVE, "25");
    match &external.endpoint {
        Some(endpoint) => annotate(annotation::FORCE_ENDPOINT, &endpoint.to_string()),
        // The host must dial first. No host has such a name (RFC 2606).
        None => annotate(annotation::ENDPOINT, &format!("{name}.invalid:51820")),
    }
    Node {
        annotations,
        name: name.to_owned(),
        pod_cidrs: own.iter().map(ToString::to_string).collect(),
        ..Node::default()
    }
}
