//! Old clusters: as which clusters of the old version an address counts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::agent::fabric::{Fabric, Site};
use crate::kilo::id::NodeId;
use crate::mesh::{AddressClass, Entry, Mesh, Networks, Range};
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
    /// Those that the new version has, by their names or by keys of their nodes.
    present: BTreeSet<&'c ClusterName>,
    keys: BTreeMap<[u8; 32], BTreeSet<&'c ClusterName>>,
    ranges: Prefixes<&'c ClusterName>,
    classes: OldClasses,
}

impl<'c> OldClusters<'c> {
    /// Takes the names and ranges that the old meshes declare, the keys of the nodes of both versions, and the new names.
    pub fn new(old: &'c [Mesh], fabrics: Option<(&Fabric, &Fabric)>, new: &'c [Mesh]) -> Self {
        let peers = fabrics.map(|it| it.0);
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
        let new: BTreeSet<&ClusterName> = new.collect();
        let classes = OldClasses::new(old, peers);
        let ranges = ranges.into_iter().collect();
        let mut found = Self { present: &names & &new, new, names, keys, ranges, classes };
        let sites = fabrics.iter().flat_map(|it| &it.1.sites);
        let present: Vec<&ClusterName> = sites.flat_map(|it| found.by_keys(it)).collect();
        found.present.extend(present);
        found
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
        !self.names.contains(name) && counting.iter().any(|it| self.present.contains(it))
    }

    fn by_range(&self, span: Span) -> impl Iterator<Item = &'c ClusterName> {
        let slots = self.ranges.meeting(span);
        slots.flat_map(|it| self.ranges.at(it).1).copied()
    }

    /// Returns the old clusters as which some addresses of a cluster count: that of its name, those that had the key of the
    /// node, and those that declared any of the addresses, or others of the same node that its cluster declares. A new
    /// cluster counts as itself, also a stranger in these ranges.
    fn of(
        &self,
        site: &Site,
        block: &AddressBlock,
        has_known_key: bool,
    ) -> BTreeSet<&'c ClusterName> {
        let node = block.owner.node();
        let key = node.and_then(|it| site.node(it).kilo.key);
        let by_key = key.and_then(|it| self.keys.get(&it)).into_iter().flatten();
        let of_node = node.into_iter().flat_map(|it| {
            let kilo = &site.node(it).kilo;
            let all = kilo.pods().chain(own_addresses(site, it).map(Cidr::host));
            all.filter(|it| declares(site.entry, *it)).collect::<Vec<_>>()
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
        let clusters: BTreeMap<BlockKey, BTreeSet<&ClusterName>> = counted.collect();
        let reclassified = blocks.iter().filter_map(|it| {
            let others = self.classes.others(it);
            (!others.is_empty()).then(|| (block_key(it), others))
        });
        let mut names: BTreeMap<NodeId, BTreeSet<&ClusterName>> = BTreeMap::new();
        for ((_, node), clusters) in &clusters {
            if let Some(node) = node {
                names.entry(*node).or_default().extend(clusters);
            }
        }
        let relabelled = names.iter().map(|(id, names)| (*id, nodes.relabelled(site, *id, names)));
        let nodeless = blocks.iter().filter(|it| it.owner.node().is_none());
        let emptied =
            nodeless.map(|it| (it.span, nodes.with_pods(it.span).map(|it| it.0).collect()));
        CountedAddresses {
            reclassified: reclassified.collect(),
            relabelled: relabelled.collect(),
            emptied: emptied.collect(),
            clusters,
        }
    }
}

/// Returns the addresses of a node itself, as far as they are known.
fn own_addresses(site: &Site, node: NodeId) -> impl Iterator<Item = IpAddr> {
    let wireguard = site.node(node).kilo.wireguard_ip().map(|it| it.address);
    site.address(node).into_iter().chain(wireguard)
}

/// Returns whether an entry declares a range. Claims of nodes outside of it are not those of the cluster.
fn declares(entry: &Entry, range: Cidr) -> bool {
    entry.networks.all().iter().any(|it| it.cidr.contains(range))
}

/// The classes of old addresses: for which the old meshes declare ranges, and which those of the old nodes have.
#[derive(Debug)]
struct OldClasses {
    all: Prefixes<AddressClass>,
    /// Lists without classes.
    flat: Prefixes<()>,
}

impl OldClasses {
    fn new(meshes: &[Mesh], peers: Option<&Fabric>) -> Self {
        let entries = || meshes.iter().flat_map(Mesh::all_entries);
        let sites = || peers.iter().flat_map(|it| &it.sites);
        let flat = entries().filter_map(|it| match &it.networks {
            Networks::Flat { allowed } if !it.name.is_external() => Some(allowed),
            _ => None,
        });
        let all = entries().flat_map(classes).chain(sites().flat_map(|it| of_site(it)));
        let all: BTreeSet<(Cidr, AddressClass)> = all.collect();
        Self {
            all: all.into_iter().collect(),
            flat: Prefixes::union(flat.flatten().map(|it| it.cidr)),
        }
    }

