//! Proposals: a mesh for clusters of which only the nodes are known, with the reason for every line.
//!
//! Nodes may lie, so a value is proposed only if more than half of the nodes agree on it. A node that
//! does not fit becomes a finding when the mesh is checked, and never a wider range.

use std::collections::BTreeMap;

use crate::document::Source;
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::mesh::{self, Entry};
use crate::name::{ClusterName, MeshName};
use crate::net::{self, Cidr};
use crate::snapshot::Snapshot;

pub use endpoints::EndpointAdvice;
pub use obstacle::{Obstacle, RangeUse};
pub use ranges::{AgreedRange, RangeProblem, WireguardRange, pod_ranges};

mod endpoints;
mod obstacle;
mod ranges;
#[cfg(test)]
mod tests;
mod written;

/// The most overlaps that are reported.
const OVERLAPS: usize = 20;

/// A proposed mesh.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its name.
    pub name: MeshName,
    /// Its clusters, in the order of trust.
    pub clusters: Vec<ProposedCluster>,
}

/// A proposed entry.
#[derive(Clone, Debug)]
pub struct ProposedCluster {
    /// The cluster.
    pub name: ClusterName,
    /// The pod ranges of most nodes, at most one of each family.
    pub pods: Vec<AgreedRange>,
    /// The range of the nodes' WireGuard addresses.
    pub wireguard: WireguardRange,
    /// The granularity that most nodes report.
    pub granularity: Option<Granularity>,
    /// The fields that let other clusters dial the nodes.
    pub endpoints: EndpointAdvice,
}

impl Proposal {
    /// Proposes a mesh of clusters, in this order of trust.
    ///
    /// # Errors
    /// Everything that keeps the clusters from being joined.
    pub fn new(name: MeshName, snapshots: &[Snapshot]) -> Result<Self, Vec<Obstacle>> {
        let mut clusters = Vec::new();
        let mut obstacles = Vec::new();
        for snapshot in snapshots {
            match ProposedCluster::new(snapshot) {
                Ok(cluster) => clusters.push(cluster),
                Err(obstacle) => obstacles.push(obstacle),
            }
        }
        let mut proposal = Self { name, clusters };
        proposal.narrow_pods();
        proposal.choose_subnets();
        obstacles.extend(proposal.overlaps());
        if !obstacles.is_empty() {
            return Err(obstacles);
        }
        let entries = proposal.entries()?;
        for (cluster, snapshot) in proposal.clusters.iter_mut().zip(snapshots) {
            let entry = entries.get(&cluster.name).ok_or_else(Vec::new)?;
            let read = Cluster::new(entry, snapshot);
            cluster.granularity = read.voted;
            cluster.endpoints = EndpointAdvice::new(&read);
        }
        proposal.share_network(snapshots, &entries);
        Ok(proposal)
    }

    /// Returns the mesh as YAML, with a comment for every line.
    pub fn to_yaml(&self) -> String {
        written::yaml(self)
    }

    /// Narrows ranges of pods to those of the nodes where the wider ones would share addresses.
    fn narrow_pods(&mut self) {
        let mut pods: Vec<&mut AgreedRange> = self
            .clusters
            .iter_mut()
            .flat_map(|it| &mut it.pods)
            .collect();
        let cidrs: Vec<Cidr> = pods.iter().map(|it| it.cidr).collect();
        for pair in net::overlaps(&cidrs, OVERLAPS) {
            let core = |index: usize| pods.get(index).map(|it| it.core);
            if let (Some(one), Some(other)) = (core(pair.0), core(pair.1))
                && !one.overlaps(other)
            {
                for index in [pair.0, pair.1] {
                    if let Some(range) = pods.get_mut(index) {
                        range.cidr = range.core;
                    }
                }
            }
        }
    }

    /// Chooses a range for clusters in which Kilo does not run yet.
    fn choose_subnets(&mut self) {
        let mut used: Vec<Cidr> = self.uses().into_iter().map(|it| it.cidr).collect();
        for cluster in &mut self.clusters {
            if let WireguardRange::Free(range) = &mut cluster.wireguard
                && let Some(free) = ranges::free_subnet(&used)
            {
                *range = free;
                used.push(free);
            }
        }
    }

