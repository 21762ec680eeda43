//! Refused paths: those of the new version that the old one did not have.

use std::collections::{BTreeMap, BTreeSet};

use super::Cells;
use crate::agent::fabric::{Fabric, SitePair};
use crate::name::ClusterName;
use crate::net::prefixes::Span;
use crate::packet::messages::whose;
use crate::proof::reach::{AddressBlock, address_blocks};
use crate::proof::verify::ClassPair;

/// Refused paths between blocks: from each sender to each receiver.
pub(super) struct PathRectangle {
    pub(super) pair: SitePair,
    pub(super) senders: Vec<AddressBlock>,
    pub(super) receivers: Vec<AddressBlock>,
}

/// The most pairs of clusters of which a control lists refused paths.
const LISTED: usize = 20;

/// The paths that a control of the old version refuses, and that the old version did not have.
#[derive(Clone, Debug)]
pub struct RefusedPaths {
    /// The index of the control.
    pub control: usize,
    /// The pairs of clusters between which they are, as far as they are listed.
    pub pairs: Vec<RefusedPair>,
    /// The number of pairs that are not listed.
    pub omitted: usize,
    /// The number of paths.
    pub paths: u64,
}

/// Refused paths from one cluster to another.
#[derive(Clone, Debug)]
pub struct RefusedPair {
    /// The sender and the receiver, by their names in the new version.
    pub between: [ClusterName; 2],
    /// The clusters as which they count, if these have other names.
    pub counted_as: [BTreeSet<ClusterName>; 2],
    /// The number of paths.
    pub paths: u64,
    /// The addresses of one of the paths, with their owners.
    pub example: [String; 2],
}

/// The paths between two clusters: the old clusters as which both count, the number, and one of them.
struct FoundPair<'c> {
    counted_as: [BTreeSet<&'c ClusterName>; 2],
    paths: u64,
    example: [AddressBlock; 2],
}

/// Spans, sorted, none of which begins in another one or just behind it.
pub(super) struct KnownAddresses(Vec<Span>);

/// The refused paths of the old version between two clusters.
struct OldPaths {
    classes: ClassPair,
    /// The addresses of both sides.
    sides: [KnownAddresses; 2],
}

impl KnownAddresses {
    /// Returns the addresses of a version.
    pub(super) fn new(fabric: &Fabric) -> Self {
        let blocks = fabric.sites.iter().flat_map(|it| address_blocks(it));
        Self::of(blocks.map(|it| it.span))
    }

    fn of(spans: impl Iterator<Item = Span>) -> Self {
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_unstable();
        let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match joined.last_mut() {
                Some(last)
                    if last.family == span.family && span.first <= last.last.saturating_add(1) =>
                {
                    last.last = last.last.max(span.last);
                }
                _ => joined.push(span),
            }
        }
        Self(joined)
    }

    /// Returns the addresses of a span that are not among them.
    fn missing(&self, span: Span) -> Vec<Span> {
        let before = |it: &Span| (it.family, it.last) < (span.family, span.first);
        let meeting = self.0.iter().skip(self.0.partition_point(before));
        let meeting = meeting.map_while(|it| it.common(span));
        let (mut missing, mut next) = (Vec::new(), Some(span.first));
        for known in meeting {
            let gap = next.filter(|it| *it < known.first);
            missing.extend(gap.map(|first| Span { first, last: known.first - 1, ..span }));
            next = known.last.checked_add(1);
        }
        let rest = next.filter(|it| *it <= span.last);
        missing.extend(rest.map(|first| Span { first, ..span }));
        missing
    }

    fn meet(&self, span: Span) -> bool {
        self.missing(span) != [span]
    }
}

