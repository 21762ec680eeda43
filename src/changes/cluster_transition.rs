//! Cluster transitions: the clusters with their new nodes, on the way from their old to their new Peers.
//!
//! The old Peers of a cluster, its new Peers and each table in between are a stage. Two clusters can be in any of their
//! stages at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::blocks::FollowedAddresses;
use super::cause::DECIDING_PROOF;
use super::clusters::Counterparts;
use super::peer_change::PeerDifferences;
use super::rollout_tables::{RolloutTables, TransientTable};
use super::{Versions, settings};
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, Site, SiteId, Sites};
use crate::engine::Engines;
use crate::kilo::cluster::ClusterNode;
use crate::net::Cidr;

/// A cluster on the way from the old to the new version.
pub(super) struct ClusterTransition<'s> {
    /// It with its old and its new Peers, and its new nodes.
    pub(super) peers: PeerDifferences<'s>,
    /// True if its Peers have changed.
    pub(super) has_new_peers: bool,
    /// True if its nodes, or the declarations about it, have changed.
    pub(super) has_new_nodes: bool,
    /// True if a mesh declares something else about it that decides which paths are proved.
    pub(super) has_new_premises: bool,
    /// The states of its agents in between.
    pub(super) rollout: RolloutTables<'s>,
}

/// All clusters of the new version on their way.
pub(super) struct ClusterTransitions<'s>(pub(super) Sites<ClusterTransition<'s>>);

impl<'s> ClusterTransitions<'s> {
    /// Finds them.
    pub(super) fn new<'a: 's, 'b: 's>(
        Versions { before, after }: Versions<&Fabric<'a>, &Fabric<'b>>,
        counterparts: &Counterparts,
        followed: &FollowedAddresses,
        engines: &Engines,
    ) -> Self {
        let sites: Vec<SiteId> = after.sites.ids().collect();
        let transitions = sites.into_par_iter().map(|number| {
            let old = counterparts.before(number);
            let old = old.and_then(|it| before.sites.get(it.index()));
            let new: Arc<Site<'s>> = Arc::clone(&after.sites[number]) as _;
            let mut transition = ClusterTransition::new(old.map(|it| Arc::clone(it) as _), new);
            if transition.has_new_peers {
                let orders = engines.orders(transition.peers.after.cluster);
                transition.rollout =
                    RolloutTables::find(number, &transition.peers, followed, &orders);
            }
            transition
        });
        Self(Sites::new(transitions.collect()))
    }
}

impl<'s> ClusterTransition<'s> {
    fn new(old: Option<Arc<Site<'s>>>, after: Arc<Site<'s>>) -> Self {
        let has_new_nodes = old.as_ref().is_none_or(|old| has_new_nodes(old, &after));
        let has_new_premises = old.as_ref().is_some_and(|old| {
            DECIDING_PROOF.iter().any(|it| old.entry.values(it) != after.entry.values(it))
        });
        let files: &'s [AppliedFile] = old.as_ref().map_or(&[], |it| it.files);
        let has_new_peers = !have_same_peers(files, after.files);
        let now = match old {
            _ if !has_new_peers => Arc::clone(&after),
            Some(old) if !has_new_nodes => old,
            Some(old) => Arc::new(old.with_nodes_of(&after)),
            None => Arc::new(after.with_files(files)),
        };
        Self {
            peers: PeerDifferences::find(now, after),
            has_new_peers,
            has_new_nodes,
            has_new_premises,
            rollout: RolloutTables::default(),
        }
    }

    /// Returns whether it gets its first Peers. Without any, its nodes connect to none of the others, also not with a key that
    /// two nodes have.
    fn begins(&self) -> bool {
        let has_peers = |site: &Site| site.model.peers.iter().next().is_some();
        !has_peers(&self.peers.now) && has_peers(&self.peers.after)
    }

    /// Returns how many stages it has.
    pub(super) fn stages(&self) -> usize {
        if self.has_new_peers { 2 + self.rollout.tables.len() } else { 1 }
    }