    /// Returns the ranges that nodes name.
    fn uses(&self) -> Vec<RangeUse> {
        let of_cluster = |cluster: &ProposedCluster| {
            let named = |cidr: Cidr, is_wireguard: bool| RangeUse {
                cluster: cluster.name.clone(),
                cidr,
                is_wireguard,
            };
            let wireguard = match &cluster.wireguard {
                WireguardRange::Agreed(range) => Some(named(range.cidr, true)),
                WireguardRange::Free(_) => None,
            };
            let pods = cluster.pods.iter().map(|it| named(it.cidr, false));
            pods.chain(wireguard).collect::<Vec<_>>()
        };
        self.clusters.iter().flat_map(of_cluster).collect()
    }

    /// Returns the ranges that share addresses.
    fn overlaps(&self) -> Vec<Obstacle> {
        let uses = self.uses();
        let mut taken: Vec<Cidr> = uses.iter().map(|it| it.cidr).collect();
        let pairs = net::overlaps(&taken, OVERLAPS);
        let overlaps = pairs
            .into_iter()
            .map(|(one, other)| (one.min(other), one.max(other)))
            .filter_map(|(one, other)| {
                let (earlier, later) = (uses.get(one)?.clone(), uses.get(other)?.clone());
                // Kilo's range is easier to change than that of pods.
                let is_earlier = earlier.is_wireguard && !later.is_wireguard;
                let (moves, stays) = if is_earlier {
                    (earlier, later)
                } else {
                    (later, earlier)
                };
                let free = if moves.is_wireguard {
                    ranges::free_subnet(&taken)
                } else {
                    ranges::free_pods(&taken)
                };
                taken.extend(free);
                Some(Obstacle::Overlap { moves, stays, free })
            });
        overlaps.collect()
    }

    /// Returns the entries of the mesh as it is proposed so far.
    fn entries(&self) -> Result<BTreeMap<ClusterName, Entry>, Vec<Obstacle>> {
        let refused = |message: &str| Obstacle::Refused(message.to_owned());
        let source = Source::parse("mesh.yaml", self.to_yaml()).map_err(|broken| {
            broken
                .problems
                .iter()
                .map(|it| refused(&it.message))
                .collect::<Vec<_>>()
        })?;
        let reading = mesh::read(&[source]);
        if !reading.is_usable() {
            let findings = reading.diagnostics.iter();
            return Err(findings.map(|it| refused(&it.message)).collect());
        }
        let entries = reading.meshes.into_iter().flat_map(|it| it.entries);
        Ok(entries.map(|it| (it.name.clone(), it)).collect())
    }

    /// Without a single endpoint, no tunnel would ever open. Then only a network that all nodes share
    /// can join the clusters.
    fn share_network(&mut self, snapshots: &[Snapshot], entries: &BTreeMap<ClusterName, Entry>) {
        if self.clusters.iter().any(|it| it.endpoints.is_reached()) {
            return;
        }
        for (cluster, snapshot) in self.clusters.iter_mut().zip(snapshots) {
            if let Some(entry) = entries.get(&cluster.name) {
                let read = Cluster::new(entry, snapshot);
                let advice = std::mem::take(&mut cluster.endpoints);
                cluster.endpoints = advice.internal(&read);
            }
        }
    }
}

impl ProposedCluster {
    /// Reads the ranges of a cluster.
    fn new(snapshot: &Snapshot) -> Result<Self, Obstacle> {
        let name = snapshot.cluster.clone();
        let nodes = ranges::read(snapshot);
        let pods = ranges::pods(&nodes).map_err(|problem| problem.as_obstacle(&name))?;
        let wireguard = ranges::wireguard(&nodes).map_err(|problem| problem.as_obstacle(&name))?;
        Ok(Self {
            name,
            pods,
            wireguard,
            granularity: None,
            endpoints: EndpointAdvice::default(),
        })
    }
}
