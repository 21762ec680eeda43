//! Touched pairs: the clusters between which changes of Peers can change what becomes of packets.

use std::collections::BTreeSet;

use super::followed_addresses::FollowedAddresses;
use super::passage::{Passage, Passages};
use super::versions::Versions;
use crate::agent::fabric::{Fabric, SiteId, Sites};
use crate::kilo::cluster::ClusterNode;
use crate::net::Cidr;

/// Pairs of clusters whose paths the changes can touch.
pub(super) struct Touched(Sites<Sites<bool>>);

impl Touched {
    /// Finds them: those with a cluster that has other nodes, those in which changed Peers have addresses
    /// or keys of the other, and all pairs of a cluster in which changed Peers can disturb any path.
    pub(super) fn new(
        passages: &Passages,
        fabrics: Versions<&Fabric, &Fabric>,
        followed: &FollowedAddresses,
    ) -> Self {
        let with_new_nodes = passages.0.numbered().filter(|it| it.1.has_new_nodes);
        let with_new_nodes: BTreeSet<SiteId> = with_new_nodes.map(|it| it.0).collect();
        let mut wide = with_new_nodes.clone();
        if wide.len() < passages.0.len() {
            wide.extend(with_new_nodes.iter().flat_map(|it| entangled(*it, fabrics.after)));
        }
        let mut touched = passages.0.map(|_| BTreeSet::new());
        for (number, passage) in passages.0.numbered() {
            // All pairs of these are proved in any case.
            if !passage.has_new_peers || wide.contains(&number) {
                continue;
            }
            let ranges = passage.peers.ranges(|_| true);
            let mut dialled = ranges
                .iter()
                .flat_map(|it| fabrics.before.dialled(*it).chain(fabrics.after.dialled(*it)));
            if is_disturbed(passage) || dialled.next().is_some() {
                wide.insert(number);
            }
            touched[number].extend(ranges.iter().flat_map(|it| followed.owners(*it)));
            let keys = passage.peers.keys();
            touched[number].extend(keys.iter().flat_map(|it| fabrics.after.holding_sites(it)));
        }
        let is_touched = |one: SiteId, other: SiteId| {
            one != other
                && (wide.contains(&one)
                    || wide.contains(&other)
                    || touched[one].contains(&other)
                    || touched[other].contains(&one))
        };
        let row = |one| passages.0.map_ids(|other| is_touched(one, other));
        Self(passages.0.map_ids(row))
    }

    /// Returns whether changes can touch the paths between two clusters.
    pub(super) fn has(&self, one: SiteId, other: SiteId) -> bool {
        self.0[one][other]
    }

    /// Returns the clusters to which a cluster has such paths.
    pub(super) fn others(&self, one: SiteId) -> impl Iterator<Item = SiteId> {
        self.0[one].numbered().filter(|it| *it.1).map(|it| it.0)
    }
}

/// Returns whether the Peers of a cluster can change what becomes of packets that are not theirs.
fn is_disturbed(passage: &Passage) -> bool {
    let ends = [&passage.peers.now, &passage.peers.after];
    ends.iter().any(|site| {
        !site.is_undisturbed()
            || site.has_own_keys()
            || !site.model.contests.is_empty()
            || site.reading.topology.has_location_ranges()
    })
}

/// Returns other clusters whose keys or endpoints nodes of a cluster claim.
fn entangled(number: SiteId, fabric: &Fabric) -> BTreeSet<SiteId> {
    let site = fabric.site(number);
    let keys = site.model.topology.nodes.iter();
    let keys = keys.filter_map(|it| it.kilo.key);
    let holders = keys.flat_map(|it| fabric.holding_sites(&it).collect::<Vec<_>>());
    let doors = site.reading.nodes.iter().flat_map(ClusterNode::doors);
    let dialled = doors.flat_map(|it| fabric.dialled(Cidr::host(it.0)).collect::<Vec<_>>());
    let others = holders.chain(dialled.flatten());
    others.filter(|it| *it != number).collect()
}