    /// Returns the classes of a block other than the one that it has.
    fn others(&self, block: &AddressBlock) -> BTreeSet<AddressClass> {
        let slots = self.all.meeting(block.span);
        let mut classes: BTreeSet<AddressClass> =
            slots.flat_map(|it| self.all.at(it).1).copied().collect();
        // Nodes that join have new addresses in a list without classes.
        if block.owner.node().is_none() && self.flat.meets(block.span) {
            classes.insert(AddressClass::Network);
        }
        // A network has the addresses of nothing else, also if other ranges are in it.
        if block.owner.class().is_some_and(|it| classes.remove(&it)) {
            classes.remove(&AddressClass::Network);
        }
        classes
    }
}

/// Returns the ranges that an entry declares for one class of addresses.
fn classes(entry: &Entry) -> Vec<(Cidr, AddressClass)> {
    let Networks::Typed { pods, wireguard, services, additional } = &entry.networks else {
        return Vec::new();
    };
    let of =
        |ranges: &[Range], class| ranges.iter().map(move |it| (it.cidr, class)).collect::<Vec<_>>();
    let mut all = of(pods, AddressClass::Pod);
    all.extend(of(additional, AddressClass::Network));
    all.extend(services.iter().map(|it| (it.cidr, AddressClass::Service)));
    all.push((wireguard.cidr, AddressClass::Node));
    all
}

/// Returns the addresses of nodes or of an external peer with their classes. Claims outside of what the entry declares are
/// not those of the cluster, but for internal addresses, which it need not declare.
fn of_site(site: &Site) -> Vec<(Cidr, AddressClass)> {
    if site.cluster.is_external() {
        let owned = site.owned().iter();
        let all =
            owned.flat_map(|(range, owners)| owners.iter().map(move |it| (range, it.class())));
        return all.filter_map(|it| Some((it.0, it.1?))).collect();
    }
    let nodes = site.model.topology.nodes.numbered();
    let all = nodes.flat_map(|(id, it)| {
        let pods = it.kilo.pods().filter(|it| declares(site.entry, *it));
        let own = own_addresses(site, id).map(|it| (Cidr::host(it), AddressClass::Node));
        pods.map(|it| (it, AddressClass::Pod)).chain(own).collect::<Vec<_>>()
    });
    all.collect()
}

/// The nodes of the old version.
pub(super) struct OldNodes<'c> {
    by_key: BTreeMap<[u8; 32], Vec<&'c Node>>,
    by_name: BTreeMap<(&'c ClusterName, &'c str), &'c Node>,
    /// With their internal addresses.
    pods: Prefixes<(&'c Node, Option<IpAddr>)>,
}

impl<'c> OldNodes<'c> {
    pub(super) fn new(old: &'c Fabric) -> Self {
        let (mut by_key, mut by_name) = (BTreeMap::<_, Vec<&Node>>::new(), BTreeMap::new());
        let mut with_pods = Vec::new();
        for site in &old.sites {
            for (id, it) in site.model.topology.nodes.numbered() {
                let node = site.snapshot_of(id);
                if let Some(key) = it.kilo.key {
                    by_key.entry(key).or_default().push(node);
                }
                by_name.insert((site.cluster, &*node.name), node);
                let pods = it.kilo.pods().filter(|it| declares(site.entry, *it));
                with_pods.extend(pods.map(|it| (it, (node, site.address(id)))));
            }
        }
        Self { by_key, by_name, pods: with_pods.into_iter().collect() }
    }

    /// Returns the old nodes that a node may be which have other labels: those with its key, those with its name in the old
    /// clusters as which it counts, and those with its pods and its internal address.
    fn relabelled(
        &self,
        site: &Site,
        id: NodeId,
        clusters: &BTreeSet<&'c ClusterName>,
    ) -> Vec<&'c Node> {
        let (now, kilo) = (site.snapshot_of(id), &site.node(id).kilo);
        let by_key = kilo.key.and_then(|it| self.by_key.get(&it)).into_iter().flatten();
        let by_name = clusters.iter().filter_map(|it| self.by_name.get(&(*it, &*now.name)));
        let own = site.address(id);
        let by_pods = kilo.pods().flat_map(|it| self.with_pods(Span::new(it)));
        let by_pods = by_pods.filter(|it| own.is_some() && it.1 == own).map(|it| it.0);
        let old = by_key.chain(by_name).copied().chain(by_pods);
        old.filter(|it| it.labels != now.labels).collect()
    }

    /// Returns the old nodes with pods in a span, and their internal addresses.
    fn with_pods(&self, span: Span) -> impl Iterator<Item = (&'c Node, Option<IpAddr>)> {
        self.pods.meeting(span).flat_map(|it| self.pods.at(it).1).copied()
    }
}

/// The addresses of a cluster, with the old clusters as which they count.
pub(super) struct CountedAddresses<'c> {
    clusters: BTreeMap<BlockKey, BTreeSet<&'c ClusterName>>,
    /// The classes for which the old meshes declare those that have another class now.
    reclassified: BTreeMap<BlockKey, BTreeSet<AddressClass>>,
    /// The old nodes of those that have other labels now.
    relabelled: BTreeMap<NodeId, Vec<&'c Node>>,
    /// The old nodes with pods in addresses of no node.
    emptied: BTreeMap<Span, Vec<&'c Node>>,
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
        let nodes = match block.owner.node() {
            Some(it) => self.relabelled.get(&it),
            None => self.emptied.get(&block.span),
        };
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
