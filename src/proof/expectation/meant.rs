//! The meaning of expectations: addresses of clusters.

use std::collections::BTreeSet;

use super::ExpectationSide;
use crate::agent::fabric::Site;
use crate::expectations::{Expectation, Selection};
use crate::kilo::id::NodeId;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::proof::reach::{AddressBlock, address_blocks, of_nodes};
use crate::snapshot::Node;

/// The address blocks of a cluster.
pub(super) struct Stock {
    /// The blocks that send and receive.
    ready: Vec<AddressBlock>,
    /// The blocks of nodes that Kilo does not count.
    unready: Vec<AddressBlock>,
}

impl Stock {
    pub(super) fn new(site: &Site) -> Self {
        Self { ready: address_blocks(site), unready: of_nodes(site, false) }
    }
}

/// Addresses of a block that are meant.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    /// The number of the block in its cluster.
    pub(super) number: usize,
    /// The addresses, and whose they are.
    pub(super) block: AddressBlock,
    /// Whether that is all of the block.
    pub(super) is_whole: bool,
    /// Whether its node takes no part in the mesh, or some cluster does not get it because of claims of nodes.
    pub(super) is_absent: bool,
}

/// A block as an older version had it.
#[derive(Clone, Copy, Default)]
pub(in crate::proof) struct OldBlock<'o, 'n> {
    /// The classes of its addresses, other than the one that they have now.
    pub(in crate::proof) classes: Option<&'o BTreeSet<AddressClass>>,
    /// Its nodes, if these had other labels.
    pub(in crate::proof) nodes: &'o [&'n Node],
}

/// The meaning of one side of an expectation.
pub(in crate::proof) struct Meant<'m> {
    selection: &'m Selection,
    /// The ranges in their order, of two that meet the wider only.
    spans: Vec<Span>,
    is_sender: bool,
}

impl<'m> Meant<'m> {
    pub(in crate::proof) fn by(expectation: &'m Expectation, side: ExpectationSide) -> Self {
        let is_sender = side == ExpectationSide::From;
        Self::new(side.selection(expectation), is_sender)
    }

    pub(in crate::proof) fn new(selection: &'m Selection, is_sender: bool) -> Self {
        let mut spans: Vec<Span> = selection.addresses.iter().map(|it| Span::new(*it)).collect();
        spans.sort_by_key(|it| (it.family, it.first, std::cmp::Reverse(it.last)));
        spans.dedup_by(|inner, outer| outer.holds(*inner));
        Self { selection, spans, is_sender }
    }

    /// Returns what is meant of a cluster.
    pub(super) fn choose(&self, site: &Site, stock: &Stock) -> Chosen {
        if !self.selection.has_cluster(site.cluster) {
            return Chosen::default();
        }
        let unready = self.picks(site, &stock.unready).into_iter();
        Chosen {
            ready: self.picks(site, &stock.ready),
            unready: unready.map(|it| it.block).collect(),
        }
    }

    fn picks(&self, site: &Site, blocks: &[AddressBlock]) -> Vec<Pick> {
        let mut picks = Vec::new();
        // The blocks of a node are side by side.
        let mut known = None;
        for (number, &block) in blocks.iter().enumerate() {
            if !self.is_class(&block) {
                continue;
            }
            let node = block.owner.node();
            let is_selected = match known {
                Some((before, is_selected)) if before == node => is_selected,
                _ => self.is_selected(site, node),
            };
            known = Some((node, is_selected));
            if !is_selected {
                continue;
            }
            let pick = |span| Pick {
                number,
                block: AddressBlock { span, ..block },
                is_whole: span == block.span,
                is_absent: false,
            };
            if self.spans.is_empty() {
                picks.push(pick(block.span));
            } else {
                picks.extend(self.meeting(block.span).map(pick));
            }
        }
        picks
    }

    /// Returns whether all addresses of a block are meant.
    pub(in crate::proof) fn contains(&self, site: &Site, block: &AddressBlock) -> bool {
        let are_held = || block.span.is_covered_by(self.spans.iter().copied());
        self.is_class(block)
            && (self.spans.is_empty() || are_held())
            && self.is_selected(site, block.owner.node())
    }

