//! Joining: which clusters to switch on together, so that Kilo stays within its limits.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::capacity::{NodeLoad, Wave, units};
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::fleet::{Fleet, SnapshotFile};
use crate::kilo::peer::Peer;
use crate::mesh::{Mesh, State};
use crate::name::{ClusterName, MeshName};
use crate::plan::{self, BrokenPromise, Plan, Target};
use crate::text;

mod planned;

pub use planned::{JoinWave, WaveError};

/// A cluster that joins a mesh.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Joiner {
    /// The mesh.
    #[schemars(with = "String", example = &"prod")]
    pub mesh: MeshName,
    /// The cluster.
    #[schemars(with = "String", example = &"north")]
    pub cluster: ClusterName,
}

/// Lists clusters, with their mesh where one joins several.
pub fn listed(joiners: &[Joiner]) -> String {
    let name = |it: &Joiner| {
        let mut same = joiners.iter().filter(|other| other.cluster == it.cluster);
        let joins_several = same.nth(1).is_some();
        if joins_several {
            format!("{} ({})", it.cluster, it.mesh)
        } else {
            it.cluster.to_string()
        }
    };
    text::list(joiners.iter().map(name))
}

/// Meshes with clusters that join them.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    /// The meshes.
    pub meshes: &'a [Mesh],
    /// The snapshots of their clusters, except those that have not been taken.
    pub snapshots: &'a BTreeMap<ClusterName, SnapshotFile>,
}

/// The Peers of every cluster when some clusters have joined.
struct Outlook {
    plan: Plan,
    nodes: BTreeMap<ClusterName, NodeLoad>,
    /// Clusters with nodes behind NAT.
    behind_nat: BTreeSet<ClusterName>,
}

impl Joining<'_> {
    /// Returns the clusters that could join now, in the order in which people wrote them.
    pub fn ready(&self) -> Vec<Joiner> {
        self.joiners(|cluster| self.snapshots.contains_key(cluster))
    }

    /// Returns the clusters that cannot join before they have a snapshot.
    pub fn waiting(&self) -> Vec<Joiner> {
        self.joiners(|cluster| !self.snapshots.contains_key(cluster))
    }

    fn joiners(&self, is_meant: impl Fn(&ClusterName) -> bool) -> Vec<Joiner> {
        self.meshes
            .iter()
            .flat_map(|mesh| mesh.entries.iter().map(move |entry| (mesh, entry)))
            .filter(|(_, entry)| entry.state == State::Joining && is_meant(&entry.name))
            .map(|(mesh, entry)| Joiner {
                mesh: mesh.name.clone(),
                cluster: entry.name.clone(),
            })
            .collect()
    }

    /// Returns the meshes as they are when these clusters have joined.
    pub fn joined(&self, joiners: &[Joiner]) -> Vec<Mesh> {
        let mut meshes = self.meshes.to_vec();
        for mesh in &mut meshes {
            let own: BTreeSet<&ClusterName> = joiners
                .iter()
                .filter(|it| it.mesh == mesh.name)
                .map(|it| &it.cluster)
                .collect();
            for entry in &mut mesh.entries {
                if own.contains(&entry.name) {
                    entry.state = State::Joined;
                }
            }
        }
        meshes
    }

    /// Divides the clusters that are ready into waves. No wave adds more Peers to a cluster, or keeps
    /// its Kilo busy for longer, than a warning allows, unless a single cluster does.
    ///
    /// A cluster that joins gets the Peers of all that have joined before. So hubs come first, which are
    /// linked to all others, then clusters with few Peers: every sum of the Peers before is then as small
    /// as it can be in a full mesh. Clusters behind NAT come last, because each later change may cut their
    /// paths for a while (`kilo.md` §2.9).
    ///
    /// # Errors
    /// Never, unless a plan breaks its promise.
    pub fn waves(&self, capacity: &Capacity) -> Result<Vec<Vec<Joiner>>, BrokenPromise> {
        let mut ready = self.ready();
        let all = self.outlook(&ready)?;
        ready.sort_by_key(|it| {
            let is_behind_nat = all.behind_nat.contains(&it.cluster);
            (!self.is_hub(it), is_behind_nat, all.given(it))
        });
        let mut waves = Vec::new();
        let mut joined = 0;
        let mut before = self.outlook(&[])?;
        while joined < ready.len() {
            let at = |end: usize| self.outlook(ready.get(..end).unwrap_or(&ready));
            // The number of clusters that fit, and the first number that is known not to.
            let (mut fits, mut too_many) = (joined + 1, ready.len() + 1);
            let mut after = at(fits)?;
            let mut step = 1;
            while fits + 1 < too_many {
                let end = (fits + step)
                    .min(fits + (too_many - fits) / 2 + 1)
                    .min(too_many - 1);
                let outlook = at(end)?;
                if outlook.is_within(&before, capacity) {
                    (fits, after) = (end, outlook);
                    step *= 2;
                } else {
                    too_many = end;
                    step = 1;
                }
            }
            waves.push(ready.get(joined..fits).unwrap_or_default().to_vec());
            (joined, before) = (fits, after);
        }
        Ok(waves)
    }

    fn is_hub(&self, joiner: &Joiner) -> bool {
        let mut meshes = self.meshes.iter().filter(|it| it.name == joiner.mesh);
        meshes.any(|it| it.topology.is_hub(&joiner.cluster))
    }

    /// Plans the meshes with these clusters joined.
    fn outlook(&self, joiners: &[Joiner]) -> Result<Outlook, BrokenPromise> {
        let meshes = self.joined(joiners);
        // A cluster without the snapshot that it should have gives no Peers.
        let Ok(fleet) = Fleet::new(&meshes, self.snapshots) else {
            return Ok(Outlook {
                plan: Plan::default(),
                nodes: BTreeMap::new(),
                behind_nat: BTreeSet::new(),
            });
        };
        let nodes = fleet.members().iter().map(|it| {
            let nodes = NodeLoad::count(&it.cluster.topology);
            (it.entry.name.clone(), nodes)
        });
        let behind_nat = fleet.members().iter().filter(|it| it.is_behind_nat());
        Ok(Outlook {
            nodes: nodes.collect(),
            behind_nat: behind_nat.map(|it| it.entry.name.clone()).collect(),
            plan: plan::plan(&fleet)?,
        })
    }
}

