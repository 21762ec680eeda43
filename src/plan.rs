//! The plan: which Peers every cluster gets, and which Peers and ranges it does not get.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::fleet::Fleet;
use crate::id::{Id, Numbered};
use crate::kilo::peer::Peer;
use crate::name::{ClusterName, MeshName, PeerSetName};
use crate::net::Cidr;

use self::conflicts::Conflicts;
use self::decision::Decisions;
use self::key::Keepers;
use self::peer_set::{PeerSetKey, PeerSets};
use self::target_view::TargetView;

mod accepted;
mod anchor;
mod carrier;
mod contenders;
mod decision;
mod peer_set;
mod withheld;
mod conflicts;
mod captured;
mod key;
mod loops;
mod absent_source;
mod promise;
mod rangeless;
mod refused;
mod range_network;
mod succession;
mod target_view;
mod named;
mod own_loops;
mod pods;

pub use absent_source::AbsentSource;
pub use accepted::accepted_of;
pub use promise::BrokenPromise;
pub use withheld::{
    AnchorProblem, Captured, CapturedOutcome, DistantAnchor, FewerAnchors, LocalAddress,
    LocalNetwork, LoopingPeer, LoopingRanges, PerNodePods, SilentAnchor, TargetReason,
    UnknownAnchor, Withheld, WithheldEndpoint, WithheldRanges,
};

/// The Peers of every cluster.
#[derive(Debug, Default)]
pub struct Plan {
    /// Every different set of Peers, each used by one target or many.
    pub peer_sets: EachPeerSet<PeerSet>,
    /// Every cluster, by name.
    pub targets: Vec<Target>,
    /// Every external peer, by name, with the Peers of its own WireGuard, which its owner installs: those of clusters that
    /// get a Peer of it.
    pub externals: Vec<Target>,
    /// The Peers and ranges that targets do not get although their sources offer them.
    pub withheld: Vec<Withheld>,
    /// Clusters with nodes that give no other cluster a Peer although some see them, by name.
    pub silent: Vec<ClusterName>,
}

/// The Peers that one source gives to one target, or to many, one for each segment.
#[derive(Debug)]
pub struct PeerSet {
    /// The common beginning of their names.
    pub name: PeerSetName,
    /// The mesh that links the two.
    pub mesh: MeshName,
    /// The cluster that they lead to.
    pub source: ClusterName,
    /// The Peers, by name; never none.
    pub peers: Vec<Peer>,
    /// The cluster-wide ranges among those that they carry.
    pub shared: Vec<Cidr>,
}

/// The sets of Peers of a plan.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfPeerSet {}

/// The number of a set of Peers in its plan.
pub type PeerSetId = Id<OfPeerSet>;

/// Something about each set of Peers of a plan.
pub type EachPeerSet<T> = Numbered<OfPeerSet, T>;

/// A cluster as a target.
#[derive(Debug)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterName,
    /// The sets of Peers that it gets, in order of their names.
    pub peer_sets: Vec<PeerSetId>,
    /// The names of the sets of all sources that it sees, also of those that give it nothing.
    pub seen: BTreeSet<PeerSetName>,
    /// Sources that it sees and that give it nothing.
    pub without: BTreeSet<ClusterName>,
    /// Those of them that people let give it something.
    pub absent: BTreeMap<ClusterName, AbsentSource>,
    /// Clusters that no longer give it anything because one of the two leaves.
    pub parted: BTreeSet<ClusterName>,
}

impl Plan {
    /// Returns the targets that see other clusters and get no Peer because of the mesh or the config.
    /// Targets that get none because of claims of nodes are not included: a node must not be able to
    /// stop the render for all clusters. Nor are those that see no cluster because of states: people
    /// wrote that the cluster, or all others, have not joined.
    pub fn empty(&self) -> impl Iterator<Item = &Target> {
        self.targets
            .iter()
            .filter(|it| it.peer_sets.is_empty())
            .filter(|it| !it.without.is_empty())
            .filter(|it| !it.absent.values().any(|absent| absent.is_claimed))
    }

    /// Returns the sets of Peers that a target gets.
    pub fn sets_of<'p>(&'p self, target: &'p Target) -> impl Iterator<Item = &'p PeerSet> {
        target.peer_sets.iter().map(|it| &self.peer_sets[*it])
    }

    /// Returns the Peers that a cluster gets.
    pub fn peers_of(&self, cluster: &ClusterName) -> impl Iterator<Item = &Peer> {
        let target = self.targets.iter().find(move |it| it.cluster == *cluster);
        target.into_iter().flat_map(|it| self.sets_of(it)).flat_map(|it| &it.peers)
    }

    /// Returns whether a target gets a Peer of a cluster that carries an address.
    pub fn gives(&self, target: &Target, source: &ClusterName, address: IpAddr) -> bool {
        let sets = self.sets_of(target).filter(|it| it.source == *source);
        let mut ranges = sets.flat_map(|it| &it.peers).flat_map(|it| &it.allowed_ips);
        ranges.any(|it| it.contains(Cidr::host(address)))
    }

    /// Returns the targets and sources of which the target gets nothing because of a claim of one node.
    pub fn lost_to_one(&self) -> impl Iterator<Item = (&ClusterName, &ClusterName)> {
        self.targets.iter().flat_map(|target| {
            let absent = target.absent.iter().filter(|it| it.1.is_lost_to_one());
            absent.map(|it| (&target.cluster, it.0))
        })
    }

