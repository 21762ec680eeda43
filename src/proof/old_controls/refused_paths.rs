//! Refused paths: those of the new version that the old one did not have.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cell, Cells};
use crate::agent::fabric::{Fabric, SitePair};
use crate::name::ClusterName;
use crate::net::prefixes::Span;
use crate::packet::messages::whose;
use crate::proof::reach::{AddressBlock, address_blocks};

/// Refused paths between blocks: from each sender to each receiver.
pub(super) struct PathRectangle {
    pub(super) pair: SitePair,
    pub(super) senders: Vec<AddressBlock>,
    pub(super) receivers: Vec<AddressBlock>,
}

/// Paths from one cluster to another that a control of the old version refuses, and that the old version did not have.
#[derive(Clone, Debug)]
pub struct RefusedPaths {
    /// The index of the control.
    pub control: usize,
    /// The sender and the receiver, by their names in the new version.
    pub between: [ClusterName; 2],
    /// The clusters as which they count, if these have other names.
    pub counted_as: [BTreeSet<ClusterName>; 2],
    /// The number of paths.
    pub paths: u64,
    /// The addresses of one of the paths, with their owners.
    pub example: [String; 2],
}

/// Spans, sorted, that may overlap.
pub(super) struct KnownAddresses(Vec<Span>);

impl KnownAddresses {
    /// Returns the addresses of a version.
    pub(super) fn new(fabric: &Fabric) -> Self {
        let blocks = fabric.sites.iter().flat_map(|it| address_blocks(it));
        Self::of(blocks.map(|it| it.span))
    }

    /// Sorts spans, and extends each up to the last address of all before it.
    fn of(spans: impl Iterator<Item = Span>) -> Self {
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_unstable();
        let mut before: Option<Span> = None;
        for span in &mut spans {
            let same = before.filter(|it| it.family == span.family && span.first <= it.last);
            span.last = same.map_or(span.last, |it| it.last.max(span.last));
            before = Some(*span);
        }
        Self(spans)
    }

    fn meet(&self, span: Span) -> bool {
        let begun = self.0.partition_point(|it| (it.family, it.first) <= (span.family, span.last));
        let last = begun.checked_sub(1).and_then(|it| self.0.get(it));
        last.is_some_and(|it| it.common(span).is_some())
    }
}

/// Returns the refused paths of the new version that are new: neither did the old version have a refused path between
/// the same addresses, nor, for addresses that it did not have, between any of the same clusters.
pub(super) fn added(
    fabric: &Fabric,
    now: &Cells,
    before: &Cells,
    known: &KnownAddresses,
) -> Vec<RefusedPaths> {
    let mut added: BTreeMap<(usize, SitePair), RefusedPaths> = BTreeMap::new();
    for (cell, paths) in now {
        let old = before.get(cell).map_or(&[][..], Vec::as_slice);
        let old: Vec<[KnownAddresses; 2]> = old.iter().map(PathRectangle::addresses).collect();
        for it in paths {
            if let Some((count, example)) = it.uncovered(&old, known) {
                add(&mut added, fabric, cell, it.pair, (count, example));
            }
        }
    }
    added.into_values().collect()
}

fn add(
    added: &mut BTreeMap<(usize, SitePair), RefusedPaths>,
    fabric: &Fabric,
    (control, counted_as, _): &Cell,
    pair: SitePair,
    (paths, example): (u64, [AddressBlock; 2]),
) {
    let between = pair.both().map(|it| fabric.site(it).cluster.clone());
    let all = added.entry((*control, pair)).or_insert_with(|| RefusedPaths {
        control: *control,
        between: between.clone(),
        counted_as: [BTreeSet::new(), BTreeSet::new()],
        paths: 0,
        example: [(pair.from, example[0]), (pair.to, example[1])].map(|(site, block)| {
            let address = block.span.first_address();
            format!("{address} ({})", whose(fabric, site, address))
        }),
    });
    all.paths = all.paths.saturating_add(paths);
    let sides = all.counted_as.iter_mut().zip(counted_as).zip(&between);
    for ((counted, cluster), _) in sides.filter(|it| *it.0.1 != it.1) {
        counted.insert((*cluster).clone());
    }
}

impl PathRectangle {
    fn addresses(&self) -> [KnownAddresses; 2] {
        [&self.senders, &self.receivers].map(|it| KnownAddresses::of(it.iter().map(|it| it.span)))
    }

    /// Returns how many of its paths are in none of the old ones, and one of them.
    fn uncovered(
        &self,
        old: &[[KnownAddresses; 2]],
        known: &KnownAddresses,
    ) -> Option<(u64, [AddressBlock; 2])> {
        let senders = alike(&self.senders, known, &old.iter().map(|it| &it[0]));
        let receivers = alike(&self.receivers, known, &old.iter().map(|it| &it[1]));
        let mut found: Option<(u64, [AddressBlock; 2])> = None;
        for (of_senders, (sender, ones)) in &senders {
            for (of_receivers, (receiver, others)) in &receivers {
                if of_senders.is_disjoint(of_receivers) {
                    let paths = ones.saturating_mul(*others);
                    let all = found.get_or_insert((0, [*sender, *receiver]));
                    all.0 = all.0.saturating_add(paths);
                }
            }
        }
        found
    }
}

/// Groups blocks by the old paths that have them on this side: new addresses count as having been in all of them. Each
/// group has one of its blocks and their number.
fn alike<'o>(
    blocks: &[AddressBlock],
    known: &KnownAddresses,
    old: &(impl Iterator<Item = &'o KnownAddresses> + Clone),
) -> BTreeMap<BTreeSet<usize>, (AddressBlock, u64)> {
    let mut groups: BTreeMap<BTreeSet<usize>, (AddressBlock, u64)> = BTreeMap::new();
    for block in blocks {
        let is_new = !known.meet(block.span);
        let meeting = old.clone().enumerate().filter(|it| is_new || it.1.meet(block.span));
        let group = groups.entry(meeting.map(|it| it.0).collect()).or_insert((*block, 0));
        group.1 += 1;
    }
    groups
}
