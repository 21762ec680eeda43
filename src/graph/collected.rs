//! Collected graphs: from the meshes, the nodes, the plan and the proof.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    GraphCluster, GraphClusterKind, GraphLevel, GraphLink, GraphNode, GraphPeers, GraphRange,
    GraphRole, GraphSegment, LinkState, MeshGraph, ProvedPaths,
};
use crate::agent::fabric::{Fabric, Holding, SitePair};
use crate::diagnostic::escaped;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::membership::PeerCandidate;
use crate::mesh::{AddressClass, Entry, Mesh, Networks, Range, State};
use crate::name::ClusterName;
use crate::plan::{PeerSet, Plan};
use crate::proof::verify::Verification;
use crate::rules;
use crate::rules::verified::unproved_nodes::unproved_nodes;

/// The longest part of a foreign text that is shown, in characters.
const SHOWN: usize = 300;

/// Everything that a graph is made from.
#[derive(Clone, Copy)]
pub struct GraphInputs<'g, 'f> {
    /// The meshes.
    pub meshes: &'g [Mesh],
    /// Their clusters with usable snapshots.
    pub fleet: &'g Fleet<'g>,
    /// The Peers that they get, unless a mistake prevents a plan.
    pub plan: Option<&'g Plan>,
    /// The same clusters with the Peers that they really get.
    pub fabric: &'g Fabric<'f>,
    /// The proof of these.
    pub verification: &'g Verification,
}

/// The paths of an ordered pair of linked clusters.
type PathsByPair<'g> = BTreeMap<(&'g ClusterName, &'g ClusterName), ProvedPaths>;

/// The reasons why nodes take no part, by cluster and node.
type Reasons<'g> = BTreeMap<(&'g ClusterName, &'g str), String>;

impl GraphInputs<'_, '_> {
    /// Returns the graph with all details.
    pub fn graph(&self) -> MeshGraph {
        let mut entries: BTreeMap<&ClusterName, Vec<(&Mesh, &Entry)>> = BTreeMap::new();
        for mesh in self.meshes {
            for entry in mesh.all_entries() {
                entries.entry(&entry.name).or_default().push((mesh, entry));
            }
        }
        let is_hub = |name| self.meshes.iter().any(|it| it.topology.is_hub(name));
        let mut order: Vec<&ClusterName> = entries.keys().copied().collect();
        order.sort_by_key(|name| (!is_hub(name), name.is_external(), *name));
        let unproved = unproved_nodes(self.fleet, self.plan);
        let reasons: Reasons = unproved
            .iter()
            .flat_map(|of| of.nodes.iter().map(move |it| (&of.member.entry.name, it)))
            .map(|(cluster, it)| ((cluster, it.node.name.as_str()), it.reason()))
            .collect();
        let clusters = entries.iter().map(|(name, entries)| {
            let mut cluster = self.cluster(name, entries, &reasons);
            cluster.is_hub = is_hub(name);
            (*name, cluster)
        });
        let mut clusters: BTreeMap<&ClusterName, GraphCluster> = clusters.collect();
        let clusters = order.iter().filter_map(|name| clusters.remove(name));
        MeshGraph {
            origin: None,
            level: GraphLevel::Nodes,
            clusters: clusters.collect(),
            links: self.links(&order),
        }
    }

    fn cluster(
        &self,
        name: &ClusterName,
        entries: &[(&Mesh, &Entry)],
        reasons: &Reasons,
    ) -> GraphCluster {
        let states = entries.iter().map(|it| it.1.state);
        let state = states.min().unwrap_or_default();
        let member = self.fleet.memberships(name).next();
        let nodes = member.map_or_else(Vec::new, |it| nodes(it, reasons));
        let segments = member.map_or_else(Vec::new, |it| self.segments(it));
        let is_excluded = |it: &&GraphNode| it.role == GraphRole::Excluded;
        let declared = entries.iter().map(|(_, entry)| &entry.networks);
        let mut ranges: Vec<GraphRange> = Vec::new();
        for (range, class) in declared.flat_map(declared_ranges) {
            let range = range.cidr.to_string();
            if ranges.iter().all(|it| it.range != range) {
                ranges.push(GraphRange { range, class });
            }
        }
        GraphCluster {
            name: name.to_string(),
            kind: if name.is_external() {
                GraphClusterKind::External
            } else {
                GraphClusterKind::Cluster
            },
            state,
            is_hub: false,
            // An external peer has no snapshot, and is in the fleet only with a plan.
            is_unread: member.is_none() && state == State::Joined && !name.is_external(),
            meshes: (entries.iter()).map(|(mesh, _)| mesh.name.to_string()).collect(),
            granularity: member.map(|it| it.cluster.granularity.to_string()),
            node_count: nodes.len(),
            excluded_count: nodes.iter().filter(is_excluded).count(),
            segment_count: segments.len(),
            ranges,
            gets: self.gets(name),
            segments,
            nodes,
        }
    }

    /// Returns the segments that a cluster gives to others.
    fn segments(&self, member: &Member) -> Vec<GraphSegment> {
        let sets = self.plan.iter().flat_map(|it| &it.peer_sets);
        let sets: Vec<&PeerSet> = sets.filter(|it| it.source == member.entry.name).collect();
        let candidates = member.membership.candidates.iter();
        candidates
            .map(|candidate| GraphSegment {
                leader: escaped(candidate.leader.as_str(), SHOWN),
                location: location(member, candidate),
                endpoint: candidate.endpoint.as_ref().map(ToString::to_string),
                is_behind_nat: candidate.endpoint.is_none(),
                anchors: anchors(&sets, candidate),
                ranges: candidate.claims().map(|it| it.to_string()).collect(),
                node_count: candidate.nodes,
                nodes: (candidate.members.iter()).map(|&it| node_name(member, it)).collect(),
            })
            .collect()
    }

