//! One cluster under two names, as its nodes show.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::ClusterName;
use crate::snapshot::{Node, Snapshot};

/// The nodes of several clusters, by their uids: Kubernetes gives each only once.
#[derive(Clone, Debug, Default)]
pub struct NodeUids(BTreeMap<ClusterName, BTreeMap<String, String>>);

/// The clusters of each node, by its UID: of hundreds of clusters, each is compared with all others.
#[derive(Debug, Default)]
pub struct NodeOwners(BTreeMap<String, Vec<ClusterName>>);

/// A cluster with a node of another: perhaps two contexts lead to one cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SameCluster {
    /// The later cluster in the order of trust: a claim is compared with those of the clusters
    /// after it.
    pub cluster: ClusterName,
    /// The other cluster.
    pub other: ClusterName,
    /// A node that both have, as the later cluster calls it.
    pub node: String,
}

/// Returns whether a cluster with this many nodes of another one is most likely that one.
pub fn are_most(shared: usize, of: usize) -> bool {
    of < 2 * shared
}

impl NodeUids {
    /// Sets the nodes of a cluster. A dump that was made by hand may have no uids, and is then not
    /// compared.
    pub fn set(&mut self, cluster: &ClusterName, nodes: &[Node]) {
        let named = nodes.iter().filter(|node| !node.uid.is_empty());
        let uids = named.map(|node| (node.uid.clone(), node.name.clone()));
        self.0.insert(cluster.clone(), uids.collect());
    }

    /// Returns the clusters of each node.
    pub fn owners(&self) -> NodeOwners {
        let mut owners = NodeOwners::default();
        for (cluster, uids) in &self.0 {
            for uid in uids.keys() {
                owners.0.entry(uid.clone()).or_default().push(cluster.clone());
            }
        }
        owners
    }

    /// Returns the twins in an order of trust, one for each two clusters. Clusters that are not in
    /// it come last.
    pub fn twins(&self, order: &[ClusterName]) -> Vec<SameCluster> {
        let mut owners: BTreeMap<&str, &ClusterName> = BTreeMap::new();
        let mut twins: Vec<SameCluster> = Vec::new();
        let ranked = order.iter().filter_map(|cluster| self.0.get_key_value(cluster));
        let others = self.0.iter().filter(|(cluster, _)| !order.contains(cluster));
        for (cluster, nodes) in ranked.chain(others) {
            for (uid, node) in nodes {
                let other = *owners.entry(uid).or_insert(cluster);
                let is_known = |it: &SameCluster| it.cluster == *cluster && it.other == *other;
                if other != cluster && !twins.iter().any(is_known) {
                    twins.push(SameCluster {
                        cluster: cluster.clone(),
                        other: other.clone(),
                        node: node.clone(),
                    });
                }
            }
        }
        twins
    }
}

impl NodeOwners {
    /// Returns the other cluster that has most nodes of a new snapshot. Those of the old one stay its own.
    pub fn of_most(&self, new: &Snapshot, old: Option<&Snapshot>) -> Option<SameCluster> {
        let own: BTreeSet<&str> =
            old.iter().flat_map(|it| &it.nodes).map(|it| it.uid.as_str()).collect();
        let mut shared: BTreeMap<&ClusterName, Vec<&str>> = BTreeMap::new();
        for node in new.nodes.iter().filter(|it| !own.contains(it.uid.as_str())) {
            let others = self.0.get(&node.uid).into_iter().flatten();
            for other in others.filter(|it| **it != new.cluster) {
                shared.entry(other).or_default().push(&node.name);
            }
        }
        let (other, nodes) = shared.into_iter().find(|it| are_most(it.1.len(), new.nodes.len()))?;
        Some(SameCluster {
            cluster: new.cluster.clone(),
            other: other.clone(),
            node: (*nodes.first()?).to_owned(),
        })
    }
}
