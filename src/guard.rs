//! The snapshot guard: whether a new snapshot may take the place of the old one.
//!
//! An empty or shrunken tree is how GitOps deletes a mesh. These guards stand against what nodes
//! do, so that behind them only a person can make a render lose Peers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Limits;
use crate::kilo::cluster::Cluster;
use crate::kilo::node::annotation;
use crate::membership::{ExcludedReason, membership};
use crate::mesh::{Entry, Mesh};
use crate::name::MeshName;
use crate::snapshot::{Node, Snapshot};

pub use same_cluster::{NodeOwners, NodeUids, SameCluster, are_most};

/// The effect of a new snapshot on the meshes that its cluster is in.
#[derive(Clone, Debug)]
pub struct GuardDecision {
    /// The number of its nodes that pass the node checks in some mesh; none if no mesh names the
    /// cluster.
    pub usable: Option<usize>,
    /// The reasons why a person must be asked first.
    pub refusals: Vec<GuardRefusal>,
    /// The losses of meshes that are not refused.
    pub losses: Vec<Shrinkage>,
}

/// A new snapshot, and what it is judged by.
#[derive(Clone, Copy, Debug)]
pub struct NewSnapshot<'a> {
    /// The snapshot that it replaces.
    pub old: Option<&'a Snapshot>,
    /// The snapshot.
    pub new: &'a Snapshot,
    /// The meshes that name the cluster, each with the entry that does.
    pub memberships: &'a [(&'a Mesh, &'a Entry)],
}

/// The reason why a person must be asked before a snapshot is written.
#[derive(Clone, Debug)]
pub enum GuardRefusal {
    /// It has no node.
    Empty,
    /// It has more nodes than are believed.
    TooMany {
        /// Their number.
        nodes: usize,
        /// The largest accepted number.
        limit: usize,
    },
    /// A mesh loses too many of its usable nodes.
    Shrunk(Shrinkage),
    /// It shows another cluster, which no person can accept.
    Twin(SameCluster),
}

/// Usable nodes that a mesh loses.
#[derive(Clone, Debug)]
pub struct Shrinkage {
    /// The mesh; none if no mesh names the cluster, and a node counts as usable that has a key and a
    /// pod CIDR.
    pub mesh: Option<MeshName>,
    /// The number of usable nodes before.
    pub before: usize,
    /// Those whose object is gone from the API.
    pub gone: Vec<String>,
    /// Those of them in whose place there is an unusable node of the same name, with the reason.
    pub replaced: Vec<(String, Option<ExcludedReason>)>,
    /// Those that are there but no longer usable, with the reason.
    pub unusable: Vec<(String, Option<ExcludedReason>)>,
    /// The limit that it exceeds, if it is not all of them.
    pub limit: Option<ShareLimit>,
}

/// A limit of the share of usable nodes that a mesh may lose.
#[derive(Clone, Copy, Debug)]
pub struct ShareLimit {
    /// The share, in percent.
    pub percent: usize,
    /// The weight of a node whose object is gone, in percent.
    pub gone_percent: usize,
}

/// Decides whether a new snapshot may take the place of the old one.
pub fn decide(candidate: NewSnapshot, limits: &Limits) -> GuardDecision {
    let NewSnapshot { old, new, memberships } = candidate;
    let mut refusals = Vec::new();
    if new.nodes.is_empty() {
        // No more details are needed.
        return GuardDecision {
            usable: (!memberships.is_empty()).then_some(0),
            refusals: vec![GuardRefusal::Empty],
            losses: Vec::new(),
        };
    }
    if limits.nodes < new.nodes.len() {
        refusals.push(GuardRefusal::TooMany { nodes: new.nodes.len(), limit: limits.nodes });
    }
    let mut usable: BTreeSet<String> = BTreeSet::new();
    let mut losses = Vec::new();
    for (mesh, entry) in memberships {
        let now = UsableNodes::of_member(mesh, entry, new);
        if let Some(old) = old {
            let before = UsableNodes::of_member(mesh, entry, old);
            losses.push(shrinkage(Some(&mesh.name), old, &before, new, &now));
        }
        usable.extend(now.usable);
    }
    if let (true, Some(old)) = (memberships.is_empty(), old) {
        let (before, now) = (UsableNodes::without_mesh(old), UsableNodes::without_mesh(new));
        losses.push(shrinkage(None, old, &before, new, &now));
    }
    losses.retain(|loss| 0 < loss.nodes());
    let (too_much, losses): (Vec<Shrinkage>, Vec<Shrinkage>) =
        losses.into_iter().partition(|it| it.is_too_much(limits));
    let share = ShareLimit { percent: limits.lost_percent, gone_percent: limits.gone_percent };
    refusals.extend(too_much.into_iter().map(|loss| {
        let limit = (loss.nodes() < loss.before).then_some(share);
        GuardRefusal::Shrunk(Shrinkage { limit, ..loss })
    }));
    GuardDecision { usable: (!memberships.is_empty()).then_some(usable.len()), refusals, losses }
}

