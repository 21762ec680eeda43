//! Silent leaders: nodes with tunnels that send no keepalives. Traffic through them pauses when Peers change (`kilo.md`
//! §2.10).

use std::collections::BTreeSet;

use crate::config::Config;
use crate::fleet::{Fleet, Member};
use crate::mesh::State;
use crate::name::ClusterName;
use crate::rules::command::{annotate_all, annotate_keepalive};

/// The silent leaders of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SilentLeaders<'f> {
    pub(super) cluster: &'f ClusterName,
    /// Their names.
    pub(super) nodes: BTreeSet<&'f str>,
    /// All nodes of the cluster that send no keepalives, as each may lead later.
    pub(super) silent: Vec<&'f str>,
    /// Whether all nodes of the cluster send none, and some of them do not lead.
    are_all: bool,
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
        let all: Vec<&str> = all.map(|it| it.node.name.as_str()).collect();
        let nodes: BTreeSet<&str> =
            silent.map(|it| topology.nodes[it].kilo.name.as_str()).collect();
        Self {
            cluster: &member.entry.name,
            are_all: all.len() == member.cluster.nodes.len() && nodes.len() < all.len(),
            silent: all,
            nodes,
        }
    }

    /// Returns the command after which they send keepalives. Of a cluster without any annotation, all nodes are annotated, as
    /// each may lead later.
    pub(super) fn command(&self, config: &Config) -> String {
        let kubectl = config.kubectl(self.cluster);
        let command = if self.are_all {
            annotate_all(&kubectl)
        } else {
            annotate_keepalive(&kubectl, self.nodes.iter().copied())
        };
        format!("`{command}`")
    }
}

/// Returns whether a cluster exchanges Peers with another one, or will when both have joined.
fn has_partners(member: &Member) -> bool {
    let own = member.entry;
    member.mesh.entries.iter().any(|it| {
        it.name != own.name && it.state != State::Leaving && member.mesh.link(own, it).is_some()
    })
}
