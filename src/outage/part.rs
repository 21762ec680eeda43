//! Parts: what of a fleet can be lost together.

use std::collections::{BTreeMap, BTreeSet};

use super::lost_nodes::LostNodes;
use crate::agent::fabric::{Fabric, NodeRef, SiteId};
use crate::kilo::id::NodeId;
use crate::net::Cidr;

/// A part of a fleet.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FleetPart {
    /// A node.
    Node(NodeRef),
    /// The nodes of a cluster in one location.
    Location(SiteId, String),
    /// A cluster.
    Cluster(SiteId),
    /// The nodes of all clusters with an address in a range: their internal addresses, those that Kubernetes has, and
    /// their endpoints.
    Range(Cidr),
}

impl FleetPart {
    /// Returns its nodes.
    pub fn nodes(&self, fabric: &Fabric) -> LostNodes {
        let all_of = |site: SiteId| {
            fabric.site(site).reading.nodes.ids().map(move |node| NodeRef { site, node })
        };
        match self {
            Self::Node(at) => LostNodes::from_iter([*at]),
            Self::Location(site, location) => {
                all_of(*site).filter(|it| fabric.node(*it).kilo.location == *location).collect()
            }
            Self::Cluster(site) => all_of(*site).collect(),
            Self::Range(range) => {
                let sites = fabric.sites.ids().flat_map(all_of);
                let is_inside = |at: &NodeRef| {
                    let node = &fabric.site(at.site).reading.nodes[at.node];
                    node.endpoints().any(|it| range.holds(it.0))
                };
                sites.filter(is_inside).collect()
            }
        }
    }

    /// Returns the name by which people select it.
    pub fn name(&self, fabric: &Fabric) -> String {
        match self {
            Self::Node(at) => fabric.name(*at),
            Self::Location(site, location) => format!("{}:{location}", fabric.site(*site).cluster),
            Self::Cluster(site) => fabric.site(*site).cluster.to_string(),
            Self::Range(range) => range.to_string(),
        }
    }
}

/// Returns every single node, location and cluster whose nodes Kilo counts. A location with a single node is that node,
/// and the only location of a cluster is the cluster. The loss of an external peer ends no path of others.
pub fn single_parts(fabric: &Fabric) -> Vec<FleetPart> {
    let mut parts = Vec::new();
    let sites = fabric.sites.numbered();
    for (site, it) in sites.filter(|it| !it.1.cluster.is_external()) {
        let counted = it.model.topology.nodes.numbered().filter(|it| it.1.segment.is_some());
        let mut locations: BTreeMap<&str, BTreeSet<NodeId>> = BTreeMap::new();
        let mut count = 0;
        for (node, own) in counted {
            parts.push(FleetPart::Node(NodeRef { site, node }));
            locations.entry(&own.kilo.location).or_default().insert(node);
            count += 1;
        }
        let several = locations.iter().filter(|it| 1 < it.1.len() && it.1.len() < count);
        parts
            .extend(several.map(|(location, _)| FleetPart::Location(site, (*location).to_owned())));
        parts.extend((0 < count).then_some(FleetPart::Cluster(site)));
    }
    parts
}
