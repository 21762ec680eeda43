//! Participation: which nodes others have a Peer for, or could have one.

use super::{Fabric, NodeRef, Site};
use crate::kilo::id::NodeId;
use crate::kilo::node::annotation;
use crate::kilo::topology::Leader;
use crate::mesh::{EndpointSource, WireguardAddresses};
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::PublicKey;

impl Fabric<'_> {
    /// Returns whether a node takes part in a mesh: a cluster has a Peer for its segment, or could
    /// have one.
    pub fn takes_part(&self, at: NodeRef) -> bool {
        let site = self.site(at.site);
        let leader = site.node(at.node).segment.map(|it| site.leader(it));
        let Some(Leader::Certain(leader)) = leader else {
            return false;
        };
        let node = site.snapshot_of(at.node);
        if !site.entry.selector.matches(&node.labels) {
            return false;
        }
        let Some(key) = site.node(leader).kilo.key else {
            return false;
        };
        self.sites.iter().any(|it| !it.model.peers_with(&key).is_empty())
            || speaks(site, leader)
                && self.holders(&key).len() == 1
                && PublicKey::try_from(key).is_ok()
    }
}

/// Returns whether a leader has what a Peer needs: a WireGuard address that was declared, if its cluster advertises them,
/// and an endpoint where its cluster looks for one.
fn speaks(site: &Site, leader: NodeId) -> bool {
    let (own, node) = (site.node(leader), site.snapshot_of(leader));
    let is_declared = own.kilo.wireguard_ip().is_some_and(|announced| {
        site.entry.networks.all().into_iter().any(|range| range.cidr.holds(announced.address))
    });
    let mut sources = site.entry.endpoint_from.iter();
    (is_declared || site.entry.advertise.wireguard == WireguardAddresses::None)
        && (site.entry.keepalive.is_some() || sources.any(|source| has_endpoint(node, *source)))
}

fn has_endpoint(node: &Node, source: EndpointSource) -> bool {
    let says = |key: &str| node.annotations.contains_key(key);
    let has = |kind| node.addresses.iter().any(|it| it.kind == kind);
    match source {
        EndpointSource::Annotation => {
            says(annotation::CLUSTERMESH_ENDPOINT) || says(annotation::FORCE_ENDPOINT)
        }
        EndpointSource::ExternalIP => has(AddressKind::ExternalIP),
        EndpointSource::InternalIP => has(AddressKind::InternalIP),
        EndpointSource::Kilo => says(annotation::ENDPOINT),
    }
}
