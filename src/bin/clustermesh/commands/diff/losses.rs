//! Losses: clusters that have lost more nodes since the old version than a new snapshot may lose.

use anyhow::bail;
use clustermesh::changes::{Changes, Grade};
use clustermesh::guard::{NewSnapshot, decide};
use clustermesh::mesh::{Entry, Mesh, State};
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, snapshots};

use super::before::Before;
use crate::inputs::Inputs;

/// The result of the check of losses.
pub(super) struct LossCheck {
    /// The clusters with too few nodes.
    pub(super) findings: Vec<Finding>,
    /// Whether anything is lost that a person has to decide about.
    pub(super) fails: bool,
}

impl LossCheck {
    /// Compares the nodes of all clusters of the current version.
    ///
    /// # Errors
    /// An old version without usable meshes and snapshots.
    pub(super) fn new(
        before: &Before,
        (now, name): (&Inputs, &str),
        changes: &Changes,
    ) -> anyhow::Result<Self> {
        let Some(old) = &before.inputs else {
            bail!(
                "the old nodes in {name} are unknown, so losses cannot be checked; compare with another commit"
            );
        };
        let clusters = now.snapshots.iter().filter_map(|(cluster, new)| {
            let old = old.snapshots.get(cluster)?;
            let memberships = memberships(now, cluster);
            if memberships.is_empty() {
                return None;
            }
            let candidate = NewSnapshot {
                old: Some(&old.snapshot),
                new: &new.snapshot,
                memberships: &memberships,
            };
            let decision = decide(candidate, &now.settings.config.content.limits);
            Some(snapshots::lost_since(cluster, &decision.refusals, name))
        });
        let findings: Vec<Finding> = clusters.flatten().collect();
        Ok(Self {
            fails: !findings.is_empty() || changes.grade() == Grade::Destructive,
            findings,
        })
    }
}

/// Returns the meshes that need the nodes of a cluster, with its entries.
fn memberships<'i>(inputs: &'i Inputs, cluster: &ClusterName) -> Vec<(&'i Mesh, &'i Entry)> {
    let meshes = inputs.meshes.iter();
    let entries = meshes.flat_map(|mesh| mesh.entries.iter().map(move |entry| (mesh, entry)));
    let own = entries.filter(|(_, it)| it.name == *cluster && it.state == State::Joined);
    own.collect()
}
