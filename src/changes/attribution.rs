//! Attribution: which cause changes which Peers.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::cause::{Cause, CauseEffect, NodeRef, PeerCounts, TargetEffect};
use super::peer_change::{Difference, PeerChange, PeerChangeKind};
use super::target::TargetChange;
use crate::name::{ClusterName, is_peer_of};

/// Assigns every change of a Peer to its causes, and what is left to [`Cause::Other`].
/// Without causes to choose from, nothing is assigned.
pub(super) fn attribute(
    causes: Option<Vec<Cause>>,
    targets: &mut [TargetChange],
) -> Vec<CauseEffect> {
    let Some(causes) = causes else {
        return Vec::new();
    };
    let mut effects: Vec<CauseEffect> = causes
        .into_iter()
        .map(|cause| CauseEffect {
            cause,
            targets: Vec::new(),
        })
        .collect();
    let index = CauseIndex::new(&effects);
    let mut others = CauseEffect {
        cause: Cause::Other,
        targets: Vec::new(),
    };
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
    by_cluster: BTreeMap<ClusterName, Vec<usize>>,
    /// The causes about whole meshes.
    general: Vec<usize>,
    /// The place of [`Cause::Other`].
    other: usize,
}

/// The causes that explain only the Peer of one node.
struct NodeCauses {
    node: NodeRef,
    causes: Vec<usize>,
}

/// A search for nodes that mostly follow each other.
#[derive(Default)]
struct NodeSearch {
    next: usize,
}

impl NodeSearch {
    /// Returns the causes of a node.
    fn causes<'i>(&mut self, all: &'i [NodeCauses], node: &NodeRef) -> &'i [usize] {
        let is_next = all.get(self.next).is_some_and(|it| it.node == *node);
        let place = if is_next {
            self.next
        } else {
            all.partition_point(|it| it.node < *node)
        };
        let found = all.get(place).filter(|it| it.node == *node);
        self.next = place + usize::from(found.is_some());
        found.map_or(&[], |it| &it.causes)
    }
}

impl CauseIndex {
    fn new(effects: &[CauseEffect]) -> Self {
        let mut by_node: BTreeMap<&NodeRef, Vec<usize>> = BTreeMap::new();
        let mut index = Self {
            by_node: Vec::new(),
            by_cluster: BTreeMap::new(),
            general: Vec::new(),
            other: effects.len(),
        };
        for (place, effect) in effects.iter().enumerate() {
            if let Cause::NewKey(node) | Cause::NewEndpoint { node, .. } = &effect.cause {
                by_node.entry(node).or_default().push(place);
                continue;
            }
            match effect.cause.cluster() {
                Some(cluster) => index
                    .by_cluster
                    .entry(cluster.clone())
                    .or_default()
                    .push(place),
                None => index.general.push(place),
            }
        }
        let by_node = by_node.into_iter().map(|(node, causes)| NodeCauses {
            node: node.clone(),
            causes,
        });
        index.by_node = by_node.collect();
        index
    }

    /// Assigns the changes of a target to their causes, and counts those of each cause, by its place.
    fn assign(
        &self,
        effects: &[CauseEffect],
        target: &mut TargetChange,
    ) -> Vec<(usize, PeerCounts)> {
        let mut counts = vec![PeerCounts::default(); self.other + 1];
        let mut nodes = NodeSearch::default();
        let of_target = self.about(&target.cluster);
        let mut known = Vec::new();
        for change in &mut target.peers {
            let holder = change.peer.holder.as_ref();
            let of_node = holder.map_or(&[][..], |it| nodes.causes(&self.by_node, it));
            let of_source = holder.map_or(&[][..], |it| self.about(&it.cluster));
            let places = [of_node, of_source, of_target, &self.general];
            known.clear();
            known.extend(places.into_iter().flatten());
            self.retain(&mut known, effects, &target.cluster, change);
            for cause in &known {
                if let Some(counts) = counts.get_mut(*cause) {
                    counts.count(change);
                }
            }
            change.causes = known.as_slice().into();
        }
        let counted = counts.into_iter().enumerate();
        counted.filter(|it| it.1 != PeerCounts::default()).collect()
    }

