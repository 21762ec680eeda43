//! Direct: what a target loses that applies the plan as it is printed, without a rendered tree in git.

use std::collections::BTreeSet;

use super::{Changes, Loss, Standing};
use crate::fleet::Fleet;
use crate::manifest::KUSTOMIZATION;
use crate::name::ClusterName;
use crate::plan::{Plan, Target};

/// Returns what a target would lose, given the rendered tree if there is one.
///
/// If the tree has the target's folder, this is what writing the folder would lose. If not, nothing
/// shows which Peers the target has, so every source that gives it none counts as lost, unless only
/// claims of nodes are the cause.
pub fn losses_of(
    target: &Target,
    plan: &Plan,
    fleet: &Fleet,
    tree: Option<(&Standing, &Changes)>,
) -> Vec<Loss> {
    let sources = fleet.sources(&target.cluster);
    let sources: BTreeSet<&ClusterName> = sources.map(|(_, it, _)| &it.entry.name).collect();
    let path = format!("{}/{KUSTOMIZATION}", target.cluster);
    if let Some((_, changes)) = tree.filter(|(standing, _)| standing.has(&path)) {
        let mut losses = changes.losses.clone();
        losses.retain(|it| it.concerns(&target.cluster, &sources));
        return losses;
    }
    if plan.empty().any(|it| it.cluster == target.cluster) {
        let target = target.cluster.to_string();
        return vec![Loss::EmptyTarget { target }];
    }
    let blocks = target.blocks.iter().filter_map(|&it| plan.blocks.get(it));
    let given: BTreeSet<&ClusterName> = blocks.map(|it| &it.source).collect();
    let is_by_claims = |source: &ClusterName| {
        let missed = target.missed.get(source);
        missed.is_some_and(|it| it.is_by_claims())
    };
    sources
        .difference(&given)
        .filter(|it| !is_by_claims(it))
        .map(|source| Loss::Unrecorded {
            target: target.cluster.to_string(),
            source: source.to_string(),
        })
        .collect()
}

impl Loss {
    /// Returns whether it is a target's that sees these sources.
    fn concerns(&self, name: &ClusterName, sources: &BTreeSet<&ClusterName>) -> bool {
        match self {
            Self::SilentSource { source } => sources.iter().any(|it| it.as_str() == source),
            Self::EmptyTarget { target }
            | Self::Target { target, .. }
            | Self::Source { target, .. }
            | Self::Unrecorded { target, .. } => target == name.as_str(),
        }
    }
}
