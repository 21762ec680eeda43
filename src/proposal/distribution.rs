//! The distribution of a cluster, by which its range of Services is known.

use crate::mesh::{Distribution, K3S};
use crate::net::Cidr;
use crate::snapshot::Snapshot;

/// The label in which k3s and RKE2 write their own name, unless a cloud provider writes the type of the machine.
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// Returns the distribution that more than half of the nodes name, else the one that has these pods by default.
pub fn distribution(
    snapshot: &Snapshot,
    pods: impl IntoIterator<Item = Cidr>,
) -> Option<Distribution> {
    let names = snapshot.nodes.iter().filter_map(|it| it.labels.get(INSTANCE_TYPE));
    let is_k3s =
        snapshot.nodes.len() < 2 * names.filter(|it| matches!(*it, "k3s" | "rke2")).count();
    is_k3s.then_some(K3S).or_else(|| pods.into_iter().find_map(Distribution::with_pods))
}
