//! Awake clusters: those with silent nodes, as if these sent heartbeats. `WireGuard` works on without an agent, so a former
//! leader keeps its tunnels.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Fabric, SiteId};
use crate::kilo::cluster::Cluster;
use crate::snapshot::Snapshot;

/// The snapshots of clusters with silent nodes, without the marks of these.
pub struct AwakeClusters(BTreeMap<SiteId, Snapshot>);

impl AwakeClusters {
    /// Finds these clusters.
    pub fn find(fabric: &Fabric) -> Self {
        let awake = fabric
            .sites
            .numbered()
            .filter(|(_, site)| site.reading.nodes.iter().any(|it| it.kilo.is_silent()))
            .map(|(number, site)| {
                let mut snapshot = site.reading.snapshot.clone();
                for node in &mut snapshot.nodes {
                    (node.stale, node.lost_lead) = (false, false);
                }
                (number, snapshot)
            });
        Self(awake.collect())
    }

    /// Returns whether no node is silent.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a fabric in which all that is open counts as up: these clusters, and every tunnel.
    pub fn open<'f, 'a: 'f>(&'f self, fabric: &Fabric<'a>) -> Fabric<'f> {
        let versions = self.0.iter().map(|(&number, snapshot)| {
            let site = fabric.site(number);
            (number, Arc::new(site.with_nodes(Cluster::new(site.entry, snapshot))))
        });
        fabric.with_versions(versions.collect()).with_open_tunnels()
    }
}
