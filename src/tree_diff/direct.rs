//! Direct: what a target loses that applies the plan as it is printed, without a rendered tree in git.

use super::{Loss, OnDiskTree, TreeDiff};
use crate::manifest::KUSTOMIZATION;
use crate::plan::{AbsentSource, Plan, Target};

/// Returns what a target would lose, given the rendered tree if there is one.
///
/// If the tree has the target's folder, this is what writing the folder would lose. If not, nothing
/// shows which Peers the target has, so every source that gives it none counts as lost, unless only
/// claims of nodes are the cause.
pub fn losses_of(
    target: &Target,
    plan: &Plan,
    tree: Option<(&OnDiskTree, &TreeDiff)>,
) -> Vec<Loss> {
    let path = format!("{}/{KUSTOMIZATION}", target.cluster);
    if let Some((_, changes)) = tree.filter(|(on_disk, _)| on_disk.has(&path)) {
        let mut losses = changes.losses.clone();
        losses.retain(|it| it.concerns(target));
        return losses;
    }
    if plan.empty().any(|it| it.cluster == target.cluster) {
        let target = target.cluster.to_string();
        return vec![Loss::EmptyTarget { target }];
    }
    let unrecorded = target.without.iter().filter(|&source| {
        let absent = target.absent.get(source);
        !absent.is_some_and(AbsentSource::is_by_claims)
    });
    unrecorded
        .map(|source| Loss::Unrecorded {
            target: target.cluster.to_string(),
            source: source.to_string(),
        })
        .collect()
}

impl Loss {
    /// Returns whether a target has it, or would have it.
    fn concerns(&self, seer: &Target) -> bool {
        match self {
            Self::SilentSource { source } => seer.without.iter().any(|it| it.as_str() == source),
            Self::RenamedMesh(renamed) => renamed.targets.contains(seer.cluster.as_str()),
            Self::EmptyTarget { target }
            | Self::Target { target, .. }
            | Self::Source { target, .. }
            | Self::Unrecorded { target, .. } => target == seer.cluster.as_str(),
        }
    }
}
