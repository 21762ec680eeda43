//! Blocks: the addresses of a cluster between which paths are held, and their places in other versions.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;

use crate::agent::fabric::{Fabric, Owner, Site, SiteId};
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::mesh::AddressClass;
use crate::net::prefixes::{Prefixes, Span};
use crate::net::{Cidr, Family, family};
use crate::proof::reach::{AddressBlock, address_blocks};

/// The blocks of a cluster, and the place of each.
#[derive(Default)]
pub(crate) struct Blocks {
    /// In the order in which a proof has them.
    pub(crate) all: Vec<AddressBlock>,
    places: BTreeMap<(Owner, Option<Span>), usize>,
}

/// The place of each block of a cluster among those of another version of it, if it is there.
pub(super) struct PlaceMap {
    places: Vec<BlockPlace>,
    /// The blocks that nodes have instead of those that they do not have any more.
    pub(super) successors: Successors,
    /// Whether each block has the place that it had, which is usual.
    pub(super) is_unchanged: bool,
}

/// The blocks that nodes have instead of others. The old ones of a node have the same successors.
#[derive(Default)]
pub(super) struct Successors {
    /// Sets of new blocks.
    pub(super) sets: Vec<Vec<usize>>,
    /// The number of the set of each old block that has one.
    pub(super) of_block: BTreeMap<usize, usize>,
}

/// A block in another version of its cluster.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace {
    /// The place of the block with its addresses, or with some of them.
    pub(super) place: Option<usize>,
    /// True if none of its addresses is gone.
    pub(super) is_whole: bool,
    /// The reason why no node has its addresses any more; none if they are there, or lost.
    pub(super) end: Option<EndKind>,
}

/// Receivers of a row in the numbers of another version.
#[derive(Default)]
pub(super) struct TranslatedRow {
    /// Those that are there, at least in part, in their new numbers.
    pub(super) kept: FixedBitSet,
    /// Those that are lost, at least in part, in their old numbers.
    pub(super) gone: FixedBitSet,
    /// Those that do not exist any more, in their old numbers.
    pub(super) ended: FixedBitSet,
}

/// The number of blocks that are compared before a block is looked up.
const NEAR: usize = 4;

impl Blocks {
    /// Finds the blocks of a cluster.
    pub(crate) fn new(site: &Site) -> Self {
        let all = address_blocks(site).into_iter();
        let all: Vec<AddressBlock> = all.filter(|it| it.owner.class().is_some()).collect();
        let places = all.iter().zip(0..);
        Self { places: places.map(|(it, place)| (identity(it), place)).collect(), all }
    }

    /// Returns the places of the blocks that are meant.
    pub(crate) fn of(&self, mut are_meant: impl FnMut(&AddressBlock) -> bool) -> FixedBitSet {
        let mut places = self.none();
        places.extend(self.all.iter().enumerate().filter(|it| are_meant(it.1)).map(|it| it.0));
        places
    }

    /// Returns no place, with room for all.
    pub(crate) fn none(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(self.all.len())
    }

    /// Returns the places of blocks. Most are in their order, and near each other.
    pub(super) fn places(&self, blocks: &[AddressBlock]) -> FixedBitSet {
        let mut places = self.none();
        let mut next = 0;
        for block in blocks {
            let mut near = self.all.iter().skip(next).take(NEAR);
            let near = near.position(|it| it == block).map(|it| next + it);
            let place = || self.places.get(&identity(block)).copied();
            if let Some(place) = near.or_else(place) {
                places.insert(place);
                next = place + 1;
            }
        }
        places
    }
}

/// Returns what a block is found by. The address of a node is found by the node: in another state of Kilo, it may
/// be another one.
fn identity(block: &AddressBlock) -> (Owner, Option<Span>) {
    let is_of_node = matches!(block.owner, Owner::Node(_));
    (block.owner, (!is_of_node).then_some(block.span))
}

impl PlaceMap {
    /// Takes the place of each block, and the successors of those that have any.
    pub(super) fn new(places: Vec<BlockPlace>, successors: Successors) -> Self {
        let mut numbered = places.iter().enumerate();
        Self {
            is_unchanged: numbered.all(|(place, it)| it.is_whole && it.place == Some(place)),
            places,
            successors,
        }
    }

    /// Returns whether the owner of a block is still there: with the block itself, or with its successors.
    pub(super) fn is_replaced(&self, block: usize) -> bool {
        self.at(block).place.is_some() || self.successors.of_block.contains_key(&block)
    }

    /// Returns the blocks of a row whose owner is there, but is not reached.
    pub(super) fn unreached(&self, row: &FixedBitSet, reached: &FixedBitSet) -> FixedBitSet {
        let sets = self.successors.sets.iter();
        let sets: Vec<bool> =
            sets.map(|blocks| blocks.iter().any(|it| reached.contains(*it))).collect();
        let is_reached = |block: usize| {
            let set = self.successors.of_block.get(&block);
            self.at(block).place.is_some_and(|it| reached.contains(it))
                || set.and_then(|it| sets.get(*it)) == Some(&true)
        };
        row.ones().filter(|it| self.is_replaced(*it) && !is_reached(*it)).collect()
    }

