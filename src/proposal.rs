//! Proposals: a mesh for clusters of which only the nodes are known, with the reason for every line.
//!
//! Nodes may lie, so a value is proposed only if more than half of the nodes agree on it. A node that
//! does not fit becomes a finding when the mesh is checked, and never a wider range.

use std::collections::BTreeMap;

use crate::document::Source;
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::mesh::{self, Distribution, Entry};
use crate::name::{ClusterName, MeshName};
use crate::net::{Cidr, Family};
use crate::snapshot::Snapshot;
use externals::Externals;

pub use distribution::distribution;
pub use endpoints::EndpointAdvice;
pub use existing::ExistingMesh;
pub use externals::HandMadePeer;
pub use insertion::{InsertionObstacle, insert, pasteable};
pub use obstacle::{Obstacle, RangePurpose, RangeUse};
pub use planned::{PlannedCluster, RangeSizes, plan};
pub use ranges::{AgreedRange, RangeProblem, WireguardRange, pod_ranges};

mod distribution;
mod endpoints;
mod existing;
mod externals;
mod insertion;
mod obstacle;
mod planned;
mod ranges;
#[cfg(test)]
mod tests;
mod written;

/// A proposed mesh.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its name.
    pub name: MeshName,
    /// Its clusters, in the order of trust.
    pub clusters: Vec<ProposedCluster>,
    /// Entries for Peers that were made by hand.
    externals: Externals,
    /// The mesh to which the clusters are added.
    existing: ExistingMesh,
}

/// A proposed entry.
#[derive(Clone, Debug)]
pub struct ProposedCluster {
    /// The cluster.
    pub name: ClusterName,
    /// The pod ranges of most nodes, at most one of each family.
    pub pods: Vec<AgreedRange>,
    /// The pod ranges of families that no cluster routes.
    pub unrouted_pods: Vec<AgreedRange>,
    /// The range of the nodes' WireGuard addresses.
    pub wireguard: WireguardRange,
    /// The granularity that most nodes report.
    pub granularity: Option<Granularity>,
    /// The fields that let other clusters dial the nodes.
    pub endpoints: EndpointAdvice,
    /// The ranges of its Services, if its API server shows them.
    pub services: Vec<Cidr>,
    /// Its distribution, if it is known.
    pub distribution: Option<Distribution>,
}

impl Proposal {
    /// Proposes a mesh of clusters, in this order of trust.
    ///
    /// # Errors
    /// Everything that keeps the clusters from being joined.
    pub fn new(name: MeshName, snapshots: &[Snapshot]) -> Result<Self, Vec<Obstacle>> {
        Self::added(name, snapshots, ExistingMesh::default())
    }

    /// Proposes entries for clusters that are added to a mesh.
    ///
    /// # Errors
    /// Everything that keeps the clusters from being joined.
    pub fn added(
        name: MeshName,
        snapshots: &[Snapshot],
        mut existing: ExistingMesh,
    ) -> Result<Self, Vec<Obstacle>> {
        for node in snapshots.iter().flat_map(ranges::read) {
            existing.avoid_node(&node);
        }
        let mut clusters = Vec::new();
        let mut obstacles = Vec::new();
        for snapshot in snapshots {
            match ProposedCluster::new(snapshot) {
                Ok(cluster) => clusters.push(cluster),
                Err(obstacle) => obstacles.push(obstacle),
            }
        }
        let mut proposal = Self { name, clusters, externals: Externals::default(), existing };
        proposal.narrow_pods();
        proposal.choose_subnets();
        obstacles.extend(proposal.overlaps());
        if !obstacles.is_empty() {
            return Err(obstacles);
        }
        let entries = proposal.entries()?;
        let mut routed = Vec::new();
        for (cluster, snapshot) in proposal.clusters.iter_mut().zip(snapshots) {
            let unread =
                || vec![Obstacle::Refused(format!("the entry of {} cannot be read", cluster.name))];
            let entry = entries.get(&cluster.name).ok_or_else(unread)?;
            let read = Cluster::new(entry, snapshot);
            cluster.granularity = read.voted;
            cluster.endpoints = EndpointAdvice::new(&read);
            routed.push(read.family);
        }
        proposal.leave_out_unrouted(&routed);
        Ok(proposal)
    }

