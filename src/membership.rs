//! Memberships: the Peer candidates of one cluster in one mesh with their ranges, the nodes that are
//! excluded, and the ranges that are withheld.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::granularity::Granularity;
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::id::{Id, NodeId, Numbered};
use crate::kilo::node::endpoint;
use crate::kilo::node_checks::ENDPOINT_ANNOTATIONS;
use crate::kilo::seen::SeenAddress;
use crate::name::{MeshName, NodeName};
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::{Endpoint, Host, PublicKey};

mod claims;
mod survey;

pub use crate::kilo::reason::{EndpointProblem, ExcludedReason, Origin, Unready, WithheldReason};
pub use survey::LocalNode;

use survey::{CandidateDraft, NodeSurvey};

/// One cluster in one mesh, with the parts of its entry that its snapshot confirms.
#[derive(Clone, Debug)]
pub struct Membership {
    /// One for each segment that can be given to others, in order of their leaders' names.
    pub candidates: Numbered<OfCandidate, PeerCandidate>,
    /// Nodes whose ranges are given: they pass every check that applies to them.
    pub usable: BTreeSet<String>,
    /// The addresses and networks of the usable nodes, and of those that only the mesh does not select.
    pub local_nodes: Vec<LocalNode>,
    /// Nodes that are not given to anyone, in order of name.
    pub excluded: Vec<ExcludedNode>,
    /// Ranges of nodes that are, or of a segment that is.
    pub withheld: Vec<WithheldRange>,
    /// Pod CIDRs that share addresses although Kilo routes both: of nodes of one location, or of nodes one of which
    /// is given to others and the other excluded.
    pub overlaps: Vec<PodOverlap>,
    /// Nodes that contradict the granularity.
    pub dissenters: Vec<Dissenter>,
    /// The lines of the mesh that the nodes contradict.
    pub contradictions: Vec<Contradiction>,
}

/// Candidates of a membership.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfCandidate {}

/// The number of a candidate in its membership.
pub type CandidateId = Id<OfCandidate>;

/// A tunnel end, and what lies behind it.
#[derive(Clone, Debug)]
pub struct PeerCandidate {
    /// The node at the tunnel end: the leader of the segment.
    pub leader: NodeName,
    /// Its place in the snapshot.
    pub place: Place,
    /// The reason why Kilo does not count the leader, if it does not.
    pub unready: Option<Unready>,
    /// Its key.
    pub key: PublicKey,
    /// Its endpoint; none for a node behind NAT.
    pub endpoint: Option<Endpoint>,
    /// The source of the endpoint.
    pub origin: Option<Origin>,
    /// The address from which others see it.
    pub seen: SeenAddress,
    /// The number of nodes behind it.
    pub nodes: usize,
    /// The indices of these nodes in the snapshot, in order of name.
    pub members: Vec<NodeId>,
    /// The pod CIDRs of its nodes.
    pub pods: Vec<Cidr>,
    /// Other addresses of its nodes: the WireGuard address, internal addresses.
    pub hosts: Vec<Cidr>,
}

impl PeerCandidate {
    /// Returns the ranges of its nodes.
    pub fn claims(&self) -> impl Iterator<Item = Cidr> {
        self.pods.iter().chain(&self.hosts).copied()
    }

    /// Returns the address to which others send the packets of the tunnel, if it is known: where they dial
    /// it, or behind NAT the one from which they see it.
    pub fn outer_address(&self) -> Option<IpAddr> {
        match &self.endpoint {
            Some(endpoint) => endpoint.address(),
            None => self.seen.from_everywhere(),
        }
    }
}

/// A node that is not given to anyone.
#[derive(Clone, Debug)]
pub struct ExcludedNode {
    /// Its name, as it claims.
    pub node: String,
    /// Its place in the snapshot.
    pub place: Place,
    /// The reason.
    pub reason: ExcludedReason,
    /// Whether Kilo itself has an endpoint for it, which the mesh does not ask for.
    pub kilo_has_endpoint: bool,
}

/// A range that is not given to anyone although its node is.
#[derive(Clone, Debug)]
pub struct WithheldRange {
    /// The node that claims it.
    pub node: String,
    /// The place of the node in the snapshot.
    pub place: Place,
    /// The claim as text.
    pub range: String,
    /// The reason.
    pub reason: WithheldReason,
}

/// Two pod CIDRs that share addresses. Of nodes of two locations that are both given to others, one is excluded
/// instead.
#[derive(Clone, Debug)]
pub struct PodOverlap {
    /// The node with the wider one; if both are equal, the later node by name.
    pub node: String,
    /// Its pod CIDR.
    pub cidr: Cidr,
    /// The other node.
    pub other_node: String,
    /// The pod CIDR of the other node.
    pub other: Cidr,
    /// The one of these nodes that is excluded; none if both are of one location.
    pub excluded: Option<String>,
}

/// A node that reports another granularity than the one used.
#[derive(Clone, Debug)]
pub struct Dissenter {
    /// Its name, as it claims.
    pub node: String,
    /// Its place in the snapshot.
    pub place: Place,
    /// Its content.
    pub says: Granularity,
}

/// A line of the mesh that more than half of the nodes contradict, or, for the topology label, the leaders of one location.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The content of the line.
    pub what: Contradicted,
    /// The line.
    pub place: Place,
    /// The number of nodes that contradict it.
    pub against: usize,
    /// Out of how many.
    pub of: usize,
    /// An address of a node outside of the declared ranges, if the line is about ranges.
    pub outside: Option<IpAddr>,
}

/// A line of the mesh about nodes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Contradicted {
    /// The ranges of pod CIDRs.
    PodRanges,
    /// The range of WireGuard addresses.
    WireguardRange,
    /// The granularity.
    Granularity(Granularity),
    /// The label that names the locations.
    TopologyLabel,
    /// The selected nodes.
    NodeSelector,
}

