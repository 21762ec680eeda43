//! Cards of clusters: nodes, segments, Peers, ranges and load of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::address_space::{self, SpaceBar};
use super::documents::{PageDocuments, PageTarget};
use super::finding_list::FindingList;
use super::graph_document::{PageCluster, PageNode, PageRange, PageSegment, PageSupply};
use super::ids::PageIds;
use super::load::LoadView;
use super::range_claims::RangeClaims;
use crate::net::Cidr;

/// The most nodes of a cluster that are shown.
const NODES: usize = 2000;

/// A cluster.
#[derive(Serialize)]
pub(super) struct ClusterCard<'d> {
    id: &'d str,
    name: &'d str,
    kind: &'d str,
    is_hub: bool,
    unread: bool,
    meshes: &'d [String],
    granularity: Option<&'d str>,
    nodes: Vec<NodeView<'d>>,
    more_nodes: usize,
    excluded: usize,
    segments: &'d [PageSegment],
    gets: &'d [PageSupply],
    gives: Vec<PageSupply>,
    got: u64,
    given: u64,
    ranges: Vec<CardRange<'d>>,
    bars: Vec<SpaceBar>,
    load: Option<LoadView<'d>>,
}

/// A node.
#[derive(Serialize)]
struct NodeView<'d> {
    id: String,
    name: &'d str,
    role: &'d str,
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
    class: Option<&'d str>,
    /// For pods: the part that nodes use, in percent, and its path in a bar of the range.
    used: Option<String>,
    path: String,
    /// The other clusters that declare addresses of it.
    shared_with: Vec<&'d str>,
}

/// Returns the cards of all clusters.
pub(super) fn all<'d>(
    documents: &'d PageDocuments,
    ids: &'d PageIds,
    findings: &FindingList<'d>,
    ranges: &RangeClaims<'d>,
) -> Vec<ClusterCard<'d>> {
    let clusters = || documents.graph.iter().flat_map(|it| &it.clusters);
    let mut gives: BTreeMap<&str, Vec<PageSupply>> = BTreeMap::new();
    for cluster in clusters() {
        for PageSupply { from, peers } in &cluster.gets {
            // The receiver takes the place of the sender.
            gives
                .entry(from)
                .or_default()
                .push(PageSupply { from: cluster.name.clone(), peers: *peers });
        }
    }
    let targets = documents.capacity.iter().flat_map(|it| &it.targets);
    let targets: BTreeMap<&str, &PageTarget> =
        targets.map(|it| (it.cluster.as_str(), it)).collect();
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
            ..ClusterCard::new(cluster, ids)
        }
    });
    cards.collect()
}

impl<'d> ClusterCard<'d> {
    fn new(cluster: &'d PageCluster, ids: &'d PageIds) -> Self {
        let excluded = cluster.nodes.iter().filter(|it| it.role == "excluded");
        Self {
            id: ids.cluster(&cluster.name).unwrap_or_default(),
            name: &cluster.name,
            kind: &cluster.kind,
            is_hub: cluster.is_hub,
            unread: cluster.is_unread,
            meshes: &cluster.meshes,
            granularity: cluster.granularity.as_deref(),
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

fn nodes<'d>(cluster: &'d PageCluster, findings: &FindingList<'d>) -> Vec<NodeView<'d>> {
    let segments = cluster.segments.iter();
    let leaders: BTreeMap<&str, &str> = segments
        .flat_map(|it| it.nodes.iter().map(|node| (node.as_str(), it.leader.as_str())))
        .collect();
    let nodes = cluster.nodes.iter().take(NODES).enumerate();
    let nodes = nodes.map(|(index, node)| {
        let PageNode { name, .. } = node;
        NodeView {
            id: format!("node-{}-{index}", cluster.name),
            name,
            role: &node.role,
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

fn card_ranges<'d>(cluster: &'d PageCluster, declared: &RangeClaims<'d>) -> Vec<CardRange<'d>> {
    let of_nodes = cluster.nodes.iter().flat_map(|it| &it.pod_cidrs);
    let used: Vec<Cidr> = of_nodes.filter_map(|it| it.parse().ok()).collect();
    let ranges = cluster.ranges.iter().map(|PageRange { range, class }| {
        let parsed: Option<Cidr> = range.parse().ok();
        let mut shared_with: Vec<&str> =
            parsed.into_iter().flat_map(|own| declared.sharing(own, &cluster.name)).collect();
        shared_with.sort_unstable();
        shared_with.dedup();
        let pods = parsed.filter(|_| class.as_deref() == Some("pod"));
        CardRange {
            range,
            class: class.as_deref(),
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