impl Outlook {
    /// Returns how many Peers a cluster gives to others, at most.
    fn given(&self, joiner: &Joiner) -> usize {
        let peer_sets = self.plan.peer_sets.iter();
        let own = peer_sets.filter(|it| it.mesh == joiner.mesh && it.source == joiner.cluster);
        own.map(|it| it.peers.len()).max().unwrap_or_default()
    }

    /// Returns whether no cluster's change from before is worth a warning.
    fn is_within(&self, before: &Self, capacity: &Capacity) -> bool {
        let is_fine =
            |quantity, value| capacity.steps(quantity).grade(value) < Some(Severity::Warning);
        self.plan.targets.iter().all(|target| {
            let wave = self.wave(before, target);
            let nodes = self.nodes.get(&target.cluster).copied().unwrap_or_default();
            let seconds = wave.seconds(&nodes, &capacity.costs);
            let peers = units::float(wave.added);
            is_fine(Quantity::WavePeers, peers) && is_fine(Quantity::WaveSeconds, seconds)
        })
    }

    /// Returns the change of a target's Peers.
    fn wave(&self, before: &Self, target: &Target) -> Wave {
        let mut targets = before.plan.targets.iter();
        let mut old: BTreeMap<&str, &Peer> = targets
            .find(|it| it.cluster == target.cluster)
            .into_iter()
            .flat_map(|it| before.peers(it))
            .map(|it| (it.name.as_str(), it))
            .collect();
        let ranges = |peer: &Peer| peer.allowed_ips.len();
        let mut wave = Wave {
            ranges_before: old.values().map(|it| ranges(it)).sum(),
            ..Wave::default()
        };
        for peer in self.peers(target) {
            match old.remove(peer.name.as_str()) {
                None => {
                    wave.added += 1;
                    wave.added_ranges += ranges(peer);
                }
                Some(old) if old != peer => {
                    wave.changed += 1;
                    wave.changed_from += ranges(old);
                    wave.changed_to += ranges(peer);
                }
                Some(_) => {}
            }
        }
        wave.removed = old.len();
        wave.removed_ranges = old.values().map(|it| ranges(it)).sum();
        wave
    }

    fn peers<'p>(&'p self, target: &'p Target) -> impl Iterator<Item = &'p Peer> {
        target
            .peer_sets
            .iter()
            .filter_map(|&it| self.plan.peer_sets.get(it))
            .flat_map(|it| &it.peers)
    }
}
