//! Attribution: which cause changes which Peers.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::cause::{
    Cause, CauseEffect, CauseList, NamedNode, NodeChange, PeerCounts, TargetEffect,
};
use super::peer_change::{Difference, PeerChange, PeerChangeKind};
use super::target::TargetChange;
use crate::name::{ClusterName, is_peer_of};
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::proof::bounded_list::APART;

/// Assigns every change of a Peer to its causes, and what is left to [`Cause::Other`].
/// Without causes to choose from, nothing is assigned.
pub(super) fn attribute(
    causes: Option<Vec<Cause>>,
    targets: &mut [TargetChange],
) -> Vec<CauseEffect> {
    let Some(causes) = causes else {
        return Vec::new();
    };
    let mut effects: Vec<CauseEffect> =
        causes.into_iter().map(|cause| CauseEffect { cause, targets: Vec::new() }).collect();
    let index = CauseIndex::new(&effects);
    let mut others = CauseEffect { cause: Cause::Other, targets: Vec::new() };
    let found = targets.par_iter_mut().map(|it| index.assign(&effects, it));
    let found: Vec<Vec<(usize, PeerCounts)>> = found.collect();
    for (target, counted) in found.into_iter().enumerate() {
        for (cause, counts) in counted {
            let cause = effects.get_mut(cause).unwrap_or(&mut others);
            cause.targets.push(TargetEffect { target, counts });
        }
    }
    if !others.targets.is_empty() {
        effects.push(others);
    }
    effects
}

/// The causes, by what they are about.
struct CauseIndex {
    /// Those that explain only the Peer of one node, by node.
    by_node: Vec<NodeCauses>,
    /// Those that explain only Peers that gain or lose a range.
    by_range: BTreeMap<Cidr, Vec<usize>>,
    /// Ranges of whole clusters that other nodes carry.
    moved: Prefixes<usize>,
    /// Those that explain each Peer of a cluster with a certain difference: they are counted together.
    by_likeness: BTreeMap<(ClusterName, Likeness), Vec<usize>>,
    by_cluster: BTreeMap<ClusterName, Vec<usize>>,
    /// The causes about whole meshes.
    general: Vec<usize>,
    /// The place of [`Cause::Other`].
    other: usize,
}

/// The causes that explain only the Peer of one node.
struct NodeCauses {
    node: NamedNode,
    causes: Vec<usize>,
}

/// A difference in Peers that all causes of a kind explain.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Likeness {
    /// Nothing but ranges: other nodes of the cluster may have had them.
    Ranges,
    /// Nothing but the order of the ranges: nodes of a segment may have swapped them.
    Spelling,
}

/// A search for nodes that mostly follow each other.
#[derive(Default)]
struct NodeSearch {
    next: usize,
}

impl NodeSearch {
    /// Returns the causes of a node.
    fn causes<'i>(&mut self, all: &'i [NodeCauses], node: &NamedNode) -> &'i [usize] {
        let is_next = all.get(self.next).is_some_and(|it| it.node == *node);
        let place = if is_next { self.next } else { all.partition_point(|it| it.node < *node) };
        let found = all.get(place).filter(|it| it.node == *node);
        self.next = place + usize::from(found.is_some());
        found.map_or(&[], |it| &it.causes)
    }
}

impl CauseIndex {
    fn new(effects: &[CauseEffect]) -> Self {
        let mut by_node: BTreeMap<NamedNode, Vec<usize>> = BTreeMap::new();
        let mut moved: Vec<(Cidr, usize)> = Vec::new();
        let mut index = Self {
            by_node: Vec::new(),
            by_range: BTreeMap::new(),
            moved: Prefixes::new([]),
            by_likeness: BTreeMap::new(),
            by_cluster: BTreeMap::new(),
            general: Vec::new(),
            other: effects.len(),
        };
        for (place, effect) in effects.iter().enumerate() {
            let cause = &effect.cause;
            if let Cause::Node { node, change } = cause
                && let Some(likeness) = Likeness::of(change)
            {
                let alike = (node.cluster.clone(), likeness);
                index.by_likeness.entry(alike).or_default().push(place);
            }
            let mut of_node = |node| by_node.entry(node).or_default().push(place);
            let of_range = |it: &Cidr| index.by_range.entry(*it).or_default().push(place);
            match cause {
                Cause::Node { node, change } => match change {
                    NodeChange::NewAddress { from, to } => {
                        from.iter().chain(to).for_each(of_range);
                    }
                    NodeChange::RangesGained(ranges) | NodeChange::RangesLost(ranges) => {
                        ranges.iter().for_each(of_range);
                    }
                    _ => of_node(node.clone()),
                },
                Cause::NodeRenamed { cluster, from, to }
                | Cause::LeaderChanged { cluster, from, to, .. } => {
                    for node in [from, to] {
                        of_node(NamedNode { cluster: cluster.clone(), node: node.clone() });
                    }
                }
                Cause::AnchorMoved { range, .. } => moved.push((*range, place)),
                _ => match cause.cluster() {
                    Some(it) => index.by_cluster.entry(it.clone()).or_default().push(place),
                    None => index.general.push(place),
                },
            }
        }
        index.moved = Prefixes::new(moved);
        let by_node = by_node.into_iter();
        index.by_node = by_node.map(|(node, causes)| NodeCauses { node, causes }).collect();
        index
    }

