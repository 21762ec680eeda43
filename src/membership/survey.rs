//! The survey of a cluster: its nodes with what they have of their own, what has been decided about each so far, and
//! what a person wrote and more than half of the nodes deny.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::{
    Contradicted, Contradiction, Dissenter, ExcludedNode, ExcludedReason, Membership, Origin,
    PeerCandidate, PodOverlap, WithheldRange, WithheldReason,
};
use crate::kilo::cluster::{Cluster, ClusterNode, node_place};
use crate::kilo::id::{NodeId, Nodes, Numbered};
use crate::kilo::location_label::rivals;
use crate::kilo::node_checks;
use crate::kilo::node_networks::NodeNetworks;
use crate::kilo::segment::Segment;
use crate::mesh::{Entry, Networks, WireguardAddresses};
use crate::name::NodeName;
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::Node;
use crate::wireguard::{Endpoint, PublicKey};

/// A segment on its way to becoming a candidate.
pub(super) struct CandidateDraft<'a> {
    pub(super) leader: NodeId,
    /// Members whose ranges are given, in order of name, with their pod CIDRs.
    pub(super) members: Vec<(NodeId, Vec<Cidr>)>,
    pub(super) name: NodeName,
    pub(super) key: PublicKey,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) origin: Option<Origin>,
    /// The address in Kilo's subnet, if the cluster advertises any.
    pub(super) wireguard: Option<IpAddr>,
    pub(super) segment: &'a Segment,
}

/// The facts about a cluster that are known so far.
pub(super) struct NodeSurvey<'a> {
    pub(super) cluster: &'a Cluster<'a>,
    pub(super) entry: &'a Entry,
    pub(super) nodes: &'a Nodes<ClusterNode<'a>>,
    /// The file of the snapshot.
    source: &'a Arc<str>,
    pub(super) excluded: BTreeMap<NodeId, ExcludedReason>,
    pub(super) withheld: Vec<WithheldRange>,
    pub(super) overlaps: Vec<PodOverlap>,
    /// Nodes that pass every check that applies to them.
    pub(super) usable: Vec<NodeId>,
}

impl<'a> NodeSurvey<'a> {
    pub(super) fn new(cluster: &'a Cluster<'a>, source: &'a Arc<str>) -> Self {
        Self {
            cluster,
            entry: cluster.entry,
            nodes: &cluster.nodes,
            source,
            excluded: BTreeMap::new(),
            withheld: Vec::new(),
            overlaps: Vec::new(),
            usable: Vec::new(),
        }
    }

    /// Returns where the snapshot has a node.
    pub(super) fn place(&self, node: &Node) -> Place {
        node_place(self.entry, self.source, node)
    }

    pub(super) fn name(&self, id: NodeId) -> &str {
        &self.nodes[id].node.name
    }

    fn is_selected(&self, id: NodeId) -> bool {
        self.entry.selector.matches(&self.nodes[id].node.labels)
    }

    /// Leaves a node out, unless it was already for a better reason.
    pub(super) fn exclude(&mut self, id: NodeId, reason: ExcludedReason) {
        self.excluded.entry(id).or_insert(reason);
    }

    pub(super) fn withhold(&mut self, id: NodeId, range: String, reason: WithheldReason) {
        let node = self.nodes[id].node;
        self.withheld.push(WithheldRange {
            node: node.name.clone(),
            place: self.place(node),
            range,
            reason,
        });
    }

    pub(super) fn exclude_unready(&mut self, unready: &[NodeId]) {
        for &id in unready {
            let ClusterNode { kilo, checked, .. } = &self.nodes[id];
            let reason = if self.is_selected(id) {
                node_checks::unready(checked, kilo)
            } else {
                ExcludedReason::NotSelected
            };
            self.exclude(id, reason);
        }
    }

