//! Losses: clusters that have lost more nodes since the old version than a new snapshot may lose.

use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::fleet::SnapshotFile;
use clustermesh::guard::{GuardDecision, GuardRefusal, NewSnapshot, decide};
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, snapshots};

use super::before::{Before, HEAD};
use crate::disk::Revision;
use crate::failure::CommandResult;
use crate::inputs::{self, Inputs};
use crate::settings::FileOptions;

/// Compares the nodes of all clusters of the current version with the old ones of the version of this name, and reports
/// clusters with too few nodes. A cluster that the old version does not have may lose no node since `HEAD`: what it lost
/// before that is not known.
///
/// # Errors
/// An old version without usable meshes and snapshots, or such a `HEAD` where it is needed.
pub(super) fn check(
    before: &Before,
    now: &Inputs,
    name: &str,
    options: &FileOptions,
) -> CommandResult<Vec<Finding>> {
    let Some(old) = &before.inputs else {
        let error = anyhow!(
            "losses cannot be checked without the old nodes; compare with a commit that has a mesh and its snapshots, not with {name}"
        );
        return Err(error.into());
    };
    let clusters = now.snapshots.iter();
    let joined = clusters.filter(|it| !now.memberships(it.0).is_empty());
    let (known, young): (Vec<_>, Vec<_>) = joined.partition(|it| old.snapshots.contains_key(it.0));
    let mut findings = Vec::new();
    for (cluster, new) in known {
        let decision = lost(cluster, new, old, now);
        findings.extend(snapshots::lost_since(cluster, &decision.refusals, name));
    }
    if young.is_empty() {
        return Ok(findings);
    }
    let head = Arc::new(Revision::open(HEAD)?);
    let gathered = inputs::gather(&options.at(&head));
    head.check()?;
    let head = gathered?;
    for (cluster, new) in young {
        let GuardDecision { mut refusals, losses, .. } = lost(cluster, new, &head, now);
        refusals.extend(losses.into_iter().map(GuardRefusal::Shrunk));
        findings.extend(snapshots::lost_since(cluster, &refusals, HEAD));
    }
    Ok(findings)
}

/// Returns what a cluster has lost, with whether a new snapshot may lose that.
fn lost(cluster: &ClusterName, new: &SnapshotFile, old: &Inputs, now: &Inputs) -> GuardDecision {
    let memberships = now.memberships(cluster);
    let old = old.snapshots.get(cluster);
    let candidate = NewSnapshot {
        old: old.map(|it| &*it.snapshot),
        new: &new.snapshot,
        memberships: &memberships,
    };
    decide(candidate, &now.settings.config.content.limits)
}
