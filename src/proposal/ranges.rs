//! Ranges: those on which most nodes of a cluster agree.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::Obstacle;
use crate::kilo::node::KiloNode;
use crate::mesh::DEFAULT_TOPOLOGY_LABEL;
use crate::name::ClusterName;
use crate::net::{Cidr, Family};
use crate::snapshot::Snapshot;

/// A range, and how many nodes agree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AgreedRange {
    /// The range.
    pub cidr: Cidr,
    /// The smallest range in it that has the values of the same nodes.
    pub core: Cidr,
    /// The number of nodes with a value in it.
    pub inside: usize,
    /// The number of nodes with any value.
    pub all: usize,
}

/// The range of the WireGuard addresses of a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireguardRange {
    /// In the network that the nodes report.
    Agreed(AgreedRange),
    /// Kilo does not run there yet; no cluster uses this range.
    Free(Cidr),
}

/// The reason for which a range of a cluster is unknown.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RangeProblem {
    /// Kubernetes assigns no pod CIDRs.
    #[error("no node has a valid pod CIDR (`spec.podCIDR`)")]
    NoPods,
    /// The nodes disagree.
    #[error("the pod CIDRs of the nodes have no common range: {inside} of {all} are in {cidr}")]
    Pods {
        /// The range with the most nodes.
        cidr: Cidr,
        /// The number of nodes in it.
        inside: usize,
        /// The number of all nodes.
        all: usize,
    },
    /// The nodes disagree, or show only host routes.
    #[error("the WireGuard addresses of the nodes show no common network")]
    Wireguard,
}

/// The second byte of Kilo's default `--subnet`, and of the ranges beside it.
const SUBNETS: std::ops::RangeInclusive<u8> = 4..=41;

/// The second byte of the range that Kilo's documentation gives to laptops.
const LAPTOPS: u8 = 5;

/// Ranges for pods that no distribution uses by default.
const POD_RANGES: std::ops::RangeInclusive<u8> = 44..=95;

impl RangeProblem {
    /// Returns it as an obstacle of a cluster.
    pub(super) fn as_obstacle(self, cluster: &ClusterName) -> Obstacle {
        Obstacle::Range { cluster: cluster.clone(), problem: self }
    }

    /// Returns what to do.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::NoPods => {
                "let Kubernetes assign pod CIDRs (see `docs/how-to/which-clusters.md`); \
                 Kilo cannot work without them"
            }
            Self::Pods { .. } => {
                "write mesh.yaml by hand, with the `--cluster-cidr` of the cluster in `podCIDRs`"
            }
            Self::Wireguard => {
                "write mesh.yaml by hand, with the `--subnet` of all Kilo agents in `wireguardCIDR`"
            }
        }
    }
}

/// Returns the nodes of a snapshot as Kilo reads them.
pub(super) fn read(snapshot: &Snapshot) -> Vec<KiloNode> {
    snapshot.nodes.iter().map(|it| KiloNode::read(it, DEFAULT_TOPOLOGY_LABEL)).collect()
}

/// Returns the ranges in which most nodes of a cluster have their pods; none if they agree on none.
pub fn pod_ranges(snapshot: &Snapshot) -> Vec<AgreedRange> {
    pods(&read(snapshot)).unwrap_or_default()
}

/// Returns the range of each family in which most nodes have their pods, the family first that Kilo
/// reads from most nodes.
pub(super) fn pods(nodes: &[KiloNode]) -> Result<Vec<AgreedRange>, RangeProblem> {
    let all = nodes.iter().filter(|it| it.pod_cidr.is_some()).count();
    let is_first = |family: Family| {
        nodes.iter().filter_map(|it| it.pod_cidr).filter(|it| it.family() == family).count()
    };
    let mut families = [Family::V4, Family::V6];
    families.sort_by_key(|it| std::cmp::Reverse(is_first(*it)));
    let mut ranges = Vec::new();
    for family in families {
        let cidrs: Vec<Cidr> =
            nodes.iter().filter_map(|node| node.pods().find(|it| it.family() == family)).collect();
        // A single node may have a family that its cluster does not have.
        if all < 2 * cidrs.len() {
            ranges.push(pool(&cidrs, family)?);
        }
    }
    if ranges.is_empty() {
        return Err(RangeProblem::NoPods);
    }
    Ok(ranges)
}