    /// Returns the targets that get no Peer because of the data of their own nodes.
    pub fn cut_off(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|it| it.peer_sets.is_empty()).filter(|it| {
            let mut wanted = it.absent.values().filter(|it| it.is_let()).peekable();
            wanted.peek().is_some() && wanted.all(|it| 0 < it.own_reasons)
        })
    }
}

/// Plans a fleet.
///
/// # Errors
/// Never, unless this program is wrong about its own promise: nothing outside of what sources
/// declare and targets accept.
pub fn plan(fleet: &Fleet) -> Result<Plan, BrokenPromise> {
    let conflicts = Conflicts::new(fleet);
    let mut peer_sets = PeerSets::default();
    let mut withheld = Vec::new();
    let mut planned = |target| {
        let view = TargetView::new(&conflicts, target);
        plan_target(target, &view, &mut peer_sets, &mut withheld)
    };
    let targets: Vec<Target> = fleet.clusters().map(&mut planned).collect::<Result<_, _>>()?;
    let mut externals: Vec<Target> =
        fleet.externals().map(&mut planned).collect::<Result<_, _>>()?;
    let known = hosts_by_cluster(&targets, &peer_sets.made);
    for external in &mut externals {
        let cluster = &external.cluster;
        external.peer_sets.retain(|it| known.contains(&(&peer_sets.made[*it].source, cluster)));
    }
    Ok(Plan {
        silent: silent(fleet, &peer_sets.made, &targets),
        peer_sets: peer_sets.made,
        targets,
        externals,
        withheld,
    })
}

/// Returns the external peers of which each cluster gets a Peer.
fn hosts_by_cluster<'p>(
    targets: &'p [Target],
    peer_sets: &'p EachPeerSet<PeerSet>,
) -> BTreeSet<(&'p ClusterName, &'p ClusterName)> {
    let sets = targets.iter().flat_map(|target| {
        target.peer_sets.iter().map(move |it| (&target.cluster, &peer_sets[*it].source))
    });
    sets.filter(|it| it.1.is_external()).collect()
}

/// Plans what one cluster gets.
fn plan_target(
    target: &ClusterName,
    view: &TargetView,
    peer_sets: &mut PeerSets,
    withheld: &mut Vec<Withheld>,
) -> Result<Target, BrokenPromise> {
    let mut decisions = decisions(view);
    let mut keepers = Keepers::new();
    let mut given = Vec::new();
    let mut without = BTreeSet::new();
    let mut absent = BTreeMap::new();
    for source in &view.sources {
        let mut decision = decisions.remove(&source.id).unwrap_or_default();
        key::settle(view, source, &mut keepers, &mut decision);
        let key = PeerSetKey {
            member: source.id,
            family: view.family,
            excluded: decision.excluded,
            withheld: decision.withheld,
            holes: decision.holes,
        };
        let draft = peer_sets.draft(source.member, view.conflicts.own_loops(source.id), key)?;
        if let (Some(accepted), Some(peer_set)) = (view.accepted(source), draft.peer_set) {
            promise::is_accepted(target, accepted, &peer_sets.made[peer_set])?;
        }
        given.extend(draft.peer_set);
        let name = &source.member.entry.name;
        let mut reasons = decision.reasons;
        reasons.extend(draft.reasons.iter().cloned());
        if draft.peer_set.is_none() {
            without.insert(name.clone());
            absent.extend(AbsentSource::find(view, source, &reasons).map(|it| (name.clone(), it)));
        }
        withheld.extend(reasons.into_iter().map(|reason| Withheld {
            target: target.clone(),
            source: name.clone(),
            reason,
        }));
    }
    let seen = view.sources.iter().map(|it| it.member);
    let seen = seen.map(|it| PeerSetName::new(&it.mesh.name, &it.entry.name));
    given.sort_by_key(|it| &peer_sets.made[*it].name);
    Ok(Target {
        cluster: target.clone(),
        peer_sets: given,
        seen: seen.collect(),
        without,
        absent,
        parted: view.conflicts.fleet.parted(target).cloned().collect(),
    })
}

/// Returns what is left out for a target, and why, except what follows from keys.
///
/// Each check sees everything that the sources offer, not the rest of another check, so no
/// result depends on another one.
fn decisions(view: &TargetView) -> Decisions {
    let mut decisions = Decisions::new();
    for source in &view.sources {
        loops::settle(view, source, &mut decisions);
        captured::settle(view, source, &mut decisions);
    }
    for source in &view.sources {
        rangeless::count(view, source, &mut decisions);
    }
    for source in &view.sources {
        refused::settle(view, source, &mut decisions);
    }
    decisions
}

/// Returns the clusters that give nothing, unless a claim of one node is why: it must not stop the render for all others.
fn silent(fleet: &Fleet, peer_sets: &[PeerSet], targets: &[Target]) -> Vec<ClusterName> {
    let giving: BTreeSet<&ClusterName> =
        peer_sets.iter().map(|peer_set| &peer_set.source).collect();
    let could_give = |cluster: &ClusterName| {
        fleet
            .memberships(cluster)
            .any(|it| !it.cluster.nodes.is_empty() && it.targets().next().is_some())
    };
    let is_claim = |cluster: &ClusterName| {
        let absent = targets.iter().filter_map(|it| it.absent.get(cluster));
        let mut absent = absent.peekable();
        absent.peek().is_some() && absent.all(AbsentSource::is_lost_to_one)
    };
    let clusters = fleet.clusters();
    let silent = clusters.filter(|it| !giving.contains(it) && could_give(it) && !is_claim(it));
    silent.cloned().collect()
}

#[cfg(test)]
mod tests;
