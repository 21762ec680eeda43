//! Ends of paths: the blocks of a cluster, and their places in another version of it.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use super::blocks::{BlockPlace, Blocks, PlaceMap, Successors};
use super::ended::{EndKind, PresentEnds};
use crate::agent::fabric::Site;
use crate::fleet::Fleet;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::net::{Family, family};
use crate::proof::reach::AddressBlock;

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