/// Returns the /16 or /48 in which most pod CIDRs are. A pool of hundreds of nodes may be wider.
fn pool(cidrs: &[Cidr], family: Family) -> Result<AgreedRange, RangeProblem> {
    let lengths = match family {
        Family::V4 => 8..=16,
        Family::V6 => 32..=48,
    };
    let mut best = None;
    for length in lengths.rev() {
        // A CIDR that is wider is counted as it is.
        let (agreed, is_most) = most(cidrs.iter().map(|it| it.widened(length).unwrap_or(*it)));
        if is_most && let Some(cidr) = agreed {
            let inside: Vec<Cidr> = cidrs.iter().copied().filter(|it| cidr.contains(*it)).collect();
            return Ok(AgreedRange {
                cidr,
                core: core(cidr, &inside),
                inside: inside.len(),
                all: cidrs.len(),
            });
        }
        best = best.or(agreed);
    }
    let Some(cidr) = best else {
        return Err(RangeProblem::NoPods);
    };
    Err(RangeProblem::Pods {
        cidr,
        inside: cidrs.iter().filter(|it| cidr.contains(**it)).count(),
        all: cidrs.len(),
    })
}

/// Returns the network of the nodes' WireGuard addresses; host routes do not show it. If no node has an
/// address, the range is to be chosen.
pub(super) fn wireguard(nodes: &[KiloNode]) -> Result<WireguardRange, RangeProblem> {
    let networks: Vec<Cidr> =
        nodes.iter().filter_map(KiloNode::wireguard_ip).map(|it| it.network).collect();
    if networks.is_empty() {
        return Ok(WireguardRange::Free(subnet(*SUBNETS.start())));
    }
    let shown: Vec<Cidr> = networks.iter().copied().filter(|it| !it.is_host()).collect();
    match most(shown.iter().copied()) {
        (Some(cidr), true) => Ok(WireguardRange::Agreed(AgreedRange {
            cidr,
            core: cidr,
            inside: shown.iter().filter(|it| **it == cidr).count(),
            all: shown.len(),
        })),
        _ => Err(RangeProblem::Wireguard),
    }
}

/// Returns the smallest range in `cidr` that contains all of these.
fn core(cidr: Cidr, inside: &[Cidr]) -> Cidr {
    let Some(first) = inside.first() else {
        return cidr;
    };
    let lengths = (cidr.prefix_length()..=first.prefix_length()).rev();
    let mut wider = lengths.filter_map(|length| first.widened(length));
    wider.find(|wider| inside.iter().all(|it| wider.contains(*it))).unwrap_or(cidr)
}

/// Returns the most frequent range, and whether more than half of them are this one.
fn most(ranges: impl Iterator<Item = Cidr>) -> (Option<Cidr>, bool) {
    let mut counts: BTreeMap<Cidr, usize> = BTreeMap::new();
    let mut all = 0;
    for range in ranges {
        *counts.entry(range).or_default() += 1;
        all += 1;
    }
    let most = counts.into_iter().max_by_key(|it| it.1);
    let is_most = most.is_some_and(|(_, count)| all < 2 * count);
    (most.map(|it| it.0), is_most)
}

/// Returns a range for Kilo's `--subnet` that shares no address with others.
pub(super) fn free_subnet(used: &[Cidr]) -> Option<Cidr> {
    free(SUBNETS.filter(|it| *it != LAPTOPS).map(subnet), used)
}

/// Returns a range for pods that shares no address with others.
pub(super) fn free_pods(family: Family, used: &[Cidr]) -> Option<Cidr> {
    match family {
        Family::V4 => free(POD_RANGES.map(subnet), used),
        Family::V6 => free(POD_RANGES.map(unique_local), used),
    }
}

fn free(mut ranges: impl Iterator<Item = Cidr>, used: &[Cidr]) -> Option<Cidr> {
    ranges.find(|range| used.iter().all(|it| !it.overlaps(*range)))
}

fn subnet(number: u8) -> Cidr {
    let host = Cidr::host(Ipv4Addr::new(10, number, 0, 0).into());
    host.widened(16).unwrap_or(host)
}

/// Returns `fd00:10:NUMBER::/48`, with the number written as for IPv4.
fn unique_local(number: u8) -> Cidr {
    let third = u16::from(number / 10) * 16 + u16::from(number % 10);
    let host = Cidr::host(Ipv6Addr::new(0xfd00, 0x10, third, 0, 0, 0, 0, 0).into());
    host.widened(48).unwrap_or(host)
}