/// Returns how many nodes are the cause of those that are left out, given the names of these and the reasons; none if no
/// cluster gets the Peer that a node leads.
///
/// One node takes its whole location with it: its members have no other leader, or only one that Kilo did not elect and
/// gave no WireGuard address. A leader that moves to another location leaves both without a leader. And a node whose pod
/// CIDR or key is that of another one, or whose pod CIDR is inside of it, takes the other one with it.
pub fn causing_nodes<'r>(
    granularity: Granularity,
    left_out: impl IntoIterator<Item = (&'r str, Option<&'r ExcludedReason>)>,
) -> usize {
    let (mut causing, mut twins, mut unelected) = (BTreeSet::new(), Vec::new(), 0_usize);
    for (node, reason) in left_out {
        match reason {
            Some(ExcludedReason::LeaderExcluded(_) | ExcludedReason::NotSelected) => {}
            Some(ExcludedReason::NoWireguardIp) if granularity != Granularity::Full => {
                unelected += 1;
            }
            Some(ExcludedReason::PodCidrTaken { cidr, other, node: by }) => {
                if cidr == other {
                    twins.push((node, &**by));
                } else {
                    causing.insert(&**by);
                }
            }
            Some(ExcludedReason::DuplicateKey(by)) => twins.push((node, &**by)),
            _ => drop(causing.insert(node)),
        }
    }
    for (node, by) in twins {
        if !causing.contains(by) {
            causing.insert(node);
        }
    }
    causing.len().max(unelected.div_ceil(2))
}

impl Membership {
    /// Returns whether one node of several can be why no other cluster gets anything of this one: at most one has a Peer
    /// to give, or is why none has. A cluster of one node is lost with it, which is for a person to confirm.
    pub fn depends_on_one(&self, granularity: Granularity) -> bool {
        let mut excluded = self.excluded.iter();
        let is_selected = |it: &ExcludedNode| it.reason != ExcludedReason::NotSelected;
        let has_any = !self.candidates.is_empty() || excluded.any(is_selected);
        1 < self.usable.len() + self.excluded.len()
            && has_any
            && self.candidates.len() + self.causing(granularity) <= 1
    }

    /// Returns how many nodes are why some are left out.
    pub fn causing(&self, granularity: Granularity) -> usize {
        let left_out = self.excluded.iter().map(|it| (&*it.node, Some(&it.reason)));
        causing_nodes(granularity, left_out)
    }
}

/// Finds the candidates for Peers of a cluster in `mesh`. Its snapshot is the file `source`.
pub fn membership(mesh: &MeshName, cluster: &Cluster, source: &Arc<str>) -> Membership {
    let segments = &cluster.segments;
    let mut survey = NodeSurvey::new(cluster, source);
    survey.exclude_unready(&segments.unready);
    let drafts: Vec<CandidateDraft> =
        segments.formed.iter().filter_map(|segment| survey.draft(segment)).collect();
    let drafts = claims::settle_names(drafts, mesh, &mut survey);
    let drafts = claims::settle_keys(drafts, &mut survey);
    let drafts = claims::settle_pod_cidrs(drafts, &mut survey);
    survey.overlaps = claims::overlaps_of_excluded(&drafts, &survey);
    survey.overlaps.extend(claims::overlaps_in_locations(&survey));
    let candidates = claims::candidates(drafts, &mut survey);
    survey.finish(candidates)
}

/// The nodes and endpoints that people leave out of a cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExcludedByMesh {
    /// The number of nodes.
    pub nodes: usize,
    /// The ranges that these claim.
    pub claims: Vec<Cidr>,
    /// Whether a candidate without an endpoint has one from a source that `endpointFrom` does not
    /// list.
    pub is_unasked: bool,
}

impl ExcludedByMesh {
    /// Finds it in a membership, given what that was made of.
    pub fn find(cluster: &Cluster, membership: &Membership) -> Self {
        let node = |name: &str| cluster.nodes.iter().find(|it| it.node.name == name);
        let mut by_people = Self::default();
        for excluded in &membership.excluded {
            let Some(node) = node(&excluded.node) else {
                continue;
            };
            let is_by_people = match excluded.reason {
                ExcludedReason::NotSelected => true,
                ExcludedReason::NoEndpoint(_) => is_dialable(node.node),
                _ => false,
            };
            if is_by_people {
                by_people.nodes += 1;
                by_people.claims.extend(claims(node));
            }
        }
        let mut silent = membership
            .candidates
            .iter()
            .filter(|it| it.endpoint.is_none())
            .filter_map(|it| node(it.leader.as_str()));
        by_people.is_unasked = silent.any(|it| is_dialable(it.node));
        by_people
    }
}

/// Returns whether a node has an endpoint for all clusters: in an annotation that an administrator
/// writes, or as an external address.
fn is_dialable(node: &Node) -> bool {
    let mut written = ENDPOINT_ANNOTATIONS.iter().filter_map(|key| node.annotations.get(*key));
    let is_address = |it: &str| endpoint(it).is_ok_and(|it| matches!(it.host, Host::Ip(_)));
    let mut external = node.addresses.iter();
    written.any(is_address)
        || external
            .any(|it| it.kind == AddressKind::ExternalIP && it.address.parse::<IpAddr>().is_ok())
}

/// Returns the ranges that a node claims.
fn claims(ClusterNode { node, kilo, .. }: &ClusterNode) -> Vec<Cidr> {
    let addresses =
        kilo.internal_address().into_iter().chain(kilo.wireguard_ip().map(|it| it.address));
    node.valid_pod_cidrs().chain(addresses.map(Cidr::host)).collect()
}

#[cfg(test)]
mod tests;
