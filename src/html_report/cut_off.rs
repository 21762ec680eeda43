//! Clusters that are cut off: no path from or to any cluster that a mesh links with them works.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::documents::PageDocuments;
use super::finding_document::PageFinding;
use super::graph_document::PageCluster;
use super::ids::PageIds;
use super::proof_document::PageVerification;
use crate::text;

/// A cluster that is cut off.
#[derive(Serialize)]
pub(super) struct CutOffCluster<'d> {
    pub(super) name: &'d str,
    /// The reason, in a phrase.
    pub(super) reason: String,
    /// The remedy.
    pub(super) help: Option<String>,
    href: Option<&'d str>,
    #[serde(skip)]
    rank: u8,
}

impl CutOffCluster<'_> {
    /// Returns whether no node of it is known to take part. Findings about the cluster follow from that.
    pub(super) fn is_empty(&self) -> bool {
        self.rank < 2
    }
}

/// The linked clusters of a cluster.
#[derive(Default)]
struct LinkedClusters<'d> {
    names: BTreeSet<&'d str>,
    works: bool,
}

/// Returns the clusters that are cut off, those that are the cause first.
pub(super) fn all<'d>(documents: &'d PageDocuments, ids: &'d PageIds) -> Vec<CutOffCluster<'d>> {
    let Ok(verification) = &documents.verification else {
        return Vec::new();
    };
    let neighbours = neighbours(documents, verification);
    let is_cut_off = |name: &str| neighbours.get(name).is_some_and(|it| !it.works);
    let mut cut_off: Vec<CutOffCluster> = Vec::new();
    for (name, neighbours) in neighbours.iter().filter(|(_, it)| !it.works) {
        let (rank, reason, help) = reason(documents, verification, name).unwrap_or_else(|| {
            let names = neighbours.names.iter().filter(|it| is_cut_off(it));
            let reason = format!(
                "all clusters that it is linked with are cut off: {}",
                text::listed(names)
            );
            (3, reason, None)
        });
        cut_off.push(CutOffCluster {
            name,
            reason,
            help,
            href: ids.cluster(name),
            rank,
        });
    }
    cut_off.sort_by_key(|it| it.rank);
    cut_off
}

fn neighbours<'d>(
    documents: &'d PageDocuments,
    verification: &'d PageVerification,
) -> BTreeMap<&'d str, LinkedClusters<'d>> {
    let mut neighbours: BTreeMap<&str, LinkedClusters> = BTreeMap::new();
    let links = documents.graph.iter().flat_map(|it| &it.links);
    let links = links.map(|it| {
        let [left, right] = &it.clusters;
        (left, right, false)
    });
    let pairings = verification.pairings.iter().filter(|it| it.linked);
    let pairings = pairings.map(|it| {
        let total = it.total();
        (&it.from, &it.to, 0 < total.working + total.assumed)
    });
    for (left, right, works) in links.chain(pairings) {
        for (name, other) in [(left, right), (right, left)] {
            let all = neighbours.entry(name).or_default();
            all.names.insert(other);
            all.works |= works;
        }
    }
    neighbours
}

/// Returns why a cluster is cut off, if that is its own fault, with the remedy.
fn reason(
    documents: &PageDocuments,
    verification: &PageVerification,
    name: &str,
) -> Option<(u8, String, Option<String>)> {
    let clusters = documents.graph.iter().flat_map(|it| &it.clusters);
    let cluster = clusters.into_iter().find(|it| it.name == name);
    if let Some(cluster) = cluster {
        if cluster.is_unread {
            let help = format!("run `clustermesh snapshot {name}`");
            let reason = "its snapshot is missing or cannot be read".to_owned();
            return Some((0, reason, Some(help)));
        }
        if let Some(reason) = without_nodes(cluster) {
            let is_of_node =
                |it: &&PageFinding| it.cluster.as_deref() == Some(name) && it.node.is_some();
            let finding = documents.findings.iter().find(is_of_node);
            return Some((1, reason, finding.and_then(|it| it.help.clone())));
        }
    }
    let failures = verification.failures.iter().enumerate();
    let mut of_it = failures.filter(|(_, it)| it.between.iter().flatten().any(|it| it == name));
    let (number, failure) = of_it.next()?;
    let trace = documents.traces.get(number);
    let field = |field: &str| trace.and_then(|it| it.get(field)).and_then(Value::as_str);
    let message = field("message").unwrap_or(&failure.verdict);
    let reason = format!(
        "{message} (`{}`, from {} to {})",
        failure.verdict, failure.from.cluster, failure.to
    );
    Some((2, reason, field("help").map(ToOwned::to_owned)))
}

/// Returns that no node of a cluster takes part, and why.
fn without_nodes(cluster: &PageCluster) -> Option<String> {
    if cluster.kind != "cluster" || cluster.nodes.iter().any(|it| it.role != "excluded") {
        return None;
    }
    let reasons: BTreeSet<&str> = cluster
        .nodes
        .iter()
        .filter_map(|it| it.reason.as_deref())
        .collect();
    let nodes = text::count(cluster.nodes.len(), "node");
    let reasons = text::listed(reasons);
    Some(match (cluster.nodes.len(), reasons.as_str()) {
        (0, _) => "its snapshot has no node".to_owned(),
        (_, "") => format!("none of its {nodes} takes part"),
        _ => format!("none of its {nodes} takes part: {reasons}"),
    })
}
