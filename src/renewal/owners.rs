//! Owners: which cluster a node is of, to tell when two names lead to one cluster.

use std::collections::BTreeMap;

use crate::name::ClusterName;
use crate::snapshot::Snapshot;

/// Which cluster a node object is of, by its uid. Of two that claim one, the first in the order of
/// trust is believed: what a cluster claims must not keep those before it from anything.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    order: Vec<ClusterName>,
    owned: BTreeMap<String, usize>,
}

/// A cluster with the same nodes: perhaps two contexts lead to one cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Twin {
    /// The other cluster.
    pub cluster: ClusterName,
    /// A node that both have.
    pub node: String,
}

impl Owners {
    /// Returns that nobody owns anything yet, of clusters in the order of trust.
    pub fn new(order: Vec<ClusterName>) -> Self {
        Self {
            order,
            owned: BTreeMap::new(),
        }
    }

    /// Notes that nodes of these uids are said to be of `cluster`.
    pub fn add(&mut self, cluster: &ClusterName, uids: Vec<String>) {
        let rank = self.rank(cluster);
        for uid in uids {
            let owner = self.owned.entry(uid).or_insert(rank);
            *owner = rank.min(*owner);
        }
    }

    fn rank(&self, cluster: &ClusterName) -> usize {
        let position = self.order.iter().position(|it| it == cluster);
        position.unwrap_or(self.order.len())
    }

    /// Returns whether a snapshot has a node of a cluster that ranks before: a uid is given once.
    pub(super) fn twin(&self, snapshot: &Snapshot) -> Option<Twin> {
        let rank = self.rank(&snapshot.cluster);
        snapshot.nodes.iter().find_map(|node| {
            let owner = *self.owned.get(&node.uid)?;
            let cluster = self.order.get(owner).filter(|_| owner < rank)?;
            Some(Twin {
                cluster: cluster.clone(),
                node: node.name.clone(),
            })
        })
    }
}