    /// Returns whether everything has arrived in a stage between the old and the new Peers, but a Peer is missing.
    pub(super) fn is_final(&self, stage: StageId) -> bool {
        self.table(stage).is_some_and(|it| it.is_final)
    }

    pub(super) fn table(&self, stage: StageId) -> Option<&TransientTable<'s>> {
        self.rollout.tables.get(stage.checked_sub(2)?)
    }
}

/// Returns whether nodes differ, or anything that a mesh declares about their cluster.
fn has_new_nodes(old: &Site, new: &Site) -> bool {
    // Versions that share the reading of a cluster have the same nodes.
    if Arc::ptr_eq(&old.reading, &new.reading) {
        return false;
    }
    old.cluster != new.cluster
        || old.snapshot.nodes != new.snapshot.nodes
        || settings::differ(old.entry, new.entry)
}

/// Returns whether files have the same Peers in the same order. Most texts are read only once.
fn have_same_peers(old: &[AppliedFile], new: &[AppliedFile]) -> bool {
    let is_same = |(old, new): (&AppliedFile, &AppliedFile)| {
        Arc::ptr_eq(&old.content, &new.content) || {
            let (old, new) = (&old.content.peers, &new.content.peers);
            let mut pairs = old.iter().zip(new);
            old.len() == new.len() && pairs.all(|(a, b)| a.name == b.name && a.spec == b.spec)
        }
    };
    old.len() == new.len() && old.iter().zip(new).all(is_same)
}

/// The number of a stage: what a cluster has.
pub(super) type StageId = usize;

/// The stages of two clusters in a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagePair {
    /// That of the cluster that sends.
    pub(super) sender: StageId,
    /// That of the cluster that receives.
    pub(super) receiver: StageId,
}

impl StagePair {
    /// Returns the larger number of both stages. Those of the old and the new Peers are the smallest.
    pub(super) fn most(self) -> StageId {
        self.sender.max(self.receiver)
    }

    /// Returns a state in which both clusters are in the same stage.
    pub(super) fn same(stage: StageId) -> Self {
        Self { sender: stage, receiver: stage }
    }
}

/// The old Peers.
pub(super) const OLD: StageId = 0;
/// The new Peers. Between the two are the tables on the way.
pub(super) const NEW: StageId = 1;

/// All clusters, each in a stage; with fewer stages, in the new version.
pub(super) struct StagedClusters<'p, 's> {
    transitions: &'p ClusterTransitions<'s>,
    stages: Sites<StageId>,
    /// The Peers of those that are between the old and the new version.
    files: Sites<Option<Vec<AppliedFile>>>,
}

impl<'p, 's> StagedClusters<'p, 's> {
    /// Takes a stage for each cluster.
    pub(super) fn new(
        transitions: &'p ClusterTransitions<'s>,
        stage: impl Fn(SiteId) -> StageId,
    ) -> Self {
        let stages = transitions.0.map_ids(stage);
        let files = transitions.0.map_ids(|it| {
            let transition = &transitions.0[it];
            Some(transition.table(stages[it])?.files(transition.peers.after.files))
        });
        Self { transitions, stages, files }
    }

    /// Joins them. They share with another fabric what is the same.
    pub(super) fn fabric<'f>(&'f self, other: &Fabric) -> Fabric<'f> {
        let sites = other.in_order_of_rank().map(|number| {
            let transition = &self.transitions.0[number];
            let PeerDifferences { now, after, .. } = &transition.peers;
            match &self.files[number] {
                Some(files) => Arc::new(after.with_files(files)),
                None if self.stages[number] == OLD => Arc::clone(now) as Arc<Site<'f>>,
                None => Arc::clone(after) as _,
            }
        });
        let idle = self.transitions.0.numbered().filter(|(number, it)| {
            self.stages[*number] == OLD && it.begins() && self.files[*number].is_none()
        });
        let idle: BTreeSet<SiteId> = idle.map(|it| it.0).collect();
        Fabric::with_idle(sites.collect(), Some(other), &idle)
    }
}