    /// Applies the node checks to a segment; `None` if it has no node that other clusters can
    /// reach.
    pub(super) fn draft<'s>(&mut self, segment: &'s Segment) -> Option<CandidateDraft<'s>> {
        let selected: Vec<NodeId> = segment
            .members
            .iter()
            .copied()
            .filter(|&index| {
                let selected = self.is_selected(index);
                if !selected {
                    self.exclude(index, ExcludedReason::NotSelected);
                }
                selected
            })
            .collect();
        if selected.is_empty() {
            return None;
        }
        let leader = &self.nodes[segment.leader];
        let checked = match node_checks::candidate(self.entry, leader.node, &leader.checked) {
            Ok(checked) => checked,
            Err(reason) => {
                self.exclude_segment(segment, reason);
                return None;
            }
        };
        let members: Vec<(NodeId, Vec<Cidr>)> =
            selected.into_iter().filter_map(|index| Some((index, self.member(index)?))).collect();
        // A leader that is not selected has a Peer only for others.
        if members.is_empty() {
            return None;
        }
        Some(CandidateDraft {
            leader: segment.leader,
            members,
            name: checked.name,
            key: checked.key,
            endpoint: checked.endpoint,
            origin: checked.origin,
            wireguard: checked.wireguard,
            segment,
        })
    }

    /// Returns the pod CIDRs of a selected member of a segment that has a Peer.
    fn member(&mut self, index: NodeId) -> Option<Vec<Cidr>> {
        let nodes = self.nodes;
        match &nodes[index].checked.pods {
            Ok(pods) => {
                self.usable.push(index);
                for (range, reason) in &pods.withheld {
                    self.withhold(index, range.clone(), reason.clone());
                }
                Some(pods.used.clone())
            }
            Err(reason) => {
                self.exclude(index, reason.clone());
                None
            }
        }
    }

    /// Leaves out a segment whose leader is left out for `reason`.
    pub(super) fn exclude_segment(&mut self, segment: &Segment, reason: ExcludedReason) {
        let leader = self.name(segment.leader).to_owned();
        // A leader that was not selected is still needed, so its own reason is worth more.
        self.excluded.insert(segment.leader, reason);
        for &index in &segment.members {
            self.exclude(index, ExcludedReason::LeaderExcluded(leader.clone()));
        }
    }

    pub(super) fn finish(mut self, candidates: Vec<PeerCandidate>) -> Membership {
        let cluster = self.cluster;
        // A leader that is not selected still has a Peer.
        let leaders: BTreeSet<&str> = candidates.iter().map(|it| it.leader.as_str()).collect();
        let nodes = self.nodes;
        let speaks = |id: NodeId| leaders.contains(nodes[id].node.name.as_str());
        self.excluded.retain(|&id, _| !speaks(id));
        let excluded = &self.excluded;
        self.usable.retain(|index| !excluded.contains_key(index));
        let contradictions = contradictions(cluster);
        let dissenters = self.dissenters();
        let local_nodes = self.local_nodes();
        let usable = self.usable.iter().map(|&index| self.name(index).to_owned()).collect();
        let reasons = std::mem::take(&mut self.excluded);
        let excluded = reasons.into_iter().map(|(id, reason)| {
            let ClusterNode { node, kilo, .. } = &nodes[id];
            ExcludedNode {
                node: node.name.clone(),
                place: self.place(node),
                reason,
                kilo_has_endpoint: kilo.endpoint.is_some(),
            }
        });
        Membership {
            usable,
            local_nodes,
            excluded: excluded.collect(),
            withheld: self.withheld,
            overlaps: self.overlaps,
            dissenters,
            contradictions,
            candidates: Numbered::new(candidates),
        }
    }

    /// Finds the nodes that report another granularity: those that decide about it, and others that are used.
    fn dissenters(&self) -> Vec<Dissenter> {
        let granularity = self.cluster.granularity;
        let voters = self.cluster.voters();
        let voters: BTreeSet<&str> = voters.iter().map(|it| it.node.name.as_str()).collect();
        let is_meant = |id: NodeId, it: &ClusterNode| {
            let is_used = !it.kilo.stale && !self.excluded.contains_key(&id);
            is_used || voters.contains(it.node.name.as_str())
        };
        let nodes = self.nodes.numbered().filter(|it| is_meant(it.0, it.1));
        let dissenters = nodes.filter_map(|(_, node)| {
            let says = node.kilo.granularity.filter(|&it| it != granularity)?;
            Some(Dissenter { node: node.node.name.clone(), place: self.place(node.node), says })
        });
        dissenters.collect()
    }
}

/// Returns the lines of an entry that more than half of its nodes contradict.
pub(super) fn contradictions(cluster: &Cluster) -> Vec<Contradiction> {
    let entry = cluster.entry;
    let selected: Vec<&ClusterNode> =
        cluster.nodes.iter().filter(|it| entry.selector.matches(&it.node.labels)).collect();
    let mut found = vec![pod_ranges(cluster, &selected)];
    if entry.advertise.wireguard != WireguardAddresses::None {
        found.push(wireguard_range(cluster, &selected));
    }
    found.push(granularity(cluster));
    found.push(topology_label(cluster));
    found.push(node_selector(cluster, &selected));
    found.into_iter().flatten().collect()
}

