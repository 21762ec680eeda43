//! Clusters that are cut off: their nodes have new keys, and no path works with these. Without the snapshots of the old
//! version, the paths with the old keys count as working.

use std::collections::BTreeSet;

use super::passage::Passages;
use super::paths::PathProof;
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, SiteId, SitePair};

/// Returns the clusters with which one has no path any more, each pair in both directions.
pub(super) fn cut_off(
    passages: &Passages,
    after: &Fabric,
    proof: &PathProof,
) -> BTreeSet<(SiteId, SiteId)> {
    let mut cut: BTreeSet<(SiteId, SiteId)> = BTreeSet::new();
    for (target, passage) in passages.0.numbered() {
        for pair in &passage.peers.pairs {
            let Pair::Changed { before, after: is } = *pair else {
                continue;
            };
            let old = &passage.peers.now.model.peers[before].applied.spec;
            let is_unknown = |it: &[u8; 32]| after.holders(it).is_empty();
            let had_other_key = old.as_ref().is_ok_and(|it| is_unknown(&it.key));
            if let (true, Holding::One(at)) = (had_other_key, after.holding(target, is)) {
                cut.extend([(target, at.site), (at.site, target)]);
            }
        }
    }
    for proved in proof.proved.iter().filter(|it| !it.new.is_empty()) {
        let SitePair { from, to } = proved.pair;
        cut.remove(&(from, to));
        cut.remove(&(to, from));
    }
    cut
}
