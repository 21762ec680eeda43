//! The address space: who declares which addresses, what two clusters share, and what is free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use serde::Serialize;

use super::mesh_results::MeshResults;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::net::{self, Cidr, merged};

/// The private IPv4 addresses: RFC 1918, and the shared space of RFC 6598.
const SPACES: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"];

/// The local addresses of IPv6, RFC 4193.
const LOCAL: &str = "fc00::/7";

/// The length of a bar.
const LENGTH: u128 = 10_000;

/// The least length of a range in a bar.
const LEAST: u128 = 15;

/// The most free ranges of a space, overlaps and declared ranges that are shown.
const FREE: usize = 8;
const OVERLAPS: usize = 50;
const RANGES: usize = 2000;

/// The address space.
#[derive(Serialize)]
pub(super) struct AddressSpaces<'d> {
    bars: Vec<SpaceBar>,
    free: Vec<FreeRoom>,
    ranges: Vec<RangeView<'d>>,
    more_ranges: usize,
    overlaps: Vec<[RangeView<'d>; 2]>,
    more_overlaps: usize,
}

/// The used part of a space as a bar.
#[derive(Clone, Serialize)]
pub(super) struct SpaceBar {
    id: String,
    first: String,
    last: String,
    pub(super) range: String,
    /// A path for the ranges of each class.
    pub(super) classes: BTreeMap<String, String>,
    /// A path for the addresses that two clusters declare.
    shared: String,
}

/// The free ranges of a space.
#[derive(Serialize)]
struct FreeRoom {
    space: String,
    /// The largest free ranges.
    ranges: Vec<String>,
    more: usize,
}

/// A declared range.
#[derive(Serialize)]
struct RangeView<'d> {
    range: String,
    class: &'d str,
    cluster: &'d str,
}

impl<'d> AddressSpaces<'d> {
    /// Returns the address space of all clusters.
    pub(super) fn new(ranges: &RangeClaims<'d>) -> Self {
        let used = ranges.all.iter().map(|it| it.range);
        let holes: Vec<Cidr> = merged(used.chain(ranges.of_nodes.iter().copied()));
        let spaces = SPACES.iter().filter_map(|it| it.parse().ok());
        let local = LOCAL.parse().ok().and_then(|it| common(it, &holes));
        let free = spaces.chain(local).map(|it: Cidr| FreeRoom::new(it, &holes));
        let free = free.collect();
        let overlaps = ranges.overlapping().take(OVERLAPS);
        Self {
            bars: bars(ranges, |_| true),
            free: if ranges.all.is_empty() { Vec::new() } else { free },
            ranges: ranges.all.iter().take(RANGES).map(RangeView::new).collect(),
            more_ranges: ranges.all.len().saturating_sub(RANGES),
            overlaps: overlaps.map(|both| both.map(|it| RangeView::new(&it))).collect(),
            more_overlaps: ranges.overlaps.len().saturating_sub(OVERLAPS),
        }
    }
}

/// Returns a bar for each IPv4 space with declared ranges that are asked for. All bars of a space are about the same
/// addresses: the smallest range with everything that is declared.
pub(super) fn bars(ranges: &RangeClaims, is_asked: impl Fn(&RangeClaim) -> bool) -> Vec<SpaceBar> {
    let all: Vec<Cidr> = ranges.all.iter().map(|it| it.range).collect();
    let shared = ranges.shared();
    let spaces = SPACES.iter().enumerate().filter_map(|(number, space)| {
        let whole = common(space.parse().ok()?, &all)?;
        let inside = ranges.all.iter().filter(|it| whole.contains(it.range));
        let mut classes: BTreeMap<&str, Vec<Cidr>> = BTreeMap::new();
        for it in inside.filter(|it| is_asked(it)) {
            classes.entry(it.class).or_default().push(it.range);
        }
        if classes.is_empty() {
            return None;
        }
        let is_met = |it: &&Cidr| classes.values().flatten().any(|own| own.overlaps(**it));
        let shared = shared.iter().filter(is_met).copied();
        Some(SpaceBar {
            id: format!("space-{number}"),
            first: whole.first().to_string(),
            last: whole.last().to_string(),
            range: whole.to_string(),
            shared: path(whole, shared),
            classes: classes
                .into_iter()
                .map(|(class, ranges)| (class.to_owned(), path(whole, ranges)))
                .collect(),
        })
    });
    spaces.collect()
}

/// Returns the smallest range with everything that is declared in a space. A single range is shown in its surroundings.
fn common(space: Cidr, ranges: &[Cidr]) -> Option<Cidr> {
    let inside = ranges.iter().copied().filter(|it| space.contains(*it));
    let mut count = 0;
    let common = inside.inspect(|_| count += 1).reduce(|left, right| {
        let lengths = (0..=left.prefix_length()).rev();
        let mut wider = lengths.filter_map(|it| left.widened(it));
        wider.find(|it| it.contains(right)).unwrap_or(space)
    })?;
    let length = common.prefix_length();
    let wider = common.widened(length.saturating_sub(2).max(space.prefix_length()));
    Some(if count == 1 { wider.unwrap_or(common) } else { common })
}

/// Returns the path of ranges in a bar.
pub(super) fn path(whole: Cidr, ranges: impl IntoIterator<Item = Cidr>) -> String {
    let mut text = String::new();
    let whole = Span::new(whole);
    let size = whole.last - whole.first;
    let place = |at: u128| {
        let offset = at.saturating_sub(whole.first);
        // The addresses of IPv6 are too many for a product.
        let shift = (128 - size.leading_zeros()).saturating_sub(96);
        (offset >> shift) * LENGTH / ((size >> shift).max(1))
    };
    for range in merged(ranges) {
        let Some(span) = Span::new(range).common(whole) else {
            continue;
        };
        let start = place(span.first);
        let length = place(span.last).saturating_sub(start).max(LEAST);
        let _ = write!(text, "M{} 0h{length}v20h-{length}z", start.min(LENGTH - LEAST));
    }
    text
}

