//! The Peers of clusters once the rendered tree is applied. If it is up to date, another render does not help.

use std::collections::{BTreeMap, BTreeSet};

use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::fabric::Fabric;
use clustermesh::agent::inventory;
use clustermesh::name::ClusterName;

use super::{ClusterPeers, Dumps, KnownContents};
use crate::checked_plan::RenderPlan;
use crate::inputs::Inputs;

/// The Peers of clusters that lack changes of the rendered tree, once it is applied.
#[derive(Default)]
pub(crate) struct Undelivered {
    files: BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// The clusters whose Peers are from files.
    dumped: BTreeSet<ClusterName>,
}

impl Undelivered {
    /// Adds the delivery of the tree to a fabric.
    pub(crate) fn to<'a>(&'a self, fabric: Fabric<'a>) -> Fabric<'a> {
        fabric.with_delivery(&self.files, self.dumped.clone())
    }
}

impl ClusterPeers {
    /// Returns the Peers of the clusters that have others than a rendered tree that is up to date, once they have those
    /// of the tree and keep the foreign ones.
    pub(crate) fn undelivered(
        &self,
        inputs: &Inputs,
        dumps: &Dumps,
        planned: &RenderPlan,
    ) -> Undelivered {
        if !dumps.are_any() {
            return Undelivered::default();
        }
        let RenderPlan { plan, texts, .. } = planned;
        let settings = &inputs.settings;
        let mut shall = Self::planned(settings, plan, texts, &KnownContents::default());
        shall.files.retain(|cluster, shall| {
            let has = self.files.get(cluster).map_or(&[][..], Vec::as_slice);
            !inventory::has_wanted_peers(has, shall, &inputs.meshes)
        });
        let mut has = Self::default();
        let differing = self.files.iter();
        let differing = differing.filter(|(cluster, _)| shall.files.contains_key(*cluster));
        has.files.extend(differing.map(|(cluster, files)| (cluster.clone(), files.clone())));
        let (shall, _) = shall.with_foreign(&has, &inputs.meshes);
        let dumped = dumps.peers.iter().filter_map(|it| it.cluster.parse().ok());
        Undelivered { files: shall.files, dumped: dumped.collect() }
    }
}
