//! Cards of clusters: nodes, segments, Peers and ranges of each, and its load as bars against its limits.

use std::collections::BTreeMap;

use serde::Serialize;

use super::address_space::{self, RangeClaims, SpaceBar};
use super::finding_list::FindingList;
use super::mesh_results::{MeshResults, PageIds};
use crate::capacity::{Cost, Estimate, units};
use crate::config::capacity::{Quantity, as_float};
use crate::diagnostic::Severity;
use crate::graph::{
    GraphCluster, GraphClusterKind, GraphNode, GraphPeers, GraphRange, GraphRole, GraphSegment,
};
use crate::mesh::AddressClass;
use crate::net::Cidr;
use crate::report::alike;
use crate::text;

/// The most nodes of a cluster that are shown.
const NODES: usize = 2000;

/// A cluster.
#[derive(Serialize)]
pub(super) struct ClusterCard<'d> {
    id: &'d str,
    name: &'d str,
    kind: GraphClusterKind,
    is_hub: bool,
    unread: bool,
    meshes: &'d [String],
    granularity: Option<&'d str>,
    /// The day on which a commit last changed its snapshot.
    snapshot_date: Option<&'d str>,
    nodes: Vec<NodeView<'d>>,
    more_nodes: usize,
    excluded: usize,
    segments: &'d [GraphSegment],
    gets: &'d [GraphPeers],
    gives: Vec<GraphPeers>,
    got: usize,
    given: usize,
    ranges: Vec<CardRange<'d>>,
    bars: Vec<SpaceBar>,
    load: Option<LoadView<'d>>,
}

/// A node.
#[derive(Serialize)]
struct NodeView<'d> {
    id: String,
    name: &'d str,
    role: GraphRole,
    location: &'d str,
    ranges: &'d [String],
    internal_ip: Option<&'d str>,
    reason: Option<&'d str>,
    /// The leader of its segment, if that is another node.
    leader: Option<&'d str>,
    /// The number of the finding about it.
    finding: Option<usize>,
}

/// A declared range.
#[derive(Serialize)]
struct CardRange<'d> {
    range: &'d str,
    class: Option<AddressClass>,
    /// For pods: the part that nodes use, in percent, and its path in a bar of the range.
    used: Option<String>,
    path: String,
    /// The other clusters that declare addresses of it.
    shared_with: Vec<&'d str>,
}

/// Returns the cards of all clusters.
pub(super) fn all<'d>(
    results: &'d MeshResults<'d>,
    ids: &'d PageIds,
    findings: &FindingList<'d>,
    ranges: &RangeClaims<'d>,
) -> Vec<ClusterCard<'d>> {
    let clusters = || results.graph.iter().flat_map(|it| &it.clusters);
    let mut gives: BTreeMap<&str, Vec<GraphPeers>> = BTreeMap::new();
    for cluster in clusters() {
        for GraphPeers { from, peers } in &cluster.gets {
            // The receiver takes the place of the sender.
            gives
                .entry(from)
                .or_default()
                .push(GraphPeers { from: cluster.name.clone(), peers: *peers });
        }
    }
    let targets = results.capacity.iter().flatten();
    let targets: BTreeMap<&str, &Cost> = targets.map(|it| (it.cluster.as_str(), it)).collect();
    let dates = results.origin.snapshots.iter();
    let dates: BTreeMap<&str, &str> =
        dates.map(|it| (it.cluster.as_str(), it.date.as_str())).collect();
    let cards = clusters().map(|cluster| {
        let name = cluster.name.as_str();
        let gives = gives.remove(name).unwrap_or_default();
        ClusterCard {
            given: gives.iter().map(|it| it.peers).sum(),
            gives,
            nodes: nodes(cluster, findings),
            ranges: card_ranges(cluster, ranges),
            bars: address_space::bars(ranges, |it| it.cluster == name),
            load: targets.get(name).map(|it| LoadView::new(it, ids)),
            snapshot_date: dates.get(name).copied(),
            ..ClusterCard::new(cluster, ids)
        }
    });
    cards.collect()
}

