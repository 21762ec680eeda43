//! Reports: what the loss of nodes ends, and what a render would restore.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lost_nodes::LostNodes;
use super::obstacle::OutageObstacle;
use super::proof::{LostPaths, OutageProof};
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{Fabric, NodeRef, Site, SitePair};
use crate::changes::state_proof::{KnownPaths, StateProof};
use crate::name::ClusterName;
use crate::proof::reach::Reach;
use crate::snapshot::Snapshot;

/// The effect of lost nodes until the next render.
#[derive(Clone, Debug, Default)]
pub struct OutageReport {
    /// The declared paths of others that end.
    pub ended: Vec<LostPaths>,
    /// The number of declared paths from and to the lost nodes, which end with them.
    pub own: u64,
}

impl OutageProof<'_, '_, '_, '_> {
    /// Finds what the loss of nodes does.
    ///
    /// # Errors
    /// It is not known.
    pub fn report(&self, lost: &LostNodes) -> Result<OutageReport, OutageObstacle> {
        Ok(OutageReport { ended: self.examine(lost)?.ended, own: self.own_paths(lost) })
    }

    /// Counts the declared paths from and to lost nodes.
    fn own_paths(&self, lost: &LostNodes) -> u64 {
        let left = self.left(lost);
        let own = pairs(self.fabric())
            .filter(|it| it.both().into_iter().any(|it| lost.touch(it)))
            .map(|pair| {
                let working = self.working(pair);
                let mut others = working.clone();
                others.retain(&left[pair.from], &left[pair.to]);
                self.counted(pair, working.without(&others)).map_or(0, |it| it.count())
            });
        own.sum()
    }

    /// Returns the snapshots that clusters would write, without the lost nodes.
    ///
    /// # Errors
    /// It is not known which addresses Kilo gives to the others.
    pub fn next_snapshots(
        &self,
        lost: &LostNodes,
    ) -> Result<BTreeMap<ClusterName, Snapshot>, OutageObstacle> {
        let mut after_loss = self.snapshots_after_loss(lost)?;
        let snapshots = lost.by_site().map(|(site, _)| {
            let it = self.fabric().site(site);
            let snapshot = after_loss.remove(&site);
            let mut snapshot = snapshot.unwrap_or_else(|| it.snapshot.clone());
            let nodes = std::mem::take(&mut snapshot.nodes).into_iter();
            let numbered = nodes.zip(it.reading.nodes.ids());
            let left = numbered.filter(|it| !lost.contain(NodeRef { site, node: it.1 }));
            snapshot.nodes = left.map(|it| it.0).collect();
            (it.cluster.clone(), snapshot)
        });
        Ok(snapshots.collect())
    }

    /// Returns how many of some paths that ended do not work with the Peers of the next render either.
    ///
    /// # Errors
    /// It is not known.
    pub fn still_ended<'p>(
        &self,
        ended: &[LostPaths],
        lost: &LostNodes,
        files: impl Fn(&ClusterName) -> &'p [AppliedFile],
    ) -> Result<u64, OutageObstacle> {
        let snapshots = self.snapshots_after_loss(lost)?;
        let fabric = self.fabric();
        let sites = fabric.in_order_of_rank().map(|number| {
            let it = &fabric.sites[number];
            let files = files(it.cluster);
            let reading = || Site::with_reading(Arc::clone(&it.reading) as _, files, None);
            let snapshot = snapshots.get(&number);
            snapshot.map_or_else(reading, |snapshot| Site::new(it.entry, snapshot, files))
        });
        let fabric = Fabric::new(sites.collect());
        let is_wanted = |one, other| {
            ended.iter().map(|it| it.pair.both()).any(|it| it == [one, other] || it == [other, one])
        };
        let reach = Reach::among(&fabric, self.most, is_wanted);
        if self.most < reach.steps() {
            return Err(OutageObstacle::Steps);
        }
        let mut known = KnownPaths::default();
        let left = ended.iter().map(|it| {
            let works = StateProof::new(&reach, it.pair, &self.blocks, &mut known).whole;
            let left = it.paths.without(&works);
            self.counted(it.pair, left).map_or(0, |it| it.count())
        });
        Ok(left.sum())
    }
}

/// Returns all pairs of clusters.
fn pairs(fabric: &Fabric) -> impl Iterator<Item = SitePair> {
    let sites = fabric.sites.ids();
    sites
        .clone()
        .flat_map(move |from| sites.clone().map(move |to| SitePair { from, to }))
        .filter(|it| it.from != it.to)
}