/// The usable nodes of a snapshot, and the reasons why others are not usable.
struct UsableNodes {
    usable: BTreeSet<String>,
    reasons: BTreeMap<String, ExcludedReason>,
}

impl UsableNodes {
    /// Looks with the eyes of a mesh.
    fn of_member(mesh: &Mesh, entry: &Entry, snapshot: &Snapshot) -> Self {
        // The places of the nodes are not needed: the message names them.
        let cluster = Cluster::new(entry, snapshot);
        let membership = membership(&mesh.name, &cluster, &Arc::from(""));
        let excluded = membership.excluded.into_iter();
        Self {
            usable: membership.usable,
            reasons: excluded.map(|it| (it.node, it.reason)).collect(),
        }
    }

    /// Looks for what every mesh asks of a node.
    fn without_mesh(snapshot: &Snapshot) -> Self {
        let has_both = |node: &&Node| {
            let key = node.annotations.get(annotation::KEY);
            key.is_some_and(|key| !key.is_empty()) && !node.pod_cidrs.is_empty()
        };
        let usable = snapshot.nodes.iter().filter(has_both);
        Self { usable: usable.map(|node| node.name.clone()).collect(), reasons: BTreeMap::new() }
    }
}

fn shrinkage(
    mesh: Option<&MeshName>,
    old: &Snapshot,
    before: &UsableNodes,
    new: &Snapshot,
    now: &UsableNodes,
) -> Shrinkage {
    let mut loss = Shrinkage {
        mesh: mesh.cloned(),
        before: before.usable.len(),
        gone: Vec::new(),
        replaced: Vec::new(),
        unusable: Vec::new(),
        limit: None,
    };
    for name in &before.usable {
        if now.usable.contains(name) {
            continue;
        }
        let both = old.node(name).zip(new.node(name));
        if both.is_some_and(|(before, now)| is_same(before, now)) {
            let reason = now.reasons.get(name).cloned();
            loss.unusable.push((name.clone(), reason));
        } else {
            loss.gone.push(name.clone());
            let replaced = both.map(|_| (name.clone(), now.reasons.get(name).cloned()));
            loss.replaced.extend(replaced);
        }
    }
    loss
}

/// Returns whether two nodes of one name are one object; a dump made by hand may have no uid.
fn is_same(before: &Node, now: &Node) -> bool {
    before.uid == now.uid || before.uid.is_empty() || now.uid.is_empty()
}

impl Shrinkage {
    /// Returns how many nodes are lost.
    pub fn nodes(&self) -> usize {
        self.gone.len() + self.unusable.len()
    }

    /// Returns whether it is all, or more than the limits allow. A node that is gone from the API
    /// counts less than one that is there: clusters scale down.
    fn is_too_much(&self, limits: &Limits) -> bool {
        if self.before == 0 {
            return false;
        }
        let percents = 100 * self.unusable.len() + limits.gone_percent * self.gone.len();
        self.nodes() == self.before || limits.are_exceeded(percents, self.before)
    }
}

#[cfg(test)]
mod tests;
mod same_cluster;
