//! The survey of a cluster: its nodes, and what has been decided about each so far.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::contradiction;
use super::{Dissenter, LeftOut, LostRange, Origin, RangeReason, Reason, Roster, Speaker};
use crate::kilo::check;
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::id::{NodeId, Nodes};
use crate::kilo::segment::Segment;
use crate::mesh::Entry;
use crate::name::NodeName;
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::{Node, Snapshot};
use crate::wireguard::{Endpoint, PublicKey};

/// A segment on its way to becoming a speaker.
pub(super) struct Draft<'a> {
    pub(super) leader: NodeId,
    /// Members whose ranges are given, in order of name, with their pod CIDRs.
    pub(super) members: Vec<(NodeId, Vec<Cidr>)>,
    pub(super) name: NodeName,
    pub(super) key: PublicKey,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) origin: Option<Origin>,
    pub(super) wireguard: IpAddr,
    pub(super) segment: &'a Segment,
}

/// What has been found out about a cluster so far.
pub(super) struct Survey<'a> {
    pub(super) cluster: &'a Cluster<'a>,
    pub(super) entry: &'a Entry,
    pub(super) nodes: &'a Nodes<ClusterNode<'a>>,
    /// The file of the snapshot.
    source: &'a Arc<str>,
    pub(super) left_out: BTreeMap<NodeId, Reason>,
    pub(super) lost: Vec<LostRange>,
    /// Nodes that pass every check that applies to them.
    pub(super) usable: Vec<NodeId>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(cluster: &'a Cluster<'a>, source: &'a Arc<str>) -> Self {
        Self {
            cluster,
            entry: cluster.entry,
            nodes: &cluster.nodes,
            source,
            left_out: BTreeMap::new(),
            lost: Vec::new(),
            usable: Vec::new(),
        }
    }

    /// Returns where the snapshot has a node.
    pub(super) fn place(&self, node: &Node) -> Place {
        Snapshot::place(self.source, node.position)
    }

    pub(super) fn name(&self, id: NodeId) -> &str {
        &self.nodes[id].node.name
    }

    pub(super) fn is_selected(&self, id: NodeId) -> bool {
        self.entry.selector.matches(&self.nodes[id].node.labels)
    }

    /// Leaves a node out, unless it was already for a better reason.
    pub(super) fn leave_out(&mut self, id: NodeId, reason: Reason) {
        self.left_out.entry(id).or_insert(reason);
    }

    pub(super) fn lose(&mut self, id: NodeId, range: String, reason: RangeReason) {
        let node = self.nodes[id].node;
        self.lost.push(LostRange {
            node: node.name.clone(),
            place: self.place(node),
            range,
            reason,
        });
    }

    pub(super) fn leave_out_unready(&mut self, unready: &[NodeId]) {
        for &id in unready {
            let ClusterNode { kilo, checked, .. } = &self.nodes[id];
            let reason = if self.is_selected(id) {
                check::unready(checked, kilo)
            } else {
                Reason::NotSelected
            };
            self.leave_out(id, reason);
        }
    }

    /// Applies the node checks to a segment; `None` if nobody of it can be given to others.
    pub(super) fn draft<'s>(&mut self, segment: &'s Segment) -> Option<Draft<'s>> {
        let selected: Vec<NodeId> = segment
            .members
            .iter()
            .copied()
            .filter(|&index| {
                let selected = self.is_selected(index);
                if !selected {
                    self.leave_out(index, Reason::NotSelected);
                }
                selected
            })
            .collect();
        if selected.is_empty() {
            return None;
        }
        let candidate = &self.nodes[segment.leader];
        let checked = match check::speaker(self.entry, candidate.node, &candidate.checked) {
            Ok(checked) => checked,
            Err(reason) => {
                self.fall(segment, reason);
                return None;
            }
        };
        let members = selected
            .into_iter()
            .filter_map(|index| Some((index, self.member(index)?)))
            .collect();
        Some(Draft {
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

    /// Returns the pod CIDRs of a selected member of a segment that speaks.
    fn member(&mut self, index: NodeId) -> Option<Vec<Cidr>> {
        let nodes = self.nodes;
        match &nodes[index].checked.pods {
            Ok(pods) => {
                self.usable.push(index);
                for (range, reason) in &pods.lost {
                    self.lose(index, range.clone(), reason.clone());
                }
                Some(pods.used.clone())
            }
            Err(reason) => {
                self.leave_out(index, reason.clone());
                None
            }
        }
    }

    /// Leaves out a segment whose leader is left out for `reason`.
    pub(super) fn fall(&mut self, segment: &Segment, reason: Reason) {
        let leader = self.name(segment.leader).to_owned();
        // A leader that was not selected is still needed, so its own reason is worth more.
        self.left_out.insert(segment.leader, reason);
        for &index in &segment.members {
            self.leave_out(index, Reason::LeaderLeftOut(leader.clone()));
        }
    }

    pub(super) fn finish(mut self, speakers: Vec<Speaker>) -> Roster {
        let cluster = self.cluster;
        // A leader that was not selected speaks all the same.
        let leaders: BTreeSet<&str> = speakers.iter().map(|it| it.leader.as_str()).collect();
        let nodes = self.nodes;
        let speaks = |id: NodeId| leaders.contains(nodes[id].node.name.as_str());
        self.left_out.retain(|&id, _| !speaks(id));
        let left_out = &self.left_out;
        self.usable.retain(|index| !left_out.contains_key(index));
        let contradictions = contradiction::contradictions(cluster);
        let dissenters = self.dissenters();
        let homes = self.homes();
        let usable = self.usable.iter().map(|&index| self.name(index).to_owned());
        let usable = usable.collect();
        let reasons = std::mem::take(&mut self.left_out);
        let left_out = reasons.into_iter().map(|(id, reason)| {
            let ClusterNode { node, kilo, .. } = &nodes[id];
            LeftOut {
                node: node.name.clone(),
                place: self.place(node),
                reason,
                kilo_has_endpoint: kilo.endpoint.is_some(),
            }
        });
        Roster {
            usable,
            homes,
            left_out: left_out.collect(),
            lost: self.lost,
            dissenters,
            contradictions,
            speakers,
        }
    }

    fn dissenters(&self) -> Vec<Dissenter> {
        let granularity = self.cluster.granularity;
        self.cluster
            .voters()
            .filter_map(|candidate| {
                let says = candidate.kilo.granularity.filter(|&it| it != granularity)?;
                Some(Dissenter {
                    node: candidate.node.name.clone(),
                    place: self.place(candidate.node),
                    says,
                })
            })
            .collect()
    }
}