fn pod_ranges(cluster: &Cluster, nodes: &[&ClusterNode]) -> Option<Contradiction> {
    let outside = nodes.iter().filter_map(|it| match &it.checked.pods {
        Err(ExcludedReason::PodCidrOutOfRange { cidr }) => Some(cidr.first()),
        _ => None,
    });
    let outside: Vec<IpAddr> = outside.collect();
    let place = range_without_nodes(cluster, *outside.first()?, "podCIDRs");
    let found = contradiction(Contradicted::PodRanges, place, outside.len(), nodes.len())?;
    Some(Contradiction { outside: outside.first().copied(), ..found })
}

/// Only leaders have a `WireGuard` address, so only those are counted that have.
fn wireguard_range(cluster: &Cluster, nodes: &[&ClusterNode]) -> Option<Contradiction> {
    let having = nodes.iter().filter(|it| it.kilo.has_wireguard_ip()).count();
    let outside = nodes.iter().filter_map(|it| match &it.checked.wireguard {
        Err(ExcludedReason::WireguardIpOutOfRange { address }) => Some(*address),
        _ => None,
    });
    let outside: Vec<IpAddr> = outside.collect();
    let place = range_without_nodes(cluster, *outside.first()?, "wireguardCIDR");
    let found = contradiction(Contradicted::WireguardRange, place, outside.len(), having)?;
    Some(Contradiction { outside: outside.first().copied(), ..found })
}

/// Returns the place of the declared range that is most like an address outside of all ranges, among those of a field in which
/// no node has an address: the one that was mistyped, if any was. A range of a flat entry may be for anything.
fn range_without_nodes(cluster: &Cluster, outside: IpAddr, field: &str) -> Place {
    let place = &cluster.entry.place;
    let Networks::Typed { pods, .. } = &cluster.entry.networks else {
        return place.key("allowedNetworks");
    };
    let field = place.key(field);
    let in_field = pods.iter().filter(|it| it.place.pointer.is_within(&field.pointer));
    let nearest = cluster.without_addresses(in_field).max_by_key(|it| it.cidr.common_bits(outside));
    nearest.map_or(field, |it| it.place.clone())
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
        outside: None,
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
    (of < 2 * against).then_some(Contradiction { what, place, against, of, outside: None })
}

/// A node that passes the checks, selected or not: Kilo joins it to the others of its cluster either
/// way.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// The node's index in the snapshot.
    pub node: NodeId,
    /// The endpoints of the node, inside its own cluster and outside.
    pub endpoints: Vec<IpAddr>,
    /// Its networks.
    pub networks: NodeNetworks,
    /// Its internal addresses, at most one of a family.
    pub addresses: Vec<IpAddr>,
    /// Its location; empty for none.
    pub location: String,
}

impl NodeSurvey<'_> {
    /// Returns the local nodes of all segments, once the excluded nodes are known.
    pub(super) fn local_nodes(&self) -> Vec<LocalNode> {
        let is_usable = |index: NodeId, candidate: &ClusterNode| match self.excluded.get(&index) {
            None => true,
            Some(ExcludedReason::NotSelected) => {
                candidate.checked.is_sound() && candidate.checked.pods.is_ok()
            }
            Some(_) => false,
        };
        self.nodes
            .numbered()
            .filter(|(index, candidate)| is_usable(*index, candidate))
            .map(|(index, candidate)| home(index, candidate))
            .collect()
    }
}

fn home(node: NodeId, candidate: &ClusterNode) -> LocalNode {
    let ClusterNode { node: read, kilo, checked, .. } = candidate;
    let mut endpoints: Vec<IpAddr> = kilo.endpoint.iter().filter_map(Endpoint::address).collect();
    endpoints.extend(
        checked.endpoint().and_then(Endpoint::address).filter(|it| !endpoints.contains(it)),
    );
    LocalNode {
        node,
        endpoints,
        addresses: node_checks::internal_addresses(read, kilo),
        networks: NodeNetworks::from_node(candidate),
        location: kilo.location.clone(),
    }
}
