//! Joining: the meshes with the clusters that join, and the load of each cluster then.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use crate::capacity::{Cost, Ledger};
use crate::diagnostic::Severity;
use crate::fleet::{Fleet, SnapshotFile};
use crate::manifest::{self, ManifestError};
use crate::mesh::{Mesh, State};
use crate::name::{ClusterName, MeshName};
use crate::plan::{self, BrokenPromise};
use crate::text;

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
        if joins_several { format!("{} ({})", it.cluster, it.mesh) } else { it.cluster.to_string() }
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

/// Clusters that join, and the load with them.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct JoinedLoad {
    /// The clusters that join.
    #[serde(rename = "clusters")]
    pub joiners: Vec<Joiner>,
    /// Whether no cluster whose Peers change exceeds a warning limit.
    pub fits: bool,
    /// The load of each cluster afterwards. `change` is the change by which they join.
    #[serde(rename = "targets")]
    pub costs: Vec<Cost>,
}

/// The reason why the load cannot be computed.
#[derive(Debug, Error)]
pub enum JoinError {
    /// Clusters have no snapshot.
    #[error("no snapshot of {}", text::listed(.0))]
    Missing(Vec<ClusterName>),
    /// A mistake of this program.
    #[error(transparent)]
    Plan(#[from] BrokenPromise),
    /// A mistake of this program.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
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
            .map(|(mesh, entry)| Joiner { mesh: mesh.name.clone(), cluster: entry.name.clone() })
            .collect()
    }

    /// Returns the meshes as they are when these clusters have joined.
    pub fn joined(&self, joiners: &[Joiner]) -> Vec<Mesh> {
        let mut meshes = self.meshes.to_vec();
        for mesh in &mut meshes {
            let own: BTreeSet<&ClusterName> =
                joiners.iter().filter(|it| it.mesh == mesh.name).map(|it| &it.cluster).collect();
            for entry in &mut mesh.entries {
                if own.contains(&entry.name) {
                    entry.state = State::Joined;
                }
            }
        }
        meshes
    }

    /// Returns the load of each meant cluster when all clusters that are ready have joined, after the plan of a
    /// ledger; nothing if no cluster is ready.
    ///
    /// # Errors
    /// Never, unless a plan breaks its promise.
    pub fn load(
        &self,
        ledger: &Ledger,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Option<JoinedLoad>, JoinError> {
        let joiners = self.ready();
        if joiners.is_empty() {
            return Ok(None);
        }
        let meshes = self.joined(&joiners);
        let fleet = Fleet::new(&meshes, self.snapshots).map_err(|missing| {
            JoinError::Missing(missing.into_iter().map(|it| it.cluster).collect())
        })?;
        let plan = plan::plan(&fleet)?;
        let tree = manifest::tree(&plan)?;
        let mut costs = ledger.next(&fleet, &plan, &tree).costs();
        costs.retain(|it| is_meant(&it.cluster));
        let mut changed = costs.iter().filter(|it| !it.change.delta.is_empty());
        let fits = changed.all(|it| it.grade < Some(Severity::Warning));
        Ok(Some(JoinedLoad { joiners, fits, costs }))
    }
}
