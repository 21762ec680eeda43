//! Old clusters: as which clusters of the old version an address counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::fabric::{Fabric, Site};
use crate::kilo::id::NodeId;
use crate::mesh::{AddressClass, Entry, Mesh, Networks};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::proof::expectation::OldBlock;
use crate::proof::reach::{AddressBlock, address_blocks};
use crate::snapshot::Node;

/// The clusters of the old version, and what shows that something is a part of one.
#[derive(Debug)]
pub struct OldClusters<'c> {
    names: BTreeSet<&'c ClusterName>,
    /// The names of the new version.
    new: BTreeSet<&'c ClusterName>,
    keys: BTreeMap<[u8; 32], BTreeSet<&'c ClusterName>>,
    ranges: Prefixes<&'c ClusterName>,
    /// The classes for which the old meshes declare ranges, and where these do not decide, that of the pods of old nodes.
    classes: Prefixes<AddressClass>,
}

impl<'c> OldClusters<'c> {
    /// Takes the names and ranges that the old meshes declare, the keys of the old nodes, and the new names.
    pub fn new(old: &'c [Mesh], peers: Option<&Fabric>, new: &'c [Mesh]) -> Self {
        let entries = || old.iter().flat_map(Mesh::all_entries);
        let names: BTreeSet<&ClusterName> = entries().map(|it| &it.name).collect();
        let new = new.iter().flat_map(Mesh::all_entries).map(|it| &it.name);
        let mut keys: BTreeMap<[u8; 32], BTreeSet<&ClusterName>> = BTreeMap::new();
        for site in peers.iter().flat_map(|it| &it.sites) {
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
        let pods = peers.iter().flat_map(|it| &it.sites).flat_map(|site| {
            let nodes = site.model.topology.nodes.iter();
            let pods = nodes.flat_map(|it| it.kilo.pods()).filter(|it| declares(site.entry, *it));
            pods.map(|it| (it, AddressClass::Pod))
        });
        let classes: BTreeSet<(Cidr, AddressClass)> =
            entries().flat_map(classes).chain(pods).collect();
        Self {
            new: new.collect(),
            names,
            keys,
            ranges: ranges.into_iter().collect(),
            classes: classes.into_iter().collect(),
        }
    }

    /// Returns as which old clusters each cluster of a version counts, by its name, the keys of its nodes and the ranges that
    /// it declares. A stranger also counts as itself.
    pub fn counted<'m>(
        &self,
        meshes: &'m [Mesh],
        peers: Option<&Fabric>,
    ) -> BTreeMap<&'m ClusterName, BTreeSet<&'c ClusterName>> {
        let mut counted: BTreeMap<&ClusterName, BTreeSet<&ClusterName>> = BTreeMap::new();
        for entry in meshes.iter().flat_map(Mesh::all_entries) {
            let all = counted.entry(&entry.name).or_default();
            all.extend(self.names.get(&entry.name));
            let given = entry.given().into_iter().map(|it| Span::new(it.cidr));
            all.extend(given.flat_map(|it| self.by_range(it)));
        }
        let mut known: BTreeSet<&ClusterName> = BTreeSet::new();
        for site in peers.iter().flat_map(|it| &it.sites) {
            let mut keys = self.by_keys(site).peekable();
            if keys.peek().is_some() {
                known.insert(site.cluster);
            }
            if let Some(all) = counted.get_mut(site.cluster) {
                all.extend(keys);
            }
        }
        for (name, all) in &mut counted {
            if !known.contains(name) && self.is_beside(name, all) {
                all.extend(self.new.get::<ClusterName>(name));
            }
        }
        counted
    }

    /// Returns the old clusters that had keys of a cluster's nodes.
    fn by_keys(&self, site: &Site) -> impl Iterator<Item = &'c ClusterName> {
        let nodes = site.model.topology.nodes.iter();
        nodes.filter_map(|it| self.keys.get(&it.kilo.key?)).flatten().copied()
    }

    /// Returns whether the old clusters that a new one counts as are there, too: with keys of its own, it may be a
    /// stranger in their ranges.
    fn is_beside(&self, name: &ClusterName, counting: &BTreeSet<&'c ClusterName>) -> bool {
        !self.names.contains(name) && counting.iter().any(|it| self.new.contains(it))
    }

    fn by_range(&self, span: Span) -> impl Iterator<Item = &'c ClusterName> {
        let slots = self.ranges.meeting(span);
        slots.flat_map(|it| self.ranges.at(it).1).copied()
    }

    /// Returns the old clusters as which some addresses of a cluster count: that of its name, those that had the key of the
    /// node, and those that declared any of the addresses, or pods or the WireGuard address of the same node. A new cluster
    /// counts as itself, also a stranger in these ranges.
    fn of(
        &self,
        site: &Site,
        block: &AddressBlock,
        has_known_key: bool,
    ) -> BTreeSet<&'c ClusterName> {
        let node = block.owner.node();
        let node = node.map(|it| &site.node(it).kilo);
        let key = node.and_then(|it| it.key);
        let by_key = key.and_then(|it| self.keys.get(&it)).into_iter().flatten();
        let of_node = node.into_iter().flat_map(|it| {
            let wireguard = it.wireguard_ip().map(|it| Cidr::host(it.address));
            it.pods().chain(wireguard).filter(|it| declares(site.entry, *it)).collect::<Vec<_>>()
        });
        let by_node = of_node.flat_map(|it| self.by_range(Span::new(it)).collect::<Vec<_>>());
        let by_name = self.names.get(site.cluster);
        let counting = by_name.into_iter().chain(by_key).copied();
        let counting = counting.chain(self.by_range(block.span)).chain(by_node);
        let mut counting: BTreeSet<&ClusterName> = counting.collect();
        if counting.is_empty() || !has_known_key && self.is_beside(site.cluster, &counting) {
            counting.extend(self.new.get(site.cluster));
        }
        counting
    }

    /// Returns the old clusters as which the addresses of a cluster count.
    pub(super) fn blocks(&self, site: &Site, nodes: &OldNodes<'c>) -> CountedAddresses<'c> {
        let has_known_key = self.by_keys(site).next().is_some();
        let blocks = address_blocks(site);
        let counted = blocks.iter().map(|it| (block_key(it), self.of(site, it, has_known_key)));
        let reclassified = blocks.iter().filter_map(|it| {
            let slots = self.classes.meeting(it.span);
            let classes = slots.flat_map(|it| self.classes.at(it).1).copied();
            let others = classes.filter(|class| it.owner.class() != Some(*class));
            let others: BTreeSet<AddressClass> = others.collect();
            (!others.is_empty()).then(|| (block_key(it), others))
        });
        CountedAddresses {
            clusters: counted.collect(),
            reclassified: reclassified.collect(),
            relabelled: nodes.of_relabelled(site),
        }
    }
}