impl<'d> ClusterCard<'d> {
    fn new(cluster: &'d GraphCluster, ids: &'d PageIds) -> Self {
        let excluded = cluster.nodes.iter().filter(|it| it.role == GraphRole::Excluded);
        Self {
            id: ids.cluster(&cluster.name).unwrap_or_default(),
            name: &cluster.name,
            kind: cluster.kind,
            is_hub: cluster.is_hub,
            unread: cluster.is_unread,
            meshes: &cluster.meshes,
            granularity: cluster.granularity.as_deref(),
            snapshot_date: None,
            nodes: Vec::new(),
            more_nodes: cluster.nodes.len().saturating_sub(NODES),
            excluded: excluded.count(),
            segments: &cluster.segments,
            gets: &cluster.gets,
            gives: Vec::new(),
            got: cluster.gets.iter().map(|it| it.peers).sum(),
            given: 0,
            ranges: Vec::new(),
            bars: Vec::new(),
            load: None,
        }
    }
}

fn nodes<'d>(cluster: &'d GraphCluster, findings: &FindingList<'d>) -> Vec<NodeView<'d>> {
    let segments = cluster.segments.iter();
    let leaders: BTreeMap<&str, &str> = segments
        .flat_map(|it| it.nodes.iter().map(|node| (node.as_str(), it.leader.as_str())))
        .collect();
    let nodes = cluster.nodes.iter().take(NODES).enumerate();
    let nodes = nodes.map(|(index, node)| {
        let GraphNode { name, .. } = node;
        NodeView {
            id: format!("node-{}-{index}", cluster.name),
            name,
            role: node.role,
            location: &node.location,
            ranges: &node.pod_cidrs,
            internal_ip: node.internal_ip.as_deref(),
            reason: node.reason.as_deref(),
            leader: leaders.get(name.as_str()).copied().filter(|it| it != name),
            finding: findings.of_node(&cluster.name, name),
        }
    });
    nodes.collect()
}

fn card_ranges<'d>(cluster: &'d GraphCluster, declared: &RangeClaims<'d>) -> Vec<CardRange<'d>> {
    let of_nodes = cluster.nodes.iter().flat_map(|it| &it.pod_cidrs);
    let used: Vec<Cidr> = of_nodes.filter_map(|it| it.parse().ok()).collect();
    let ranges = cluster.ranges.iter().map(|GraphRange { range, class }| {
        let parsed: Option<Cidr> = range.parse().ok();
        let mut shared_with: Vec<&str> =
            parsed.into_iter().flat_map(|own| declared.sharing(own, &cluster.name)).collect();
        shared_with.sort_unstable();
        shared_with.dedup();
        let pods = parsed.filter(|_| *class == Some(AddressClass::Pod));
        CardRange {
            range,
            class: *class,
            used: pods.map(|it| {
                let share = address_space::share(it, &used);
                format!("{}.{} %", share / 10, share % 10)
            }),
            path: pods.map_or_else(String::new, |it| address_space::path(it, used.clone())),
            shared_with,
        }
    });
    ranges.collect()
}

/// The length of a bar up to its highest limit.
const LENGTH: f64 = 100.0;

/// The load of a cluster.
#[derive(Clone, Serialize)]
pub(super) struct LoadView<'d> {
    cluster: &'d str,
    href: Option<&'d str>,
    grade: &'d str,
    /// The quantity that is closest to its limit, or exceeds it the most.
    worst: Option<LoadBar<'d>>,
    bars: Vec<LoadBar<'d>>,
}

/// A quantity as a bar.
#[derive(Clone, Serialize)]
struct LoadBar<'d> {
    quantity: &'d Estimate,
    /// The length, up to the end of the bar.
    length: Option<u32>,
    /// The places of the limits, and their names.
    limits: BTreeMap<&'static str, u32>,
    /// The highest limit.
    limit: Option<f64>,
    #[serde(skip)]
    share: f64,
}

