//! Clusters that lack changes of the rendered tree, which is up to date: another render does not help them.

use std::collections::BTreeSet;

use clustermesh::agent::inventory;
use clustermesh::name::ClusterName;

use super::{AppliedFiles, Dumps, KnownContents};
use crate::inputs::Inputs;
use crate::planning::RenderPlan;
use crate::tree_comparison;

impl AppliedFiles {
    /// Returns the clusters whose dumped Peers are not those of the rendered tree; nothing if `render` would change the
    /// tree.
    pub(crate) fn undelivered(
        &self,
        inputs: &Inputs,
        dumps: &Dumps,
        planned: &RenderPlan,
    ) -> BTreeSet<ClusterName> {
        let RenderPlan { plan, texts, .. } = planned;
        let settings = &inputs.settings;
        // A tree that cannot be read is not up to date, and nothing else depends on it here.
        let is_current = || tree_comparison::is_current(plan, texts, settings).unwrap_or_default();
        if !dumps.are_any() || !is_current() {
            return BTreeSet::new();
        }
        let shall = Self::planned(&inputs.settings, plan, texts, &KnownContents::default());
        let differing = shall.files.into_iter().filter(|(cluster, shall)| {
            let has = self.files.get(cluster).map_or(&[][..], Vec::as_slice);
            !inventory::has_wanted_peers(has, shall, &inputs.meshes)
        });
        differing.map(|(cluster, _)| cluster).collect()
    }
}
