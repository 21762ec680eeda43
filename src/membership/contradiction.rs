//! Contradictions: what a person wrote and more than half of the nodes deny.

use super::{Contradicted, Contradiction, ExcludedReason};
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::location_label::rivals;
use crate::mesh::{Networks, WireguardAddresses};
use crate::place::Place;

/// Returns the lines of an entry that more than half of its nodes contradict.
pub(super) fn contradictions(cluster: &Cluster) -> Vec<Contradiction> {
    let entry = cluster.entry;
    let selected: Vec<&ClusterNode> =
        cluster.nodes.iter().filter(|it| entry.selector.matches(&it.node.labels)).collect();
    let place = &entry.place;
    let (pods, wireguard) = match &entry.networks {
        Networks::Typed { .. } => (place.key("podCIDRs"), place.key("wireguardCIDR")),
        Networks::Flat { .. } => {
            let allowed = place.key("allowedNetworks");
            (allowed.clone(), allowed)
        }
    };
    let mut found = vec![pod_ranges(&selected, pods)];
    if entry.advertise.wireguard != WireguardAddresses::None {
        found.push(wireguard_range(&selected, wireguard));
    }
    found.push(granularity(cluster));
    found.push(topology_label(cluster));
    found.push(node_selector(cluster, &selected));
    found.into_iter().flatten().collect()
}

fn pod_ranges(nodes: &[&ClusterNode], place: Place) -> Option<Contradiction> {
    let is_outside = |it: &&&ClusterNode| {
        matches!(it.checked.pods, Err(ExcludedReason::PodCidrOutOfRange { .. }))
    };
    let outside = nodes.iter().filter(is_outside).count();
    contradiction(Contradicted::PodRanges, place, outside, nodes.len())
}

/// Only leaders have a `WireGuard` address, so only those are counted that have.
fn wireguard_range(nodes: &[&ClusterNode], place: Place) -> Option<Contradiction> {
    let having = nodes.iter().filter(|it| it.kilo.has_wireguard_ip()).count();
    let is_outside = |it: &&&ClusterNode| {
        matches!(it.checked.wireguard, Err(ExcludedReason::WireguardIpOutOfRange { .. }))
    };
    let outside = nodes.iter().filter(is_outside).count();
    contradiction(Contradicted::WireguardRange, place, outside, having)
}

/// A node that reports nothing contradicts nothing: Kilo 0.7 does not know `cross`.
fn granularity(cluster: &Cluster) -> Option<Contradiction> {
    let declared = cluster.entry.granularity?;
    let voters = cluster.voters();
    let says = voters.iter().filter_map(|it| it.kilo.granularity);
    let against = says.filter(|it| *it != declared).count();
    let place = cluster.entry.field("granularity");
    let what = Contradicted::Granularity(declared);
    contradiction(what, place, against, voters.len())
}

/// More leaders in one location than Kilo elects show that it forms locations by another label.
fn topology_label(cluster: &Cluster) -> Option<Contradiction> {
    let against = rivals(cluster).len();
    (0 < against).then(|| Contradiction {
        what: Contradicted::TopologyLabel,
        place: cluster.entry.field("topologyLabel"),
        against,
        of: cluster.nodes.len(),
    })
}

fn node_selector(cluster: &Cluster, selected: &[&ClusterNode]) -> Option<Contradiction> {
    if !selected.is_empty() {
        return None;
    }
    let place = cluster.entry.field("nodeSelector");
    let all = cluster.nodes.len();
    contradiction(Contradicted::NodeSelector, place, all, all)
}

fn contradiction(
    what: Contradicted,
    place: Place,
    against: usize,
    of: usize,
) -> Option<Contradiction> {
    (of < 2 * against).then_some(Contradiction { what, place, against, of })
}
