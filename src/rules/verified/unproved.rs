//! Words for linked clusters that have no declared path.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster;
use crate::agent::fabric::{Fabric, SiteId};
use crate::diagnostic::Finding;
use crate::proof::rule::UNPROVED_CLUSTER;
use crate::proof::verify::{Pairing, Verification};
use crate::text::listed;

/// Returns the linked clusters of which no node has declared paths, and those that have none to some others.
pub(super) fn unproved(fabric: &Fabric, verification: &Verification) -> Vec<Finding> {
    let mut apart: BTreeMap<SiteId, usize> = BTreeMap::new();
    for at in &verification.apart {
        *apart.entry(at.site).or_default() += 1;
    }
    let is_apart = |site: SiteId| {
        let nodes = fabric.site(site).model.topology.nodes.len();
        apart.get(&site) == Some(&nodes)
    };
    let linked = || verification.pairings.iter().filter(|it| it.is_linked);
    let unproved: BTreeSet<SiteId> =
        linked().map(|it| it.from).filter(|it| is_apart(*it)).collect();
    let alone = unproved.iter().map(|site| {
        let message =
            "no paths from or to this cluster were checked: its nodes have no declared paths";
        Finding::on_cluster(&UNPROVED_CLUSTER, cluster(fabric, *site), message)
    });
    let with_paths = verification.with_paths();
    let pathless = linked().map(Pairing::pair).filter(|it| !with_paths.contains(it));
    let pathless = pathless.filter(|pair| {
        let mut both = pair.both().into_iter();
        pair.from < pair.to
            && both.all(|it| fabric.site(it).entry.is_joined_cluster() && !unproved.contains(&it))
    });
    let mut others: BTreeMap<SiteId, Vec<SiteId>> = BTreeMap::new();
    for pair in pathless {
        others.entry(pair.from).or_default().push(pair.to);
    }
    let pathless = others.iter().map(|(site, others)| {
        let others = listed(others.iter().map(|it| cluster(fabric, *it)));
        let message = format!("a mesh links it to {others}, but no path between them is declared");
        Finding::on_cluster(&UNPROVED_CLUSTER, cluster(fabric, *site), message)
    });
    alone.chain(pathless).map(|it| it.help("run `clustermesh validate` to see why")).collect()
}