/// Pairs of clusters whose paths the changes can affect.
pub(super) struct AffectedPairs(Sites<Sites<bool>>);

impl AffectedPairs {
    /// Finds them: those with a cluster that has other nodes or its first Peers, those in which changed Peers have addresses
    /// or keys of the other, and all pairs of a cluster in which changed Peers can disturb any path.
    pub(super) fn new(
        transitions: &ClusterTransitions,
        fabrics: Versions<&Fabric, &Fabric>,
        followed: &FollowedAddresses,
    ) -> Self {
        let is_new = |it: &ClusterTransition| it.has_new_nodes || it.begins();
        let with_new_nodes = transitions.0.numbered().filter(|it| is_new(it.1));
        let with_new_nodes: BTreeSet<SiteId> = with_new_nodes.map(|it| it.0).collect();
        let mut wide = with_new_nodes.clone();
        if wide.len() < transitions.0.len() {
            wide.extend(with_new_nodes.iter().flat_map(|it| entangled(*it, fabrics.after)));
        }
        let mut affected = transitions.0.map(|_| BTreeSet::new());
        for (number, transition) in transitions.0.numbered() {
            // All pairs of these are proved in any case.
            if !transition.has_new_peers || wide.contains(&number) {
                continue;
            }
            let ranges = transition.peers.ranges(|_| true);
            let mut dialled = ranges
                .iter()
                .flat_map(|it| fabrics.before.dialled(*it).chain(fabrics.after.dialled(*it)));
            if is_disturbed(transition) || dialled.next().is_some() {
                wide.insert(number);
            }
            affected[number].extend(ranges.iter().flat_map(|it| followed.owners(*it)));
            let keys = transition.peers.keys();
            affected[number].extend(keys.iter().flat_map(|it| fabrics.after.holding_sites(it)));
        }
        let is_affected = |one: SiteId, other: SiteId| {
            one != other
                && (wide.contains(&one)
                    || wide.contains(&other)
                    || affected[one].contains(&other)
                    || affected[other].contains(&one))
        };
        let row = |one| transitions.0.map_ids(|other| is_affected(one, other));
        Self(transitions.0.map_ids(row))
    }

    /// Returns whether changes can affect the paths between two clusters.
    pub(super) fn has(&self, one: SiteId, other: SiteId) -> bool {
        self.0[one][other]
    }

    /// Returns the clusters to which a cluster has such paths.
    pub(super) fn others(&self, one: SiteId) -> impl Iterator<Item = SiteId> {
        self.0[one].numbered().filter(|it| *it.1).map(|it| it.0)
    }
}

/// Returns whether the Peers of a cluster can change what becomes of packets that are not theirs.
fn is_disturbed(transition: &ClusterTransition) -> bool {
    [&transition.peers.now, &transition.peers.after].iter().any(|site| {
        !site.is_undisturbed()
            || site.has_own_keys()
            || !site.model.contests.is_empty()
            || site.reading.topology.has_location_ranges()
    })
}

/// Returns other clusters whose keys or endpoints nodes of a cluster claim.
fn entangled(number: SiteId, fabric: &Fabric) -> BTreeSet<SiteId> {
    let site = fabric.site(number);
    let keys = site.model.topology.nodes.iter();
    let keys = keys.filter_map(|it| it.kilo.key);
    let holders = keys.flat_map(|it| fabric.holding_sites(&it).collect::<Vec<_>>());
    let endpoints = site.reading.nodes.iter().flat_map(ClusterNode::endpoints);
    let dialled = endpoints.flat_map(|it| fabric.dialled(Cidr::host(it.0)).collect::<Vec<_>>());
    let others = holders.chain(dialled.flatten());
    others.filter(|it| *it != number).collect()
}
