//! Declared ranges: who declares which addresses, and where two clusters declare the same.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::documents::PageDocuments;
use crate::net::{self, Cidr, merged};

/// The most pairs of ranges that share an address. A hostile mesh has as many as it has ranges squared.
const OVERLAPS: usize = 10_000;

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
    pub(super) overlaps: Vec<(usize, usize)>,
}

/// Returns the ranges of all clusters.
pub(super) fn all(documents: &PageDocuments) -> RangeClaims<'_> {
    let clusters = documents.graph.iter().flat_map(|it| &it.clusters);
    let ranges = clusters.flat_map(|cluster| {
        cluster.ranges.iter().filter_map(|it| {
            Some(RangeClaim {
                range: it.range.parse().ok()?,
                class: it.class.as_deref().unwrap_or(ANY),
                cluster: &cluster.name,
                meshes: &cluster.meshes,
            })
        })
    });
    let mut all: Vec<RangeClaim> = ranges.collect();
    all.sort_by_key(|it| (it.range.first(), it.range.prefix_length(), it.cluster));
    let ranges: Vec<Cidr> = all.iter().map(|it| it.range).collect();
    let mut overlaps = net::overlaps(&ranges, OVERLAPS, |_| false);
    overlaps.retain(|(left, right)| match (all.get(*left), all.get(*right)) {
        (Some(left), Some(right)) => left.is_beside(right),
        _ => false,
    });
    RangeClaims { all, of_nodes: of_nodes(documents), overlaps }
}

/// Returns the ranges that nodes use. A snapshot has no length for internal addresses: a LAN is at least as large as most.
fn of_nodes(documents: &PageDocuments) -> Vec<Cidr> {
    let clusters = documents.graph.iter().flat_map(|it| &it.clusters);
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
    pub(super) fn overlapping(&self) -> impl Iterator<Item = [RangeClaim<'d>; 2]> {
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
    pub(super) fn shared(&self) -> BTreeSet<Cidr> {
        let shared = self.overlapping().map(|[left, right]| {
            // Of two ranges that overlap, one contains the other.
            if left.range.contains(right.range) { right.range } else { left.range }
        });
        shared.collect()
    }
}