    /// Returns the place of each block, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        self.places.iter().map(|it| it.place)
    }

    /// Returns blocks in the numbers of the other version.
    pub(super) fn translated(&self, row: &FixedBitSet) -> TranslatedRow {
        let mut translated = TranslatedRow::default();
        if self.is_unchanged {
            translated.kept.clone_from(row);
            return translated;
        }
        for block in row.ones() {
            let to = self.at(block);
            if to.end.is_some() {
                translated.ended.grow_and_insert(block);
            } else if !to.is_whole {
                translated.gone.grow_and_insert(block);
            }
            if let Some(place) = to.place {
                translated.kept.grow_and_insert(place);
            }
        }
        translated
    }

    /// Returns the place of a block.
    pub(super) fn at(&self, block: usize) -> BlockPlace {
        let gone = BlockPlace { place: None, is_whole: false, end: None };
        self.places.get(block).copied().unwrap_or(gone)
    }
}

/// Addresses of one kind and family that a node has.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct NodeAddresses<'e> {
    node: &'e str,
    class: AddressClass,
    family: Family,
}

/// The properties of a block that decide whether a path from or to it is declared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct DeclaredEnd {
    pub(super) class: Option<AddressClass>,
    pub(super) is_declared: bool,
}

/// A cluster, and its blocks.
#[derive(Clone, Copy)]
pub(super) struct PathEnd<'e> {
    pub(super) site: &'e Site<'e>,
    pub(super) blocks: &'e Blocks,
}

impl<'e> PathEnd<'e> {
    /// Returns the name of the node that has a block, if it is one's.
    pub(super) fn node(self, place: usize) -> Option<&'e str> {
        let node = self.blocks.all.get(place)?.owner.node()?;
        Some(&self.site.node(node).kilo.name)
    }

    pub(super) fn class(self, place: usize) -> Option<AddressClass> {
        self.blocks.all.get(place)?.owner.class()
    }

    fn node_addresses(self, place: usize) -> Option<NodeAddresses<'e>> {
        let block = self.blocks.all.get(place)?;
        Some(NodeAddresses {
            node: self.node(place)?,
            class: block.owner.class()?,
            family: family(block.span.first_address()),
        })
    }

    /// Counts blocks by what decides whether a path between two of them is declared.
    pub(super) fn kinds(
        self,
        places: impl Iterator<Item = usize>,
        declared: &[bool],
    ) -> BTreeMap<DeclaredEnd, u64> {
        let mut kinds = BTreeMap::new();
        for place in places {
            let kind = DeclaredEnd {
                class: self.class(place),
                is_declared: declared.get(place) == Some(&true),
            };
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }

    /// Returns a name for people: that of a node, else an address.
    pub(super) fn name(self, place: usize) -> Option<String> {
        let block = self.blocks.all.get(place)?;
        let end = match block.owner.node() {
            Some(node) => self.site.node(node).kilo.name.clone(),
            None => block.span.first_address().to_string(),
        };
        Some(format!("{}/{end}", self.site.cluster))
    }
}

/// Returns the place of each block in another version of the cluster: that with the same addresses. Of a
/// range that belongs to a cluster as a whole, the nodes' own addresses are cut out, so any part of it is
/// the same, but it is whole only if all of its addresses are still there.
pub(super) fn translation(old: PathEnd, new: PathEnd, fleet: Option<&Fleet>) -> PlaceMap {
    type Identity = (Option<AddressClass>, Span);
    let identity = |it: &AddressBlock| -> Identity { (it.owner.class(), it.span) };
    let places = new.blocks.all.iter().zip(0..);
    let places: BTreeMap<Identity, usize> =
        places.map(|(it, place)| (identity(it), place)).collect();
    let overlapping = |block: &AddressBlock| {
        if block.owner.node().is_some() {
            return None;
        }
        // All of it can be a node's now.
        [false, true].into_iter().find_map(|is_own| {
            let is_part = |it: &AddressBlock| {
                it.owner.node().is_some() == is_own && it.span.common(block.span).is_some()
            };
            new.blocks.all.iter().position(is_part)
        })
    };
    let present = LazyCell::new(|| PresentEnds::new(new.site, fleet));
    let blocks = old.blocks.all.iter().enumerate().map(|(number, it)| {
        let same = places.get(&identity(it)).copied();
        let shared = if same.is_none() { overlapping(it) } else { None };
        let all = || new.blocks.all.iter().map(|it| it.span);
        let place = same.or(shared);
        BlockPlace {
            place,
            is_whole: same.is_some() || shared.is_some() && it.span.is_covered_by(all()),
            end: match place {
                None => old.node(number).and_then(|node| present.end(node, it.span)),
                Some(_) => None,
            },
        }
    });
    let blocks: Vec<BlockPlace> = blocks.collect();
    let successors = successors(old, new, &blocks);
    PlaceMap::new(blocks, successors)
}