    /// Assigns the changes of a target to their causes, and counts those of each cause, by its place.
    fn assign(
        &self,
        effects: &[CauseEffect],
        target: &mut TargetChange,
    ) -> Vec<(usize, PeerCounts)> {
        let mut counts = vec![PeerCounts::default(); self.other + 1];
        let mut of_likeness: BTreeMap<(ClusterName, Likeness), PeerCounts> = BTreeMap::new();
        let mut nodes = NodeSearch::default();
        let mut known = Vec::new();
        for change in &mut target.peers {
            known.clear();
            self.collect(&mut known, &target.cluster, change, &mut nodes);
            known.sort_unstable();
            known.dedup();
            known.retain(|place| {
                let cause = effects.get(*place).map(|it| &it.cause);
                cause.is_some_and(|cause| {
                    is_about(cause, &target.cluster, change)
                        && explains(cause, &target.cluster, change)
                })
            });
            for cause in &known {
                if let Some(counts) = counts.get_mut(*cause) {
                    counts.count(change);
                }
            }
            let mut all = known.len();
            for alike in Likeness::of_change(change) {
                let causes = self.by_likeness.get(&alike).map_or(&[][..], Vec::as_slice);
                of_likeness.entry(alike).or_default().count(change);
                all += causes.len();
                known.extend(causes.iter().take(APART));
            }
            if all == 0 {
                (all, known) = (1, vec![self.other]);
                if let Some(counts) = counts.get_mut(self.other) {
                    counts.count(change);
                }
            }
            change.causes = CauseList::new(&mut known, all);
        }
        for (alike, counted) in of_likeness {
            for cause in self.by_likeness.get(&alike).into_iter().flatten() {
                if let Some(counts) = counts.get_mut(*cause) {
                    counts.add(counted);
                }
            }
        }
        counts.into_iter().enumerate().filter(|it| it.1 != PeerCounts::default()).collect()
    }

    /// Collects the causes that may explain a change of a target's Peer, except those that are counted
    /// together.
    fn collect(
        &self,
        known: &mut Vec<usize>,
        target: &ClusterName,
        change: &PeerChange,
        nodes: &mut NodeSearch,
    ) {
        let about = |it: &ClusterName| self.by_cluster.get(it).into_iter().flatten();
        if let Some(holder) = &change.peer.holder {
            known.extend(nodes.causes(&self.by_node, holder));
            known.extend(about(&holder.cluster));
        }
        known.extend(about(target).chain(&self.general));
        for range in change.peer.ranges() {
            known.extend(self.by_range.get(&range).into_iter().flatten());
            let moved = self.moved.meeting(Span::new(range));
            known.extend(moved.flat_map(|slot| self.moved.at(slot).1));
        }
    }
}

impl Likeness {
    /// Returns the difference that a change of a node explains in Peers of any node of its cluster.
    fn of(change: &NodeChange) -> Option<Self> {
        match change {
            NodeChange::Joined
            | NodeChange::Left
            | NodeChange::Excluded(_)
            | NodeChange::Back(_)
            | NodeChange::OtherLocation { .. } => Some(Self::Ranges),
            NodeChange::RangesGained(_) | NodeChange::RangesLost(_) => Some(Self::Spelling),
            NodeChange::NewKey | NodeChange::NewEndpoint { .. } | NodeChange::NewAddress { .. } => {
                None
            }
        }
    }

    /// Returns what differs in a Peer, if nothing else does.
    fn of_change(change: &PeerChange) -> impl Iterator<Item = (ClusterName, Self)> {
        let holder = change.peer.holder.as_ref();
        let has_only = |is_meant: fn(&Difference) -> bool| {
            let differences = change.peer.differences();
            !differences.is_empty() && differences.iter().all(is_meant)
        };
        let ranges = has_only(is_range).then_some(Self::Ranges);
        let spelling = has_only(|it| *it == Difference::Spelling).then_some(Self::Spelling);
        ranges.into_iter().chain(spelling).filter_map(move |it| Some((holder?.cluster.clone(), it)))
    }
}

