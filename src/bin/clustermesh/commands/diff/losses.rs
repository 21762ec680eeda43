//! Losses: clusters that have lost more nodes since the old version than a new snapshot may lose.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::changes::{Changes, Grade};
use clustermesh::diagnostic::escaped;
use clustermesh::fleet::SnapshotFile;
use clustermesh::guard::{NewSnapshot, decide};
use clustermesh::mesh::{Entry, Mesh, State};
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, snapshots};

use super::before::{Before, SHOWN};
use crate::disk::Revision;
use crate::input_file::Unreadable;
use crate::inputs::{self, Inputs};
use crate::settings::FileOptions;

/// The result of the check of losses.
pub(super) struct LossCheck {
    /// The clusters with too few nodes.
    pub(super) findings: Vec<Finding>,
    /// Whether anything is lost that a person has to decide about.
    pub(super) fails: bool,
}

/// The nodes that clusters had: those of the old version, or of the first commit after it that has their cluster.
pub(super) struct OldNodes<'b> {
    before: &'b Before,
    revision: Option<Arc<Revision>>,
    options: &'b FileOptions,
    /// The snapshots of commits after the old version, by the name of the commit.
    later: BTreeMap<String, BTreeMap<ClusterName, SnapshotFile>>,
}

/// A snapshot, and the commit that has it.
struct CommittedSnapshot<'n> {
    file: &'n SnapshotFile,
    commit: String,
}

impl LossCheck {
    /// Compares the nodes of all clusters of the current version.
    ///
    /// # Errors
    /// An old version without usable meshes and snapshots.
    pub(super) fn new(
        mut old: OldNodes,
        now: &Inputs,
        changes: &Changes,
    ) -> Result<Self, Unreadable> {
        let mut findings = Vec::new();
        for (cluster, new) in &now.snapshots {
            let memberships = memberships(now, cluster);
            if memberships.is_empty() {
                continue;
            }
            let Some(old) = old.of(cluster, now)? else {
                continue;
            };
            let candidate = NewSnapshot {
                old: Some(&old.file.snapshot),
                new: &new.snapshot,
                memberships: &memberships,
            };
            let decision = decide(candidate, &now.settings.config.content.limits);
            let lost = snapshots::lost_since(cluster, &decision.refusals, &old.commit);
            findings.extend(lost);
        }
        Ok(Self {
            fails: !findings.is_empty() || changes.grade() == Grade::Destructive,
            findings,
        })
    }
}

impl<'b> OldNodes<'b> {
    pub(super) fn new(
        before: &'b Before,
        revision: Option<Arc<Revision>>,
        options: &'b FileOptions,
    ) -> Self {
        Self {
            before,
            revision,
            options,
            later: BTreeMap::new(),
        }
    }

    /// Returns the old snapshot of a cluster; none if no commit has one.
    fn of(
        &mut self,
        cluster: &ClusterName,
        now: &Inputs,
    ) -> Result<Option<CommittedSnapshot<'_>>, Unreadable> {
        let (Some(inputs), Some(revision)) = (&self.before.inputs, &self.revision) else {
            let error = anyhow!(
                "the old nodes are unknown, so losses cannot be checked; compare with another commit"
            );
            return Err(error.into());
        };
        if let Some(file) = inputs.snapshots.get(cluster) {
            let commit = escaped(revision.name(), SHOWN);
            return Ok(Some(CommittedSnapshot { file, commit }));
        }
        let path = now.settings.snapshots.value.join(format!("{cluster}.json"));
        let Some(joined) = revision.first_change(&path)? else {
            return Ok(None);
        };
        let commit = joined.name().to_owned();
        if !self.later.contains_key(&commit) {
            let inputs = inputs::gather(&self.options.at(&Arc::new(joined)))?;
            self.later.insert(commit.clone(), inputs.snapshots);
        }
        let snapshots = self.later.get(&commit);
        let file = snapshots.and_then(|it| it.get(cluster));
        Ok(file.map(|file| CommittedSnapshot { file, commit }))
    }
}

/// Returns the meshes that need the nodes of a cluster, with its entries.
fn memberships<'i>(inputs: &'i Inputs, cluster: &ClusterName) -> Vec<(&'i Mesh, &'i Entry)> {
    let meshes = inputs.meshes.iter();
    let entries = meshes.flat_map(|mesh| mesh.entries.iter().map(move |entry| (mesh, entry)));
    let own = entries.filter(|(_, it)| it.name == *cluster && it.state == State::Joined);
    own.collect()
}
