//! Staged clusters: all clusters, each in a stage of its way.

use std::sync::Arc;

use super::passage::Passages;
use super::peer_differences::PeerDifferences;
use super::stage::{OLD, StageId};
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, Site, SiteId, Sites};

/// All clusters, each in a stage; with fewer stages, in the new version.
pub(super) struct StagedClusters<'p, 's> {
    passages: &'p Passages<'s>,
    stages: Sites<StageId>,
    /// The Peers of those that are between the old and the new version.
    files: Sites<Option<Vec<AppliedFile>>>,
}

impl<'p, 's> StagedClusters<'p, 's> {
    /// Takes a stage for each cluster.
    pub(super) fn new(passages: &'p Passages<'s>, stage: impl Fn(SiteId) -> StageId) -> Self {
        let stages = passages.0.map_ids(stage);
        let files = passages.0.map_ids(|it| {
            let passage = &passages.0[it];
            let table = passage.table(stages[it])?;
            Some(table.files(passage.peers.after.files))
        });
        Self { passages, stages, files }
    }

    /// Joins them. They share with another fabric what is the same.
    pub(super) fn fabric<'f>(&'f self, other: &Fabric) -> Fabric<'f> {
        let sites = other.in_order_of_rank().map(|number| {
            let passage = &self.passages.0[number];
            let PeerDifferences { now, after, .. } = &passage.peers;
            match &self.files[number] {
                Some(files) => Arc::new(after.with_files(files)),
                None if self.stages[number] == OLD => Arc::clone(now) as Arc<Site<'f>>,
                None => Arc::clone(after) as _,
            }
        });
        Fabric::shared(sites.collect(), Some(other))
    }
}