    /// Returns the causes about a cluster.
    fn about(&self, cluster: &ClusterName) -> &[usize] {
        self.by_cluster.get(cluster).map_or(&[], Vec::as_slice)
    }

    /// Retains the causes of a change, each by its place: those that explain it by themselves, else the
    /// settings and clusters that may.
    fn retain(
        &self,
        known: &mut Vec<usize>,
        effects: &[CauseEffect],
        target: &ClusterName,
        change: &PeerChange,
    ) {
        known.sort_unstable();
        known.dedup();
        known.retain(|&place| {
            let cause = effects.get(place).map(|it| &it.cause);
            cause.is_some_and(|cause| explains(cause, target, change))
        });
        if known.is_empty() {
            known.push(self.other);
        }
    }
}

/// Returns whether a cause explains a change of a Peer, or a part of it.
fn explains(cause: &Cause, target: &ClusterName, change: &PeerChange) -> bool {
    let holder = change.peer.holder.as_ref();
    let is_source = |cluster: &ClusterName| holder.is_some_and(|it| it.cluster == *cluster);
    let comes_or_goes = !matches!(change.peer.kind, PeerChangeKind::Changed(_));
    let mut differences = change.peer.differences().iter();
    let mut has = |is_meant: fn(&Difference) -> bool| comes_or_goes || differences.any(is_meant);
    let is_range = |it: &Difference| {
        matches!(
            it,
            Difference::RangesGained(_) | Difference::RangesLost(_) | Difference::Spelling
        )
    };
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
            "metadata.name" | "topology" | "state" => comes_or_goes,
            "persistentKeepalive" => has(|it| {
                matches!(
                    it,
                    Difference::Keepalive { .. } | Difference::Endpoint { .. }
                )
            }),
            "wireguardPort" | "endpointFrom" | "endpointDomains" => {
                has(|it| matches!(it, Difference::Endpoint { .. }))
            }
            "acceptedNetworks" | "localNetworks" => has(is_range),
            // These are about the source.
            _ => setting.cluster.as_ref().is_none_or(is_source) && has(is_range),
        },
        Cause::NewKey(node) => Some(node) == holder && has(|it| matches!(it, Difference::Key)),
        Cause::NewEndpoint { node, .. } => {
            Some(node) == holder && has(|it| matches!(it, Difference::Endpoint { .. }))
        }
        Cause::NodeJoined(node)
        | Cause::NodeLeft(node)
        | Cause::NodeExcluded { node, .. }
        | Cause::NodeBack { node, .. } => {
            Some(node) == holder && comes_or_goes
                || is_source(&node.cluster) && has_only(change, is_range)
        }
        Cause::NewAddress { from, to, .. } => change
            .peer
            .ranges()
            .any(|it| from.contains(&it) || to.contains(&it)),
        Cause::RangesGained { node, ranges } | Cause::RangesLost { node, ranges } => {
            // If the nodes of a segment swap ranges, its Peer has them in another order.
            change.peer.ranges().any(|it| ranges.contains(&it))
                || is_source(&node.cluster) && has_only(change, |it| *it == Difference::Spelling)
        }
        // Other nodes lead, and each Peer has the ranges of another segment.
        Cause::OtherGranularity { cluster, .. } => is_source(cluster),
        Cause::OtherLocation { node, .. } => {
            Some(node) == holder || is_source(&node.cluster) && has_only(change, is_range)
        }
        Cause::LeaderChanged {
            cluster, from, to, ..
        } => is_source(cluster) && holder.is_some_and(|it| it.node == *from || it.node == *to),
        Cause::AnchorMoved { range, .. } => change.peer.ranges().any(|it| range.overlaps(it)),
        Cause::ForeignPeer { target: it, peer } => it == target && *peer == change.peer.name,
        // A cluster that is only added exchanges no Peers.
        Cause::ClusterAdded { .. } | Cause::Other => false,
    }
}

/// Returns whether a Peer stays and nothing but its ranges differs.
fn has_only(change: &PeerChange, is_range: fn(&Difference) -> bool) -> bool {
    let differences = change.peer.differences();
    !differences.is_empty() && differences.iter().all(is_range)
}
