//! Roaming pairs: nodes behind NAT in two clusters, of which neither can dial the other.

use std::collections::BTreeMap;

use crate::fleet::Member;
use crate::membership::PeerCandidate;

/// The nodes without an endpoint of a cluster, and those of others that get their Peers: each of them and
/// each of the others are a pair that cannot open a tunnel.
pub(super) struct RoamingPairs<'f> {
    /// The cluster.
    pub(super) member: &'f Member<'f>,
    /// Its nodes, by their Peers.
    pub(super) nodes: Vec<&'f PeerCandidate>,
    /// The nodes of other clusters.
    pub(super) others: Vec<RoamingNode<'f>>,
}

/// A node without an endpoint.
#[derive(Clone, Copy)]
pub(super) struct RoamingNode<'f> {
    /// Its cluster.
    pub(super) member: &'f Member<'f>,
    /// Its Peer.
    pub(super) candidate: &'f PeerCandidate,
}

impl<'f> RoamingPairs<'f> {
    /// Finds the pairs of some members, each pair at the cluster whose name comes first.
    ///
    /// Of two clusters most of whose nodes have no endpoint, neither gets Peers of the other one: that is a
    /// finding of the plan.
    pub(super) fn all(members: &[&'f Member<'f>]) -> Vec<Self> {
        let by_name: BTreeMap<_, &Member> = members
            .iter()
            .map(|member| ((&member.mesh.name, &member.entry.name), *member))
            .collect();
        let pairs = members.iter().map(|&member| {
            let later = member.targets().filter(|it| member.entry.name < **it);
            let linked = later.filter_map(|it| by_name.get(&(&member.mesh.name, it)).copied());
            let open = linked.filter(|other| !(member.roams() && other.roams()));
            let others = open.flat_map(|other| {
                roaming(other).map(|candidate| RoamingNode {
                    member: other,
                    candidate,
                })
            });
            Self {
                member,
                nodes: roaming(member).collect(),
                others: others.collect(),
            }
        });
        pairs
            .filter(|it| !it.nodes.is_empty() && !it.others.is_empty())
            .collect()
    }

    /// Returns how many pairs they are.
    pub(super) fn count(&self) -> usize {
        self.nodes.len().saturating_mul(self.others.len())
    }
}

/// Returns the Peers of a cluster that others cannot dial.
fn roaming<'f>(member: &'f Member<'f>) -> impl Iterator<Item = &'f PeerCandidate> {
    let candidates = member.membership.candidates.iter();
    candidates.filter(|it| it.endpoint.is_none())
}
