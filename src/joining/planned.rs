//! Planned waves: what each cluster has to carry as others join, one wave after another.

use thiserror::Error;

use super::{Joiner, Joining};
use crate::capacity::{Cost, Estimate, Ledger};
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::fleet::Fleet;
use crate::manifest::{self, ManifestError};
use crate::name::ClusterName;
use crate::plan::{self, BrokenPromise};
use crate::text;

/// Clusters that join in one commit, and what comes of it.
#[derive(Clone, Debug)]
pub struct JoinWave {
    /// The clusters.
    pub joiners: Vec<Joiner>,
    /// The load of each cluster afterwards, and the change.
    pub costs: Vec<Cost>,
}

/// The reason why a wave cannot be planned.
#[derive(Debug, Error)]
pub enum WaveError {
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
    /// Plans waves, each after the one before, the first after the plan of a ledger.
    ///
    /// # Errors
    /// Never, unless a cluster of a wave has no snapshot.
    pub fn planned(
        &self,
        ledger: &Ledger,
        waves: Vec<Vec<Joiner>>,
    ) -> Result<Vec<JoinWave>, WaveError> {
        let mut joined: Vec<Joiner> = Vec::new();
        let mut applied = ledger.after().clone();
        let mut planned = Vec::new();
        for joiners in waves {
            joined.extend(joiners.iter().cloned());
            let meshes = self.joined(&joined);
            let fleet = Fleet::new(&meshes, self.snapshots).map_err(|missing| {
                WaveError::Missing(missing.into_iter().map(|it| it.cluster).collect())
            })?;
            let plan = plan::plan(&fleet)?;
            let tree = manifest::tree(&plan)?;
            let next = ledger.next(&fleet, &plan, &tree, applied);
            let costs = next.costs();
            applied = next.after().clone();
            planned.push(JoinWave { joiners, costs });
        }
        Ok(planned)
    }
}

impl JoinWave {
    /// Returns the clusters for which this wave is worth a warning. No smaller wave would change that:
    /// only a single cluster exceeds a limit of changes.
    pub fn beyond(&self) -> impl Iterator<Item = (&Cost, Vec<&Estimate>)> {
        self.costs.iter().filter_map(|cost| {
            let is_grave = |it: &&Estimate| Some(Severity::Warning) <= it.grade;
            let grave: Vec<&Estimate> = cost.estimates.iter().filter(is_grave).collect();
            (!cost.wave.is_empty() && !grave.is_empty()).then_some((cost, grave))
        })
    }

    /// Returns the cluster that is busy longest.
    pub fn busiest(&self) -> Option<(&Cost, f64)> {
        self.costs
            .iter()
            .filter_map(|it| Some((it, it.value(Quantity::WaveSeconds)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
    }
}