    /// Adds the ranges of the Services of a cluster. Peers of other clusters must not take them over.
    pub fn add_service_ranges(&mut self, cluster: &ClusterName, ranges: &[Cidr]) {
        for it in self.clusters.iter_mut().filter(|it| it.name == *cluster) {
            let own = it.pods.iter().map(|it| it.cidr).collect::<Vec<Cidr>>();
            let others = ranges.iter().filter(|it| !own.iter().any(|own| own.overlaps(**it)));
            it.services = others.copied().collect();
        }
    }

    /// Returns the mesh as YAML, with a comment for every line.
    pub fn to_yaml(&self) -> String {
        written::yaml(self)
    }

    /// Returns the entries as YAML, to be added to the mesh with [`insert`].
    pub fn to_entries(&self) -> String {
        written::added_entries(self)
    }

    /// Returns the mesh as YAML with the entries for Peers that were made by hand in effect, so that they can be checked.
    fn to_checked_yaml(&self) -> String {
        written::checked_yaml(self)
    }

    /// Narrows ranges of pods to those of the nodes where the wider ones would share addresses.
    fn narrow_pods(&mut self) {
        let pods = || self.clusters.iter().flat_map(|it| &it.pods);
        let all: Vec<AgreedRange> = pods().copied().collect();
        let existing: Vec<Cidr> = self.existing.uses.iter().map(|it| it.cidr).collect();
        let is_shared = |range: &AgreedRange| {
            let mut existing = existing.iter();
            let mut others = all.iter();
            others.any(|it| it.cidr.overlaps(range.cidr) && !it.core.overlaps(range.core))
                || existing.any(|it| it.overlaps(range.cidr) && !it.overlaps(range.core))
        };
        for range in self.clusters.iter_mut().flat_map(|it| &mut it.pods) {
            if is_shared(range) {
                range.cidr = range.core;
            }
        }
    }

    /// Chooses a range for clusters in which Kilo does not run yet.
    fn choose_subnets(&mut self) {
        let mut used = self.used();
        for cluster in &mut self.clusters {
            if let WireguardRange::Free(range) = &mut cluster.wireguard
                && let Some(free) = ranges::free_subnet(&used)
            {
                *range = free;
                used.push(free);
            }
        }
    }

    /// Returns the clusters in which Kilo does not run yet, with the range to start it with.
    pub fn subnets(&self) -> impl Iterator<Item = (&ClusterName, Cidr)> {
        self.clusters.iter().filter_map(|it| match it.wireguard {
            WireguardRange::Free(range) => Some((&it.name, range)),
            WireguardRange::Agreed(_) => None,
        })
    }

    /// Returns all ranges that are in use.
    fn used(&self) -> Vec<Cidr> {
        let named = self.uses().into_iter().chain(self.existing.uses.iter().cloned());
        named.map(|it| it.cidr).chain(self.existing.avoided.iter().copied()).collect()
    }

    /// Returns the ranges that nodes name.
    fn uses(&self) -> Vec<RangeUse> {
        let of_cluster = |cluster: &ProposedCluster| {
            let named = |cidr: Cidr, purpose: RangePurpose| RangeUse {
                cluster: cluster.name.clone(),
                cidr,
                purpose,
            };
            let wireguard = match &cluster.wireguard {
                WireguardRange::Agreed(range) => Some(named(range.cidr, RangePurpose::Wireguard)),
                WireguardRange::Free(_) => None,
            };
            let pods = cluster.pods.iter().map(|it| named(it.cidr, RangePurpose::Pods));
            pods.chain(wireguard).collect::<Vec<_>>()
        };
        self.clusters.iter().flat_map(of_cluster).collect()
    }

