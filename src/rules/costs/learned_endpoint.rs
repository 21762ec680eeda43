//! Learned endpoints: nodes behind NAT that others know only by the address from which they are seen, and may forget
//! (`kilo.md` §2.9).

use std::collections::BTreeSet;

use crate::fleet::{Fleet, Member};
use crate::kilo::seen::PUBLISHING;
use crate::name::ClusterName;

/// Nodes of a cluster that others may forget.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LearnedEndpoints<'f> {
    pub(super) cluster: &'f ClusterName,
    /// The names of the nodes.
    pub(super) nodes: BTreeSet<&'f str>,
    /// The clusters that may forget them.
    pub(super) targets: BTreeSet<&'f ClusterName>,
    /// Those of them that have too few nodes which can be dialled, so that no annotation helps.
    pub(super) small_targets: BTreeSet<&'f ClusterName>,
}

impl<'f> LearnedEndpoints<'f> {
    /// Returns those of all clusters, in order of name.
    pub(super) fn all(fleet: &'f Fleet) -> Vec<Self> {
        let found = fleet.clusters().map(|it| Self::of(it, fleet));
        let are_any = |it: &Self| !it.nodes.is_empty() && !it.targets.is_empty();
        found.filter(are_any).collect()
    }

    fn of(cluster: &'f ClusterName, fleet: &'f Fleet) -> Self {
        let mut found = Self {
            cluster,
            nodes: BTreeSet::new(),
            targets: BTreeSet::new(),
            small_targets: BTreeSet::new(),
        };
        for member in fleet.memberships(cluster) {
            let candidates = member.membership.candidates.iter();
            let hidden = candidates.filter(|it| it.endpoint.is_none());
            found.nodes.extend(hidden.map(|it| it.leader.as_str()));
            let targets = member.targets();
            for target in targets.filter_map(|it| fleet.memberships(it).next()) {
                let dialled = DialledLeaders::of(target);
                if dialled.forget() {
                    found.targets.insert(&target.entry.name);
                }
                if dialled.forget() && dialled.all < PUBLISHING {
                    found.small_targets.insert(&target.entry.name);
                }
            }
        }
        found
    }
}

/// The numbers of leaders of a cluster that others can dial.
struct DialledLeaders {
    all: usize,
    /// Those that send keepalives.
    sending: usize,
}

impl DialledLeaders {
    fn of(target: &Member) -> Self {
        let candidates = target.membership.candidates.iter();
        let dialled = candidates.filter(|it| it.endpoint.is_some());
        let sends = |name: &str| {
            let node = target.cluster.node(name);
            node.is_some_and(|it| 0 < it.kilo.keepalive)
        };
        Self {
            all: dialled.clone().count(),
            sending: dialled.filter(|it| sends(it.leader.as_str())).count(),
        }
    }

    /// Returns whether they may forget an address that none of them publishes.
    fn forget(&self) -> bool {
        0 < self.all && self.sending < PUBLISHING
    }
}