    /// Returns the Peers that a cluster gets.
    fn gets(&self, name: &ClusterName) -> Vec<GraphPeers> {
        let Some(site) = self.fabric.site_named(name.as_str()) else {
            return Vec::new();
        };
        let mut counts: BTreeMap<&ClusterName, usize> = BTreeMap::new();
        for (id, peer) in self.fabric.site(site).model.peers.numbered() {
            let from = match self.fabric.holding(site, id) {
                Holding::One(at) => Some(self.fabric.site(at.site).cluster),
                // No node has its key any more.
                Holding::Nobody | Holding::Many => peer.applied.claims.source.as_ref(),
            };
            if let Some(from) = from {
                *counts.entry(from).or_default() += 1;
            }
        }
        let counts = counts.into_iter();
        counts.map(|(from, peers)| GraphPeers { from: from.to_string(), peers }).collect()
    }

    /// Returns all links of the meshes.
    fn links(&self, order: &[&ClusterName]) -> Vec<GraphLink> {
        let paths = self.paths();
        let mut links = Vec::new();
        for (place, one) in order.iter().enumerate() {
            for other in order.iter().skip(place + 1) {
                let is_linked = self.meshes.iter().any(|it| it.links(one, other));
                if !is_linked {
                    continue;
                }
                let there = paths.get(&(*one, *other)).copied().unwrap_or_default();
                let back = paths.get(&(*other, *one)).copied().unwrap_or_default();
                links.push(GraphLink {
                    clusters: [one.to_string(), other.to_string()],
                    state: LinkState::of(there, back),
                    there,
                    back,
                });
            }
        }
        links
    }

    fn paths(&self) -> PathsByPair<'_> {
        let pairings = self.verification.pairings.iter();
        let pairings = pairings.filter(|it| it.is_linked);
        pairings
            .map(|pairing| {
                let pair = SitePair { from: pairing.from, to: pairing.to };
                let [from, to] = pair.both().map(|it| self.fabric.site(it).cluster);
                let mut paths = ProvedPaths::default();
                for tally in pairing.tallies.values() {
                    paths.declared += tally.promised;
                    paths.working += tally.kept;
                    paths.assumed += tally.assumed;
                }
                ((from, to), paths)
            })
            .collect()
    }
}

/// Returns all nodes of a cluster.
fn nodes(member: &Member, reasons: &Reasons) -> Vec<GraphNode> {
    let (cluster, membership) = (&member.entry.name, &member.membership);
    let excluded = membership.excluded.iter();
    let excluded = excluded.map(|it| (it.node.as_str(), rules::excluded(&it.reason)));
    let excluded: BTreeMap<&str, String> = excluded.collect();
    let leaders = membership.candidates.iter().map(|it| it.leader.as_str());
    let leaders: BTreeSet<&str> = leaders.collect();
    let members = membership.candidates.iter().flat_map(|it| &it.members);
    let members: BTreeSet<NodeId> = members.copied().collect();
    let nodes = member.cluster.nodes.numbered();
    nodes
        .map(|(id, node)| {
            let name = node.node.name.as_str();
            let reason = reasons.get(&(cluster, name)).or_else(|| excluded.get(name));
            let role = if !members.contains(&id) {
                GraphRole::Excluded
            } else if leaders.contains(name) {
                GraphRole::Leader
            } else {
                GraphRole::Member
            };
            graph_node(node, role, reason)
        })
        .collect()
}

/// Returns the ranges of the whole cluster that a segment carries in a target.
fn anchors(sets: &[&PeerSet], candidate: &PeerCandidate) -> Vec<String> {
    let mut anchors = BTreeSet::new();
    for set in sets {
        let peers = set.peers.iter().filter(|it| it.key == candidate.key);
        for range in peers.flat_map(|it| &it.allowed_ips) {
            if set.shared.contains(range) {
                anchors.insert(*range);
            }
        }
    }
    anchors.iter().map(ToString::to_string).collect()
}

fn location(member: &Member, candidate: &PeerCandidate) -> String {
    let members = candidate.members.iter();
    let mut nodes = members.map(|it| &member.cluster.nodes[*it]);
    let leader = nodes.find(|it| it.node.name == candidate.leader.as_str());
    leader.map_or_else(String::new, |it| escaped(&it.kilo.location, SHOWN))
}

fn graph_node(node: &ClusterNode, role: GraphRole, reason: Option<&String>) -> GraphNode {
    let reported = node.node.pod_cidrs.iter();
    GraphNode {
        name: escaped(&node.node.name, SHOWN),
        role,
        location: escaped(&node.kilo.location, SHOWN),
        pod_cidrs: reported.map(|it| escaped(it, SHOWN)).collect(),
        internal_ip: node.kilo.internal_address().map(|it| it.to_string()),
        reason: reason.map(|it| escaped(it, SHOWN)),
    }
}

fn node_name(member: &Member, node: NodeId) -> String {
    escaped(&member.cluster.nodes[node].node.name, SHOWN)
}

/// Returns the declared ranges with their uses.
fn declared_ranges(networks: &Networks) -> Vec<(&Range, Option<AddressClass>)> {
    match networks {
        Networks::Flat { allowed } => allowed.iter().map(|it| (it, None)).collect(),
        Networks::Typed { pods, wireguard, services, additional } => {
            let pods = pods.iter().map(|it| (it, Some(AddressClass::Pod)));
            let nodes = [(wireguard, Some(AddressClass::Node))];
            let services = services.iter().map(|it| (it, Some(AddressClass::Service)));
            let networks = additional.iter();
            let networks = networks.map(|it| (it, Some(AddressClass::Network)));
            pods.chain(nodes).chain(services).chain(networks).collect()
        }
    }
}
