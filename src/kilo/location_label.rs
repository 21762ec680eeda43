//! Location labels: the labels by which Kilo can form locations.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::{Cluster, ClusterNode};
use super::node::annotation;
use crate::granularity::Granularity;

/// Labels that name where a node is. Kubernetes knows the first two by the last two names too, which
/// are older.
pub const LOCATION_LABELS: [&str; 4] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
];

/// Returns a well-known label, other than the declared one, by which each location of a cluster has one node with a
/// `WireGuard` address, as in Kilo.
pub fn fitting_label(cluster: &Cluster) -> Option<&'static str> {
    let counted = || {
        cluster.nodes.iter().filter(|it| it.kilo.is_ready() && it.kilo.internal_address().is_some())
    };
    LOCATION_LABELS.into_iter().find(|label| {
        let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
        for ClusterNode { node, kilo, .. } in counted() {
            let location =
                node.annotations.get(annotation::LOCATION).or_else(|| node.labels.get(label));
            *holders.entry(location.unwrap_or_default()).or_default() +=
                usize::from(kilo.has_wireguard_ip());
        }
        *label != cluster.entry.topology_label && holders.into_values().all(|it| it == 1)
    })
}

/// Returns the nodes of the first location by `topologyLabel` in which more have a `WireGuard` address than Kilo gives:
/// only the leader has one. None if they may be right.
///
/// A location by annotation does not depend on the mesh, and agents that report no granularity may form no
/// locations. Nodes with one address are the leaders before and after an election. Two addresses are not sufficient,
/// unless another label explains them.
pub fn rivals<'c, 'a>(cluster: &'c Cluster<'a>) -> Vec<&'c ClusterNode<'a>> {
    let granularity = Granularity::Location;
    if cluster.granularity != granularity || cluster.voted != Some(granularity) {
        return Vec::new();
    }
    let is_holder = |it: &&ClusterNode| {
        let is_counted = it.kilo.is_ready() && it.kilo.has_wireguard_ip();
        is_counted && !it.node.annotations.contains_key(annotation::LOCATION)
    };
    let mut holders = cluster.segments.formed.iter().map(|segment| {
        let members = segment.members.iter().map(|it| &cluster.nodes[*it]);
        // The next leader of a location gets the address of the last one.
        let mut addresses = BTreeSet::new();
        let is_other = |it: &&ClusterNode| addresses.insert(it.kilo.wireguard_ip());
        members.filter(is_holder).filter(is_other).collect::<Vec<_>>()
    });
    let rivals = holders.find(|it| 1 < it.len()).unwrap_or_default();
    let are_too_many = 2 < rivals.len() || fitting_label(cluster).is_some();
    if are_too_many { rivals } else { Vec::new() }
}