/// Returns the refused paths of the new version that are new: neither did the old version have a refused path between
/// the same addresses, nor, for addresses of new nodes, between any of the same clusters and classes.
pub(super) fn added(
    control: usize,
    fabric: &Fabric,
    now: &Cells,
    before: &Cells,
    known: &KnownAddresses,
) -> Option<RefusedPaths> {
    let mut found: BTreeMap<SitePair, FoundPair> = BTreeMap::new();
    let mut old: BTreeMap<[&ClusterName; 2], Vec<OldPaths>> = BTreeMap::new();
    for ((clusters, classes), paths) in before {
        let paths = paths.iter().map(|it| OldPaths { classes: *classes, sides: it.addresses() });
        old.entry(*clusters).or_default().extend(paths);
    }
    for (cell, paths) in now {
        let old = old.get(&cell.0).map_or(&[][..], Vec::as_slice);
        for it in paths {
            let Some((count, example)) = it.uncovered(cell.1, old, known) else {
                continue;
            };
            let counted_as = [BTreeSet::new(), BTreeSet::new()];
            let all = found.entry(it.pair).or_insert(FoundPair { counted_as, paths: 0, example });
            all.paths = all.paths.saturating_add(count);
            for (counted, cluster) in all.counted_as.iter_mut().zip(cell.0) {
                counted.insert(cluster);
            }
        }
    }
    let paths = found.values().fold(0, |all: u64, it| all.saturating_add(it.paths));
    let omitted = found.len().saturating_sub(LISTED);
    let pairs = found.into_iter().take(LISTED).map(|(pair, it)| it.named(fabric, pair));
    let pairs: Vec<RefusedPair> = pairs.collect();
    (!pairs.is_empty()).then_some(RefusedPaths { control, pairs, omitted, paths })
}

impl FoundPair<'_> {
    fn named(self, fabric: &Fabric, pair: SitePair) -> RefusedPair {
        let between = pair.both().map(|it| fabric.site(it).cluster.clone());
        let [from, to] = self.counted_as;
        let counted_as = [(from, &between[0]), (to, &between[1])].map(|(all, own)| {
            all.into_iter().filter(|it| *it != own).cloned().collect::<BTreeSet<ClusterName>>()
        });
        let [sender, receiver] = self.example;
        let example = [(pair.from, sender), (pair.to, receiver)].map(|(site, block)| {
            let address = block.span.first_address();
            format!("{address} ({})", whose(fabric, site, address))
        });
        RefusedPair { between, counted_as, paths: self.paths, example }
    }
}

impl PathRectangle {
    fn addresses(&self) -> [KnownAddresses; 2] {
        [&self.senders, &self.receivers].map(|it| KnownAddresses::of(it.iter().map(|it| it.span)))
    }

    /// Returns how many of its paths are in none of the old ones, and one of them.
    fn uncovered(
        &self,
        classes: ClassPair,
        old: &[OldPaths],
        known: &KnownAddresses,
    ) -> Option<(u64, [AddressBlock; 2])> {
        let of = |side: usize| old.iter().map(move |it| (&it.sides[side], it.classes == classes));
        let senders = alike(&self.senders, known, &of(0));
        let receivers = alike(&self.receivers, known, &of(1));
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

/// Groups blocks by the old paths that have them on this side: addresses of new nodes count as having been in all of the
/// same classes. Each group has one of its blocks and their number.
fn alike<'o>(
    blocks: &[AddressBlock],
    known: &KnownAddresses,
    old: &(impl Iterator<Item = (&'o KnownAddresses, bool)> + Clone),
) -> BTreeMap<BTreeSet<usize>, (AddressBlock, u64)> {
    let mut groups: BTreeMap<BTreeSet<usize>, (AddressBlock, u64)> = BTreeMap::new();
    for block in blocks {
        let is_of_node = block.owner.node().is_some();
        let has = |old: &KnownAddresses, is_same_class: bool| {
            let missing = old.missing(block.span);
            let are_new = || missing.iter().all(|it| !known.meet(*it));
            missing.is_empty() || is_of_node && is_same_class && are_new()
        };
        let having = old.clone().enumerate().filter(|(_, (old, is_same))| has(old, *is_same));
        let group = groups.entry(having.map(|it| it.0).collect()).or_insert((*block, 0));
        group.1 += 1;
    }
    groups
}