    /// Returns the ranges that must change, each once: the first cluster that uses an address keeps it.
    fn overlaps(&self) -> Vec<Obstacle> {
        let mut uses = self.uses();
        // Kilo's range is easier to change than that of pods.
        uses.sort_by_key(|it| it.purpose == RangePurpose::Wireguard);
        let mut taken = self.used();
        let mut staying: Vec<RangeUse> = self.existing.uses.clone();
        let mut overlaps = Vec::new();
        for moves in uses {
            let stays = staying.iter().find(|it| it.cidr.overlaps(moves.cidr));
            let Some(stays) = stays.cloned() else {
                staying.push(moves);
                continue;
            };
            let free = if moves.purpose == RangePurpose::Wireguard {
                ranges::free_subnet(&taken)
            } else {
                ranges::free_pods(moves.cidr.family(), &taken)
            };
            taken.extend(free);
            overlaps.push(Obstacle::Overlap { moves, stays, free });
        }
        overlaps
    }

    /// Leaves out pod ranges of a family that no other cluster routes, and not the cluster itself either.
    fn leave_out_unrouted(&mut self, routed: &[Option<Family>]) {
        for (number, cluster) in self.clusters.iter_mut().enumerate() {
            let is_single = cluster.pods.len() == 1;
            let is_routed = |family: Family| {
                let mut others = routed.iter().enumerate();
                self.existing.routed.contains(&family)
                    || others.any(|(other, it)| other != number && *it == Some(family))
            };
            let own = routed.get(number).copied().flatten();
            let (pods, unrouted) = cluster.pods.iter().partition(|it| {
                let family = it.cidr.family();
                is_single || own == Some(family) || is_routed(family)
            });
            (cluster.pods, cluster.unrouted_pods) = (pods, unrouted);
        }
    }

    /// Returns the entries of the mesh as it is proposed so far.
    fn entries(&self) -> Result<BTreeMap<ClusterName, Entry>, Vec<Obstacle>> {
        let is_new = self.existing.is_none();
        let text = if is_new { self.to_yaml() } else { self.to_entries() };
        let source = Source::parse("mesh.yaml", text).map_err(|broken| {
            broken
                .problems
                .iter()
                .map(|it| Obstacle::Refused(it.message.to_string()))
                .collect::<Vec<_>>()
        })?;
        let source = self.existing.with_entries(&source).unwrap_or(source);
        let reading = mesh::read(&[source]);
        // Entries that contradict the mesh are reported with their places, when they are in its file.
        if is_new && !reading.is_usable() {
            let findings = reading.diagnostics.iter();
            return Err(findings.map(|it| Obstacle::Refused(it.message.to_string())).collect());
        }
        let meshes = reading.meshes.into_iter().chain(reading.salvaged);
        let entries = meshes.flat_map(|it| it.entries);
        Ok(entries.map(|it| (it.name.clone(), it)).collect())
    }

    /// Returns the clusters of which no node can be dialled: no two of these can be joined.
    pub fn undialled(&self) -> Vec<&ClusterName> {
        let undialled = self.clusters.iter().filter(|it| !it.endpoints.is_reached());
        self.existing.undialled.iter().chain(undialled.map(|it| &it.name)).collect()
    }

    /// Returns the private networks of a cluster's nodes that nodes of another cluster seem to be in too.
    fn common_networks(&self, cluster: &ProposedCluster) -> Vec<Cidr> {
        let others = self.clusters.iter().filter(|it| it.name != cluster.name);
        let others = others.flat_map(|it| &it.endpoints.networks);
        let others: Vec<Cidr> = others.chain(&self.existing.networks).copied().collect();
        let networks = cluster.endpoints.networks.iter().copied();
        networks.filter(|it| others.iter().any(|other| other.overlaps(*it))).collect()
    }
}

impl ProposedCluster {
    /// Reads the ranges of a cluster.
    fn new(snapshot: &Snapshot) -> Result<Self, Obstacle> {
        let name = snapshot.cluster.clone();
        let nodes = ranges::read(snapshot);
        let pods = ranges::pods(&nodes).map_err(|problem| problem.as_obstacle(&name))?;
        let wireguard = ranges::wireguard(&nodes).map_err(|problem| problem.as_obstacle(&name))?;
        let distribution = distribution(snapshot, pods.first().map(|it| it.cidr));
        Ok(Self {
            name,
            pods,
            unrouted_pods: Vec::new(),
            wireguard,
            granularity: None,
            endpoints: EndpointAdvice::default(),
            services: Vec::new(),
            distribution,
        })
    }
}