    /// Returns the meant addresses of a block, also of a cluster that is not selected by its name, and of a block that is
    /// selected only as it was.
    pub(in crate::proof) fn parts(
        &self,
        site: &Site,
        block: &AddressBlock,
        old: OldBlock,
    ) -> Vec<AddressBlock> {
        let was_class = || {
            let wanted = self.selection.class.filter(|_| self.may_send(block));
            wanted.zip(old.classes).is_some_and(|(it, classes)| classes.contains(&it))
        };
        let was_selected = || {
            let selector = self.selection.nodes.as_ref();
            selector.is_some_and(|it| old.nodes.iter().any(|node| it.matches(&node.labels)))
        };
        if !self.is_class(block) && !was_class()
            || !self.is_selected(site, block.owner.node()) && !was_selected()
        {
            return Vec::new();
        }
        if self.spans.is_empty() {
            return vec![*block];
        }
        self.meeting(block.span).map(|span| AddressBlock { span, ..*block }).collect()
    }

    /// Returns whether a block had a class that is not meant. Addresses of nodes are in ranges of other classes, too.
    pub(in crate::proof) fn is_of_other_class(&self, old: OldBlock) -> bool {
        let mut classes = old.classes.into_iter().flatten();
        let wanted = self.selection.class;
        wanted.is_some_and(|wanted| classes.any(|it| *it != wanted && *it != AddressClass::Node))
    }

    /// Returns the addresses as they are written.
    pub(in crate::proof) fn selection(&self) -> &'m Selection {
        self.selection
    }

    fn is_class(&self, block: &AddressBlock) -> bool {
        let class = block.owner.class();
        let is_class = match self.selection.class {
            Some(wanted) => class == Some(wanted),
            None => class.is_some(),
        };
        is_class && self.may_send(block)
    }

    /// Returns whether the addresses of a block can be on this side: only pods and nodes send.
    fn may_send(&self, block: &AddressBlock) -> bool {
        let sends = matches!(block.owner.class(), Some(AddressClass::Pod | AddressClass::Node));
        !self.is_sender || sends
    }

    fn is_selected(&self, site: &Site, node: Option<NodeId>) -> bool {
        let Some(selector) = &self.selection.nodes else {
            return true;
        };
        node.is_some_and(|it| selector.matches(&site.snapshot_of(it).labels))
    }

    /// Returns what some addresses have in common with the ranges.
    fn meeting(&self, span: Span) -> impl Iterator<Item = Span> {
        let before = |it: &Span| (it.family, it.last) < (span.family, span.first);
        let first = self.spans.partition_point(before);
        let rest = self.spans.iter().skip(first);
        rest.map_while(move |it| it.common(span))
    }
}

/// The part of a cluster that a side means.
#[derive(Default)]
pub(super) struct Chosen {
    /// Of nodes that Kilo counts, and of the cluster as a whole.
    pub(super) ready: Vec<Pick>,
    /// Of other nodes.
    pub(super) unready: Vec<AddressBlock>,
}

impl Chosen {
    pub(super) fn ready(&self) -> impl Iterator<Item = AddressBlock> {
        self.ready.iter().map(|it| it.block)
    }

    pub(super) fn unready(&self) -> impl Iterator<Item = AddressBlock> {
        self.unready.iter().copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = AddressBlock> {
        self.ready().chain(self.unready())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.unready.is_empty()
    }
}

/// The addresses that are meant in all clusters: in their order, each span up to the last address of all
/// before it, too.
pub(super) struct TakenAddresses(Vec<Span>);

impl TakenAddresses {
    /// Returns what is chosen, if there are ranges to look for in it.
    pub(super) fn new(selection: &Selection, chosen: &[Chosen]) -> Self {
        if selection.addresses.is_empty() {
            return Self(Vec::new());
        }
        let all = chosen.iter().flat_map(Chosen::all);
        let mut spans: Vec<Span> = all.map(|it| it.span).collect();
        spans.sort_unstable();
        let mut before: Option<Span> = None;
        for span in &mut spans {
            let same = before.filter(|it| it.family == span.family);
            span.last = same.map_or(span.last, |it| it.last.max(span.last));
            before = Some(*span);
        }
        Self(spans)
    }

    /// Returns whether any of some addresses are meant.
    pub(super) fn meets(&self, span: Span) -> bool {
        let begins = |it: &Span| (it.family, it.first) <= (span.family, span.last);
        let begun = self.0.partition_point(begins).checked_sub(1);
        let last = begun.and_then(|it| self.0.get(it));
        last.is_some_and(|it| it.common(span).is_some())
    }
}
