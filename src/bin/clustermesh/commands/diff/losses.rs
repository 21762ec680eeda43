//! Losses: clusters that have lost more nodes since the old version than a new snapshot may lose.

use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::changes::{Changes, Grade};
use clustermesh::fleet::SnapshotFile;
use clustermesh::guard::{GuardRefusal, NewSnapshot, decide};
use clustermesh::mesh::{Entry, Mesh, State};
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, snapshots};

use super::before::{Before, HEAD};
use crate::disk::Revision;
use crate::failure::CommandFailure;
use crate::inputs::{self, Inputs};
use crate::settings::FileOptions;

/// The result of the check of losses.
pub(super) struct LossCheck {
    /// The clusters with too few nodes.
    pub(super) findings: Vec<Finding>,
    /// Whether anything is lost that a person has to decide about.
    pub(super) fails: bool,
}

impl LossCheck {
    /// Compares the nodes of all clusters of the current version with the old ones. A cluster that the old version does
    /// not have may lose no node since `HEAD`: what it lost before that is not known.
    ///
    /// # Errors
    /// An old version without usable meshes and snapshots, or such a `HEAD` where it is needed.
    pub(super) fn new(
        before: &Before,
        (now, name): (&Inputs, &str),
        (options, changes): (&FileOptions, &Changes),
    ) -> Result<Self, CommandFailure> {
        let Some(old) = &before.inputs else {
            let error = anyhow!(
                "losses cannot be checked without the old nodes; compare with a commit that has a mesh and its snapshots, not with {name}"
            );
            return Err(error.into());
        };
        let clusters = now.snapshots.iter();
        let joined = clusters.filter(|it| !memberships(now, it.0).is_empty());
        let (known, young): (Vec<_>, Vec<_>) =
            joined.partition(|it| old.snapshots.contains_key(it.0));
        let mut findings = Vec::new();
        for (cluster, new) in known {
            let (refusals, _) = lost((cluster, new), old, now);
            findings.extend(snapshots::lost_since(cluster, &refusals, name));
        }
        if !young.is_empty() {
            let head = Arc::new(Revision::open(HEAD)?);
            let gathered = inputs::gather(&options.at(&head));
            head.check()?;
            let head = gathered?;
            for (cluster, new) in young {
                let (mut refusals, others) = lost((cluster, new), &head, now);
                refusals.extend(others);
                findings.extend(snapshots::lost_since(cluster, &refusals, HEAD));
            }
        }
        Ok(Self {
            fails: !findings.is_empty() || changes.grade() == Grade::Destructive,
            findings,
        })
    }
}

/// Returns the losses of a cluster that a new snapshot may not have, and the others.
fn lost(
    (cluster, new): (&ClusterName, &SnapshotFile),
    old: &Inputs,
    now: &Inputs,
) -> (Vec<GuardRefusal>, Vec<GuardRefusal>) {
    let memberships = memberships(now, cluster);
    let old = old.snapshots.get(cluster);
    let candidate = NewSnapshot {
        old: old.map(|it| &*it.snapshot),
        new: &new.snapshot,
        memberships: &memberships,
    };
    let decision = decide(candidate, &now.settings.config.content.limits);
    let others = decision.losses.into_iter().map(GuardRefusal::Shrunk);
    (decision.refusals, others.collect())
}

/// Returns the meshes that need the nodes of a cluster, with its entries.
fn memberships<'i>(inputs: &'i Inputs, cluster: &ClusterName) -> Vec<(&'i Mesh, &'i Entry)> {
    let meshes = inputs.meshes.iter();
    let entries = meshes.flat_map(|mesh| mesh.entries.iter().map(move |entry| (mesh, entry)));
    let own = entries.filter(|(_, it)| it.name == *cluster && it.state == State::Joined);
    own.collect()
}
