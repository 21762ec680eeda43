//! Alike models: two versions of a cluster whose Peers differ only in what no table depends on, such as
//! endpoints. Such versions share the tables of the first.

use std::sync::Arc;

use super::Model;
use super::claims::claims_of_segment;
use crate::agent::applied::AppliedFile;
use crate::agent::peers::AppliedPeers;
use crate::kilo::topology::KiloTopology;

impl<'a> Model<'a> {
    /// Builds what the Kilo of a cluster builds from the Peers of these files. `other` is another version
    /// of the cluster, in which no contest is taken as won.
    pub fn like(other: &Model, topology: &Arc<KiloTopology>, files: &'a [AppliedFile]) -> Self {
        Self::sharing(other, topology, files).unwrap_or_else(|| Self::new(topology, files))
    }

    /// Builds the same with other nodes.
    #[must_use]
    pub fn with_nodes(&self, topology: &Arc<KiloTopology>) -> Self {
        self.with_alike_nodes(topology).unwrap_or_else(|| self.clone().formed(topology))
    }

    /// Builds the same with the nodes of another version. It shares the tables of one of the two, if
    /// they are the same.
    #[must_use]
    pub fn with_nodes_of(
        &self,
        other: &Model,
        topology: &Arc<KiloTopology>,
        files: &'a [AppliedFile],
    ) -> Self {
        self.with_alike_nodes(topology)
            .or_else(|| Self::sharing(other, topology, files))
            .unwrap_or_else(|| self.clone().formed(topology))
    }

    fn with_alike_nodes(&self, topology: &Arc<KiloTopology>) -> Option<Self> {
        let is_same =
            !topology.has_location_ranges() && have_same_segments(&self.topology, topology);
        is_same.then(|| Self { topology: Arc::clone(topology), ..self.clone() })
    }

    /// Returns whether it has the Peers of another version with their keys, in the same order.
    pub fn has_keys_of(&self, other: &Model) -> bool {
        Arc::ptr_eq(&self.by_key, &other.by_key)
    }

    /// Returns whether it shares the tables of another version. Then both have the same Peers, but for
    /// endpoints and keepalives.
    pub fn has_tables_of(&self, other: &Model) -> bool {
        Arc::ptr_eq(&self.tunnels, &other.tunnels)
    }

    /// Builds it with the tables of the other version, if they are the same.
    fn sharing(
        other: &Model,
        topology: &Arc<KiloTopology>,
        files: &'a [AppliedFile],
    ) -> Option<Self> {
        if topology.has_location_ranges() || !have_same_segments(&other.topology, topology) {
            return None;
        }
        Some(Self {
            topology: Arc::clone(topology),
            peers: Arc::new(AppliedPeers::like(&other.peers, files)?),
            contests: other.contests.clone(),
            stoppers: other.stoppers.clone(),
            tunnels: Arc::clone(&other.tunnels),
            by_key: Arc::clone(&other.by_key),
            by_range: Arc::clone(&other.by_range),
            shared_keys: other.shared_keys.clone(),
        })
    }
}

/// Returns whether the segments of two versions claim the same ranges and have the same keys.
fn have_same_segments(one: &Arc<KiloTopology>, other: &Arc<KiloTopology>) -> bool {
    if Arc::ptr_eq(one, other) {
        return true;
    }
    let claims = |topology: &KiloTopology| {
        let segments = topology.segments.numbered();
        let claims = segments.flat_map(|(id, it)| claims_of_segment(id, it));
        claims.collect::<Vec<_>>()
    };
    let keys = |topology: &KiloTopology| {
        topology.segments.ids().map(|it| topology.leader(it).kilo.key).collect::<Vec<_>>()
    };
    one.is_exhausted == other.is_exhausted
        && keys(one) == keys(other)
        && claims(one) == claims(other)
}