/// Returns whether a part of a Peer that differs is its ranges.
fn is_range(difference: &Difference) -> bool {
    matches!(
        difference,
        Difference::RangesGained(_) | Difference::RangesLost(_) | Difference::Spelling
    )
}

/// Returns whether a cause is about the source or the target of a Peer, or about whole meshes.
fn is_about(cause: &Cause, target: &ClusterName, change: &PeerChange) -> bool {
    let source = change.peer.holder.as_ref().map(|it| &it.cluster);
    cause.cluster().is_none_or(|it| it == target || Some(it) == source)
}

fn is_endpoint(it: &Difference) -> bool {
    matches!(it, Difference::Endpoint { .. })
}

fn is_keepalive(it: &Difference) -> bool {
    matches!(it, Difference::Keepalive { .. })
}

/// Returns whether a cause explains a change of a Peer, or a part of it, also if no [`Likeness`] of them is
/// considered.
fn explains(cause: &Cause, target: &ClusterName, change: &PeerChange) -> bool {
    let holder = change.peer.holder.as_ref();
    let is_source = |cluster: &ClusterName| holder.is_some_and(|it| it.cluster == *cluster);
    let comes_or_goes = comes_or_goes(change);
    let has = |is_meant: fn(&Difference) -> bool| has(change, is_meant);
    match cause {
        Cause::ClusterJoined(cluster) | Cause::ClusterLeft(cluster) => {
            comes_or_goes && (is_source(cluster) || cluster == target)
        }
        // If clusters swap their names, Peers keep theirs and get other keys.
        Cause::ClusterRenamed { to, .. } => {
            let is_affected = is_source(to) || to == target;
            is_affected && has(|it| matches!(it, Difference::Key))
        }
        Cause::MeshJoined { cluster, mesh } | Cause::MeshLeft { cluster, mesh } => {
            comes_or_goes
                && is_peer_of(mesh.as_str(), &change.peer.name)
                && (is_source(cluster) || cluster == target)
        }
        Cause::Setting(setting) => match setting.field {
            "metadata.name" | "topology" | "acceptedClusters" | "clusters" | "state" => {
                comes_or_goes
            }
            "persistentKeepalive" => has(is_keepalive) || has(is_endpoint),
            "wireguardPort" | "endpointFrom" | "endpointDomains" => has(is_endpoint),
            "acceptedNetworks" | "localNetworks" => has(is_range),
            // They decide which paths are proved.
            "podSource" | "underlays" => false,
            // These are about the source.
            _ => setting.cluster.as_ref().is_none_or(is_source) && has(is_range),
        },
        Cause::Node { node, change: of_node } => {
            node_explains(of_node, Some(node) == holder, change)
        }
        // Other nodes lead, and each Peer has the ranges of another segment.
        Cause::OtherGranularity { cluster, .. } => is_source(cluster),
        Cause::NodeRenamed { cluster, from, to }
        | Cause::LeaderChanged { cluster, from, to, .. } => {
            is_source(cluster) && holder.is_some_and(|it| it.node == *from || it.node == *to)
        }
        Cause::AnchorMoved { range, .. } => change.peer.ranges().any(|it| range.overlaps(it)),
        Cause::ForeignPeer { target: it, peer } => it == target && *peer == change.peer.name,
        // A cluster that is only added exchanges no Peers.
        Cause::ClusterAdded { .. } | Cause::Other => false,
    }
}

/// Returns whether the change of a node explains one of a Peer, which may be the node's own.
fn node_explains(of_node: &NodeChange, is_own: bool, change: &PeerChange) -> bool {
    let mut ranges = change.peer.ranges();
    match of_node {
        NodeChange::NewKey => is_own && has(change, |it| matches!(it, Difference::Key)),
        NodeChange::NewEndpoint { .. } => is_own && has(change, is_endpoint),
        NodeChange::Joined | NodeChange::Left | NodeChange::Excluded(_) | NodeChange::Back(_) => {
            is_own && comes_or_goes(change)
        }
        NodeChange::NewAddress { from, to } => {
            ranges.any(|it| from.contains(&it) || to.contains(&it))
        }
        NodeChange::RangesGained(of_node) | NodeChange::RangesLost(of_node) => {
            ranges.any(|it| of_node.contains(&it))
        }
        NodeChange::OtherLocation { .. } => is_own && Likeness::of_change(change).next().is_none(),
    }
}

fn comes_or_goes(change: &PeerChange) -> bool {
    !matches!(change.peer.kind, PeerChangeKind::Changed(_))
}

/// Returns whether a Peer comes, goes, or differs in this.
fn has(change: &PeerChange, is_meant: fn(&Difference) -> bool) -> bool {
    comes_or_goes(change) || change.peer.differences().iter().any(is_meant)
}