/// Returns the part of a range that others hold, in thousandths, rounded up.
pub(super) fn share(whole: Cidr, used: &[Cidr]) -> u128 {
    let size = |it: Cidr| 1_u128 << it.host_bits().min(110);
    let used: u128 =
        merged(used.iter().copied().filter(|it| whole.contains(*it))).into_iter().map(size).sum();
    (used.saturating_mul(1000)).div_ceil(size(whole))
}

impl FreeRoom {
    fn new(space: Cidr, holes: &[Cidr]) -> Self {
        let mut free = space.without(holes);
        free.sort_by_key(|it| (Reverse(it.host_bits()), it.first()));
        Self {
            space: space.to_string(),
            ranges: free.iter().take(FREE).map(ToString::to_string).collect(),
            more: free.len().saturating_sub(FREE),
        }
    }
}

impl<'d> RangeView<'d> {
    fn new(range: &RangeClaim<'d>) -> Self {
        Self { range: range.range.to_string(), class: range.class, cluster: range.cluster }
    }
}

/// The most pairs of ranges that share an address. A hostile mesh has as many as it has ranges squared.
const COMPARED: usize = 10_000;

/// The class of ranges that are for all uses.
const ANY: &str = "any";

/// A range that a cluster declares.
#[derive(Clone, Copy)]
pub(super) struct RangeClaim<'d> {
    pub(super) range: Cidr,
    pub(super) class: &'d str,
    pub(super) cluster: &'d str,
    meshes: &'d [String],
}

/// The ranges of all clusters, by address.
pub(super) struct RangeClaims<'d> {
    pub(super) all: Vec<RangeClaim<'d>>,
    /// The pod CIDRs of nodes, and the likely LANs of nodes.
    pub(super) of_nodes: Vec<Cidr>,
    /// The ranges that share an address, by index.
    overlaps: Vec<(usize, usize)>,
}

/// Returns the ranges of all clusters.
pub(super) fn range_claims<'d>(results: &'d MeshResults<'d>) -> RangeClaims<'d> {
    let clusters = results.graph.iter().flat_map(|it| &it.clusters);
    let ranges = clusters.flat_map(|cluster| {
        cluster.ranges.iter().filter_map(|it| {
            Some(RangeClaim {
                range: it.range.parse().ok()?,
                class: it.class.map_or(ANY, AddressClass::name),
                cluster: &cluster.name,
                meshes: &cluster.meshes,
            })
        })
    });
    let mut all: Vec<RangeClaim> = ranges.collect();
    all.sort_by_key(|it| (it.range.first(), it.range.prefix_length(), it.cluster));
    let ranges: Vec<Cidr> = all.iter().map(|it| it.range).collect();
    let mut overlaps = net::overlaps(&ranges, COMPARED, |_| false);
    overlaps.retain(|(left, right)| match (all.get(*left), all.get(*right)) {
        (Some(left), Some(right)) => left.is_beside(right),
        _ => false,
    });
    RangeClaims { all, of_nodes: of_nodes(results), overlaps }
}

/// Returns the ranges that nodes use. A snapshot has no length for internal addresses: a LAN is at least as large as most.
fn of_nodes(results: &MeshResults) -> Vec<Cidr> {
    let clusters = results.graph.iter().flat_map(|it| &it.clusters);
    let nodes = clusters.flat_map(|it| &it.nodes);
    let ranges = nodes.flat_map(|node| {
        let pods = node.pod_cidrs.iter().filter_map(|it| it.parse().ok());
        let address: Option<IpAddr> = node.internal_ip.as_ref().and_then(|it| it.parse().ok());
        let lan = address.and_then(|it| Cidr::host(it).widened(if it.is_ipv4() { 24 } else { 64 }));
        pods.chain(lan)
    });
    merged(ranges)
}

impl RangeClaim<'_> {
    /// Returns whether it is of another cluster in the same mesh.
    fn is_beside(&self, other: &Self) -> bool {
        let mut meshes = self.meshes.iter();
        self.cluster != other.cluster && meshes.any(|it| other.meshes.contains(it))
    }
}

impl<'d> RangeClaims<'d> {
    /// Returns the two ranges of each overlap.
    fn overlapping(&self) -> impl Iterator<Item = [RangeClaim<'d>; 2]> {
        let ranges = self.overlaps.iter();
        ranges.filter_map(|(left, right)| Some([*self.all.get(*left)?, *self.all.get(*right)?]))
    }

    /// Returns the other clusters that declare addresses of a range of a cluster.
    pub(super) fn sharing(&self, range: Cidr, cluster: &str) -> impl Iterator<Item = &'d str> {
        self.overlapping().filter_map(move |[left, right]| {
            let is_own = |it: &RangeClaim| it.cluster == cluster && it.range == range;
            match (is_own(&left), is_own(&right)) {
                (true, _) => Some(right.cluster),
                (_, true) => Some(left.cluster),
                _ => None,
            }
        })
    }

    /// Returns the addresses that two clusters declare, as ranges.
    fn shared(&self) -> BTreeSet<Cidr> {
        let shared = self.overlapping().map(|[left, right]| {
            // Of two ranges that overlap, one contains the other.
            if left.range.contains(right.range) { right.range } else { left.range }
        });
        shared.collect()
    }
}