/// Returns whether an entry declares a range. Claims of nodes outside of it are not those of the cluster.
fn declares(entry: &Entry, range: Cidr) -> bool {
    entry.networks.all().iter().any(|it| it.cidr.contains(range))
}

/// Returns the ranges that an entry declares for one class of addresses.
fn classes(entry: &Entry) -> Vec<(Cidr, AddressClass)> {
    let Networks::Typed { pods, wireguard, services, .. } = &entry.networks else {
        return Vec::new();
    };
    let pods = pods.iter().map(|it| (it.cidr, AddressClass::Pod));
    let services = services.iter().map(|it| (it.cidr, AddressClass::Service));
    pods.chain(services).chain([(wireguard.cidr, AddressClass::Node)]).collect()
}

/// The nodes of the old version.
pub(super) struct OldNodes<'c> {
    by_key: BTreeMap<[u8; 32], &'c Node>,
    by_name: BTreeMap<(&'c ClusterName, &'c str), &'c Node>,
}

impl<'c> OldNodes<'c> {
    pub(super) fn new(old: &'c Fabric) -> Self {
        let (mut by_key, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        for site in &old.sites {
            for (id, it) in site.model.topology.nodes.numbered() {
                let node = site.snapshot_of(id);
                by_key.extend(it.kilo.key.map(|it| (it, node)));
                by_name.insert((site.cluster, &*node.name), node);
            }
        }
        Self { by_key, by_name }
    }

    /// Returns the old nodes with the key or the name of each node of a cluster that has other labels now.
    fn of_relabelled(&self, site: &Site) -> BTreeMap<NodeId, Vec<&'c Node>> {
        let nodes = site.model.topology.nodes.numbered();
        let old = nodes.filter_map(|(id, it)| {
            let now = site.snapshot_of(id);
            let by_key = it.kilo.key.and_then(|it| self.by_key.get(&it));
            let by_name = self.by_name.get(&(site.cluster, &*now.name));
            let old = by_key.into_iter().chain(by_name).copied();
            let old: Vec<&Node> = old.filter(|it| it.labels != now.labels).collect();
            (!old.is_empty()).then_some((id, old))
        });
        old.collect()
    }
}

/// The addresses of a cluster, with the old clusters as which they count.
pub(super) struct CountedAddresses<'c> {
    clusters: BTreeMap<BlockKey, BTreeSet<&'c ClusterName>>,
    /// The classes for which the old meshes declare those that have another class now.
    reclassified: BTreeMap<BlockKey, BTreeSet<AddressClass>>,
    /// The old nodes of those that have other labels now.
    relabelled: BTreeMap<NodeId, Vec<&'c Node>>,
}

type BlockKey = (Span, Option<NodeId>);

fn block_key(block: &AddressBlock) -> BlockKey {
    (block.span, block.owner.node())
}

impl<'c> CountedAddresses<'c> {
    /// Returns the old clusters as which a block counts.
    pub(super) fn of(&self, block: &AddressBlock) -> impl Iterator<Item = &'c ClusterName> {
        self.clusters.get(&block_key(block)).into_iter().flatten().copied()
    }

    /// Returns the block as it was: the classes that it has no longer, and its nodes if these have other labels now.
    pub(super) fn old(&self, block: &AddressBlock) -> OldBlock<'_, 'c> {
        let nodes = block.owner.node().and_then(|it| self.relabelled.get(&it));
        OldBlock {
            classes: self.reclassified.get(&block_key(block)),
            nodes: nodes.map_or(&[], Vec::as_slice),
        }
    }

    /// Returns all of the old clusters.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &'c ClusterName> {
        self.clusters.values().flatten().copied()
    }
}

/// Returns the addresses of a span that are in none of some ranges.
pub(super) fn outside(ranges: &Prefixes<()>, span: Span) -> Vec<Span> {
    let pieces = ranges.pieces(span).into_iter();
    pieces.filter(|it| it.slot.is_none()).map(|it| it.span).collect()
}
