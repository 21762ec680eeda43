//! Silent leaders: nodes with tunnels that send no keepalives. Traffic through them pauses when Peers change (`kilo.md`
//! §2.10).

use std::collections::BTreeSet;

use crate::fleet::{Fleet, Member};
use crate::mesh::State;
use crate::name::ClusterName;

/// The silent leaders of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SilentLeaders<'f> {
    pub(super) cluster: &'f ClusterName,
    /// Their names.
    pub(super) nodes: BTreeSet<&'f str>,
    /// All nodes of the cluster that send no keepalives, as each may lead later.
    pub(super) silent: Vec<&'f str>,
}

impl<'f> SilentLeaders<'f> {
    /// Returns those of all clusters that get Peers, or will when they have joined, in order of name.
    pub(super) fn all(fleet: &'f Fleet) -> Vec<Self> {
        let members = fleet.clusters().filter_map(|it| {
            let mut members = fleet.memberships(it);
            members.find(|it| has_partners(it))
        });
        let found = members.map(Self::of);
        found.filter(|it| !it.nodes.is_empty()).collect()
    }

    fn of(member: &'f Member) -> Self {
        let topology = &member.cluster.topology;
        let leaders = topology.all_possible_leaders();
        let silent = leaders.filter(|it| topology.nodes[*it].kilo.keepalive == 0);
        let all = member.cluster.nodes.iter();
        let all = all.filter(|it| it.kilo.keepalive == 0);
        Self {
            cluster: &member.entry.name,
            silent: all.map(|it| it.node.name.as_str()).collect(),
            nodes: silent.map(|it| topology.nodes[it].kilo.name.as_str()).collect(),
        }
    }
}

/// Returns whether a cluster exchanges Peers with another one, or will when both have joined.
fn has_partners(member: &Member) -> bool {
    let own = member.entry;
    member.mesh.entries.iter().any(|it| {
        it.name != own.name && it.state != State::Leaving && member.mesh.link(own, it).is_some()
    })
}
