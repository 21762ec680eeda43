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
    ///
    /// # Errors
    /// A folder of the tree cannot be read.
    pub(crate) fn undelivered(
        &self,
        inputs: &Inputs,
        dumps: &Dumps,
        planned: &RenderPlan,
    ) -> anyhow::Result<BTreeSet<ClusterName>> {
        let RenderPlan { plan, texts, .. } = planned;
        if !dumps.are_any() || !tree_comparison::is_current(plan, texts, &inputs.settings)? {
            return Ok(BTreeSet::new());
        }
        let shall = Self::planned(&inputs.settings, plan, texts, &KnownContents::default());
        let differing = shall.files.into_iter().filter(|(cluster, shall)| {
            let has = self.files.get(cluster).map_or(&[][..], Vec::as_slice);
            !inventory::is_delivered(has, shall, &inputs.meshes)
        });
        Ok(differing.map(|(cluster, _)| cluster).collect())
    }
}
