//! Old clusters: as which clusters of the old version an address counts.

use std::collections::{BTreeMap, BTreeSet};

use super::JudgedVersion;
use crate::agent::fabric::Site;
use crate::mesh::{Entry, Mesh};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::proof::reach::{AddressBlock, address_blocks};

/// The clusters of the old version, and what shows that something is a part of one.
pub(super) struct OldClusters<'c> {
    names: BTreeSet<&'c ClusterName>,
    /// The names of both versions.
    all: BTreeSet<&'c ClusterName>,
    keys: BTreeMap<[u8; 32], BTreeSet<&'c ClusterName>>,
    ranges: Prefixes<&'c ClusterName>,
}

impl<'c> OldClusters<'c> {
    /// Takes the names and ranges that the old meshes declare, the keys of the old nodes, and the new names.
    pub(super) fn new(old: JudgedVersion<'c, '_>, new: &'c [Mesh]) -> Self {
        let entries = || old.meshes.iter().flat_map(Mesh::all_entries);
        let names: BTreeSet<&ClusterName> = entries().map(|it| &it.name).collect();
        let new = new.iter().flat_map(Mesh::all_entries).map(|it| &it.name);
        let mut keys: BTreeMap<[u8; 32], BTreeSet<&ClusterName>> = BTreeMap::new();
        for site in &old.fabric.sites {
            let Some(cluster) = names.get(site.cluster) else {
                continue;
            };
            let nodes = site.model.topology.nodes.iter();
            for key in nodes.filter_map(|it| it.kilo.key) {
                keys.entry(key).or_default().insert(cluster);
            }
        }
        // A cluster in several meshes declares the same ranges in each.
        let given = |it: &'c Entry| it.given().into_iter().map(move |range| (range.cidr, &it.name));
        let ranges: BTreeSet<(Cidr, &ClusterName)> = entries().flat_map(given).collect();
        Self {
            all: names.iter().copied().chain(new).collect(),
            names,
            keys,
            ranges: ranges.into_iter().collect(),
        }
    }

    /// Returns the old clusters as which some addresses of a cluster count: that of its name, those that had the key of the
    /// node, and those that declared any of the addresses. A new cluster counts as itself.
    pub(super) fn of(&self, site: &Site, block: &AddressBlock) -> BTreeSet<&'c ClusterName> {
        let node = block.owner.node();
        let key = node.and_then(|it| site.node(it).kilo.key);
        let by_key = key.and_then(|it| self.keys.get(&it)).into_iter().flatten();
        let slots = self.ranges.meeting(block.span);
        let by_range = slots.flat_map(|it| self.ranges.at(it).1);
        let by_name = self.names.get(site.cluster);
        let counting = by_name.into_iter().chain(by_key).chain(by_range).copied();
        let mut counting: BTreeSet<&ClusterName> = counting.collect();
        if counting.is_empty() {
            counting.extend(self.all.get(site.cluster));
        }
        counting
    }

    /// Returns all old clusters as which addresses of a cluster may count.
    pub(super) fn of_site(&self, site: &Site) -> BTreeSet<&'c ClusterName> {
        let blocks = address_blocks(site);
        blocks.iter().flat_map(|it| self.of(site, it)).collect()
    }
}

/// Returns the addresses of a span that are in none of some ranges.
pub(super) fn outside(ranges: &Prefixes<()>, span: Span) -> Vec<Span> {
    let pieces = ranges.pieces(span).into_iter();
    pieces.filter(|it| it.slot.is_none()).map(|it| it.span).collect()
}