/// Returns the blocks of one kind and family that a node has instead of those that have moved.
fn successors(old: PathEnd, new: PathEnd, blocks: &[BlockPlace]) -> Successors {
    let has_moved = |it: &(usize, &BlockPlace)| it.1.end == Some(EndKind::NodeMoved);
    let mut moved = blocks.iter().enumerate().filter(has_moved).peekable();
    if moved.peek().is_none() {
        return Successors::default();
    }
    let mut of_nodes: BTreeMap<NodeAddresses, Vec<usize>> = BTreeMap::new();
    for place in 0..new.blocks.all.len() {
        let addresses = new.node_addresses(place);
        if let Some(addresses) = addresses {
            of_nodes.entry(addresses).or_default().push(place);
        }
    }
    let numbers: BTreeMap<&NodeAddresses, usize> = of_nodes.keys().zip(0..).collect();
    let of_block = moved.filter_map(|(block, _)| {
        let set = numbers.get(&old.node_addresses(block)?)?;
        Some((block, *set))
    });
    Successors { of_block: of_block.collect(), sets: of_nodes.into_values().collect() }
}

/// The reason why a node of the old version does not have some addresses any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EndKind {
    NodeLeft,
    /// The node has other addresses.
    NodeMoved,
}

/// The addresses of all nodes of a cluster in the new version, also of those that do not take part in the mesh.
pub(super) struct PresentEnds<'f> {
    addresses: Prefixes<()>,
    /// Whether each node takes part, by its name.
    takes_part: BTreeMap<&'f str, bool>,
}

impl<'f> PresentEnds<'f> {
    /// Finds them. Without a fleet, no node is known to take part.
    pub(super) fn new(site: &'f Site, fleet: Option<&Fleet>) -> Self {
        let nodes = &site.reading.nodes;
        let members: Vec<&Member> =
            fleet.iter().flat_map(|it| it.memberships(site.cluster)).collect();
        let is_usable = |name: &str| members.iter().all(|it| it.membership.usable.contains(name));
        let addresses: Vec<(Cidr, ())> =
            nodes.iter().flat_map(addresses).map(|it| (it, ())).collect();
        let takes_part = nodes.iter().map(|it| {
            let name = it.node.name.as_str();
            (name, !members.is_empty() && is_usable(name))
        });
        Self { addresses: Prefixes::new(addresses), takes_part: takes_part.collect() }
    }

    /// Returns why a node of the old version does not have its addresses any more; none if any node of the cluster has
    /// them, or if the node is still there and left out: then its addresses are lost.
    pub(super) fn end(&self, node: &str, addresses: Span) -> Option<EndKind> {
        let kind = match self.takes_part.get(node) {
            None => EndKind::NodeLeft,
            Some(true) => EndKind::NodeMoved,
            Some(false) => return None,
        };
        (!self.addresses.meets(addresses)).then_some(kind)
    }

    /// Returns whether a node takes part, and any node still has some addresses.
    pub(super) fn takes_part(&self, node: &str, addresses: Span) -> bool {
        self.takes_part.get(node) == Some(&true) && self.addresses.meets(addresses)
    }
}

/// Returns everything that a node reports as its own, in any form.
fn addresses(node: &ClusterNode) -> Vec<Cidr> {
    let tunnel = node.kilo.wireguard_ip().map(|it| it.address);
    let hosts = node.endpoints().map(|it| it.0).chain(tunnel);
    node.node.valid_pod_cidrs().chain(hosts.map(Cidr::host)).collect()
}

/// The addresses that nodes have, or that clusters declare as a whole.
pub(super) struct FollowedAddresses<'f, 'a> {
    pub(super) fabric: &'f Fabric<'a>,
    sites: Prefixes<SiteId>,
}

impl<'f, 'a> FollowedAddresses<'f, 'a> {
    /// Collects the addresses of all clusters. Addresses in Kilo's subnet are the ends of no declared path,
    /// unless a node has no other.
    pub(super) fn new(fabric: &'f Fabric<'a>) -> Self {
        let mut addresses = Vec::new();
        for (number, site) in fabric.sites.numbered() {
            let is_end = |it: &Owner| !matches!(it, Owner::Tunnel(_) | Owner::Pool);
            let owned = site.owned().iter().filter(|it| it.1.iter().any(is_end));
            addresses.extend(owned.map(|(range, _)| (range, number)));
            let nodes = site.model.topology.nodes.ids();
            let hosts = nodes.filter_map(|node| site.address(node));
            addresses.extend(hosts.map(|it| (Cidr::host(it), number)));
        }
        Self { fabric, sites: Prefixes::new(addresses) }
    }

    /// Returns whether a range shares addresses with any of them.
    pub(super) fn meet(&self, range: Cidr) -> bool {
        self.sites.meets(Span::new(range))
    }

    /// Returns the clusters that have addresses in a range.
    pub(super) fn owners(&self, range: Cidr) -> BTreeSet<SiteId> {
        let span = Span::new(range);
        let slots = self.sites.within(span).chain(self.sites.around(span));
        slots.flat_map(|slot| self.sites.at(slot).1).copied().collect()
    }
}