/// A load that clusters have in common.
#[derive(Serialize)]
pub(super) struct LoadRow<'d> {
    name: String,
    clusters: Vec<&'d str>,
    href: Option<&'d str>,
    worst: Option<LoadBar<'d>>,
}

/// Returns the load of all clusters, the highest first. If there are many, alike ones share a row.
pub(super) fn loads<'d>(results: &'d MeshResults<'d>, ids: &'d PageIds) -> Vec<LoadRow<'d>> {
    let targets = results.capacity.iter().flatten();
    let mut loads: Vec<LoadView> = targets.map(|it| LoadView::new(it, ids)).collect();
    loads.sort_by(|left, right| right.rank().total_cmp(&left.rank()));
    let keyed = loads.into_iter().map(|it| {
        let worst = it.worst.as_ref();
        let bits = worst.map(|it| {
            (it.quantity.quantity, it.quantity.value.to_bits(), it.limit.map(f64::to_bits))
        });
        ((it.grade, bits), it)
    });
    let rows = alike::rows(keyed).into_iter().filter_map(|(_, loads)| {
        let clusters: Vec<&str> = loads.iter().map(|it| it.cluster).collect();
        let first = loads.into_iter().next()?;
        let name = text::listed(&clusters);
        Some(LoadRow { name, clusters, href: first.href, worst: first.worst })
    });
    rows.collect()
}

/// Returns a value of a quantity as people read it.
pub(super) fn shown(value: f64, name: &str) -> String {
    let quantity = Quantity::ALL.iter().find(|it| it.key() == name);
    quantity.map_or_else(|| value.to_string(), |it| units::value(*it, value))
}

impl<'d> LoadView<'d> {
    /// Returns the load of a cluster.
    pub(super) fn new(target: &'d Cost, ids: &'d PageIds) -> Self {
        let bars: Vec<LoadBar> = target.estimates.iter().map(LoadBar::new).collect();
        let worst = bars.iter().filter(|it| it.limit.is_some());
        let worst = worst.max_by(|left, right| left.rank().total_cmp(&right.rank()));
        Self {
            cluster: &target.cluster,
            href: ids.cluster(&target.cluster),
            grade: target.grade.map_or("ok", Severity::name),
            worst: worst.cloned(),
            bars,
        }
    }

    fn rank(&self) -> f64 {
        self.worst.as_ref().map_or(0.0, LoadBar::rank)
    }
}

impl<'d> LoadBar<'d> {
    fn new(quantity: &'d Estimate) -> Self {
        let limits = quantity.steps.all().into_iter();
        let limits = limits.filter_map(|(severity, it)| Some((severity.name(), as_float(it?))));
        let limits: BTreeMap<&str, f64> = limits.collect();
        let limit = limits.values().copied().reduce(f64::max);
        let whole = limit.filter(|it| 0.0 < *it);
        let share = limit.map_or(0.0, |it| quantity.value / it.max(1.0));
        Self {
            quantity,
            length: limit.map(|_| rounded(share * LENGTH)),
            limits: limits
                .iter()
                .map(|(name, it)| (*name, whole.map_or(0, |whole| rounded(it / whole * LENGTH))))
                .collect(),
            limit,
            share,
        }
    }

    /// Returns how much it matters: first by its grade, then by its share of the limit.
    fn rank(&self) -> f64 {
        let grade = match self.quantity.grade {
            Some(Severity::Error) => 3.0,
            Some(Severity::Warning) => 2.0,
            Some(Severity::Notice) => 1.0,
            None => 0.0,
        };
        grade + self.share.min(1.0) / 2.0
    }
}

/// Returns a length of a bar, which ends at its end.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and the length of a bar"
)]
fn rounded(length: f64) -> u32 {
    length.clamp(0.0, LENGTH).round() as u32
}
