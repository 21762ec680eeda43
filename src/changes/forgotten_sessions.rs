//! Forgotten sessions: nodes that forget their sessions when Kilo writes all of WireGuard, and that have nothing of
//! their own to send (`kilo.md` §2.10); and nodes behind NAT whose addresses are forgotten.
//!
//! Others know a node behind NAT only by the address from which it is seen. Every Peer that changes is a pass of its own,
//! and a pass that changes anything forgets all handshakes. A second pass before the next handshake forgets the learned
//! addresses too (`kilo.md` §2.9).

use std::collections::BTreeSet;

use super::cause::NamedNode;
use super::cluster_transition::ClusterTransition;
use super::peer_change::{ChangedPeer, Difference, PeerChange, PeerChangeKind, named_node};
use crate::agent::fabric::{Fabric, Holding, NodeRef, Site, SiteId};
use crate::agent::model::Model;
use crate::kilo::id::{NodeId, SegmentId};
use crate::kilo::node::KiloNode;
use crate::kilo::seen::{PUBLISHING, SeenAddress};

/// Returns the names of the nodes of a target at which traffic pauses: those that lead a segment, perhaps, send no
/// keepalives, and had a tunnel before.
pub(super) fn pausing(transition: &ClusterTransition, changes: &[PeerChange]) -> Vec<String> {
    if !changes.iter().any(|it| rewrites(&it.peer)) {
        return Vec::new();
    }
    let (now, after) = (&transition.peers.now.model, &transition.peers.after.model);
    let topology = &after.topology;
    let had_peers = now.peers.ids().any(|it| now.share(it).is_some());
    let segments = topology.segments.ids();
    let segments = segments.filter(|it| had_peers || has_others(*it, after));
    let leaders = segments.flat_map(|it| topology.possible_leaders(it));
    let silent = leaders.filter(|it| topology.nodes[*it].kilo.keepalive == 0);
    let names = silent.map(|it| topology.nodes[it].kilo.name.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns whether Kilo writes all of WireGuard again for a change. It does not write the keepalive of a Peer there.
pub(super) fn rewrites(peer: &ChangedPeer) -> bool {
    let is_keepalive = |it: &Difference| matches!(it, Difference::Keepalive { .. });
    match &peer.kind {
        PeerChangeKind::Changed(differences) => !differences.iter().all(is_keepalive),
        PeerChangeKind::Added { .. } | PeerChangeKind::Removed { .. } => true,
    }
}

/// Returns whether a segment has a tunnel to another one of its cluster.
fn has_others(segment: SegmentId, model: &Model) -> bool {
    model.topology.segments.ids().any(|it| !model.topology.are_one(segment, it))
}

/// Leaders of a target that may forget the addresses of nodes behind NAT. Any of these and any of those are a pair.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForgottenAddresses {
    /// The names of the leaders.
    pub leaders: BTreeSet<String>,
    /// The nodes behind NAT.
    pub nodes: BTreeSet<NamedNode>,
    /// Peers behind NAT whose keys no node has.
    pub peers: BTreeSet<String>,
    /// True if two leaders send keepalives, of which one publishes what the other has forgotten.
    pub is_published: bool,
}

/// The time after which a node behind NAT is reachable again that has something to send, in seconds.
pub const FORGOTTEN_SECONDS: f64 = 15.0;

/// The same for a node that sends nothing: its session has to end first, in seconds.
pub const FORGOTTEN_IDLE_SECONDS: f64 = 205.0;

impl ForgottenAddresses {
    /// Finds those of a target.
    pub(super) fn find(
        number: SiteId,
        transition: &ClusterTransition,
        changes: &[PeerChange],
        after: &Fabric,
    ) -> Option<Self> {
        if !changes.iter().any(|it| rewrites(&it.peer)) {
            return None;
        }
        let site = &*transition.peers.after;
        let kilo = |it: NodeId| &*site.node(it).kilo;
        let public = site.model.topology.all_possible_leaders();
        let public: Vec<NodeId> = public.filter(|it| is_dialled(site, *it)).collect();
        let sends = |it: &&NodeId| 0 < kilo(**it).keepalive;
        let sending = public.iter().filter(sends).count();
        // One pass is enough where a leader does not shake hands by itself before the next one.
        let forgets = |it: &&NodeId| 1 < changes.len() || !sends(it);
        let forgetting: Vec<NodeId> = public.iter().filter(forgets).copied().collect();
        if forgetting.is_empty() {
            return None;
        }
        let mut forgotten = Self {
            leaders: forgetting.iter().map(|it| kilo(*it).name.clone()).collect(),
            nodes: BTreeSet::new(),
            peers: BTreeSet::new(),
            is_published: PUBLISHING <= sending,
        };
        forgotten.add_peers(number, transition, after);
        forgotten.add_own(number, &forgetting, after);
        let is_any = !forgotten.nodes.is_empty() || !forgotten.peers.is_empty();
        is_any.then_some(forgotten)
    }

    /// Adds Peers that had a tunnel before, and are known by no other address than the learned one.
    fn add_peers(&mut self, number: SiteId, transition: &ClusterTransition, after: &Fabric) {
        let (now, model) = (&transition.peers.now.model, &transition.peers.after.model);
        for peer in model.peers.ids() {
            let Some(translation) = model.share(peer).map(|it| it.translation) else {
                continue;
            };
            let is_learned = translation.dialled().is_none() && translation.keepalive.is_some();
            if !is_learned || now.peers_with(&translation.key).is_empty() {
                continue;
            }
            match after.holding(number, peer) {
                Holding::One(at) => drop(self.nodes.insert(named_node(after, at))),
                Holding::Nobody | Holding::Many => {
                    let name = model.peers[peer].applied.name.clone();
                    self.peers.insert(name);
                }
            }
        }
    }

    /// Adds leaders of the target itself that are behind NAT for another one. Those in their own network may dial them
    /// at the address that the other one has published.
    fn add_own(&mut self, number: SiteId, forgetting: &[NodeId], after: &Fabric) {
        let site = after.site(number);
        if site.entry.keepalive.is_none() {
            return;
        }
        let kilo = |it: NodeId| &*site.node(it).kilo;
        let leaders: Vec<NodeId> = site.model.topology.all_possible_leaders().collect();
        let behind_nat = leaders.iter().filter(|node| {
            let mut others = forgetting.iter().filter(|it| it != node);
            others.any(|it| is_behind_nat(kilo(**node), kilo(*it)))
        });
        let own = behind_nat.map(|it| named_node(after, NodeRef { site: number, node: *it }));
        let own: BTreeSet<NamedNode> = own.collect();
        if !own.is_empty() {
            let names = leaders.iter().map(|it| kilo(*it).name.clone());
            self.leaders.extend(names);
            self.nodes.extend(own);
        }
    }
}

/// Returns whether other clusters dial a node.
fn is_dialled(site: &Site, node: NodeId) -> bool {
    site.reading.nodes[node].checked.endpoint().is_some()
}

/// Returns whether a node that sends keepalives has a private endpoint outside the network of another one that is
/// public.
fn is_behind_nat(node: &KiloNode, other: &KiloNode) -> bool {
    let seen = SeenAddress::of(node);
    let is_private = matches!(seen, SeenAddress::Private(_));
    let is_hidden = is_private && seen.from(other.lan).is_none();
    0 < node.keepalive && is_hidden && other.has_public_endpoint()
}
