//! Clusters that are cut off: no path from or to any cluster that a mesh links with them works. Clusters that cannot be
//! checked, because snapshots are missing, are listed with them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::mesh_results::{MeshResults, PageIds};
use crate::diagnostic::Finding;
use crate::graph::{GraphCluster, GraphClusterKind, GraphRole};
use crate::results::verify::json::{WrittenFailure, WrittenVerification};
use crate::text;

/// A cluster that is cut off, or that cannot be checked.
#[derive(Serialize)]
pub(super) struct CutOffCluster<'d> {
    pub(super) name: &'d str,
    /// The reason, in a phrase.
    pub(super) reason: String,
    /// The remedy.
    pub(super) help: Option<String>,
    href: Option<&'d str>,
    /// Whether snapshots are missing, so that nothing is known about its paths.
    pub(super) is_unknown: bool,
    #[serde(skip)]
    cause: CutOffCause,
}

/// The kind of reason for which a cluster is cut off, those that cause others first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum CutOffCause {
    /// It has no snapshot.
    Unread,
    /// No node of it takes part.
    Nodes,
    /// Its declared paths fail.
    Paths,
    /// A finding about it explains that it has no paths.
    Finding,
    /// All clusters that it is linked with are cut off, or have no snapshot.
    Neighbours,
    /// No path from or to it is declared.
    Undeclared,
}

/// A reason with its remedy.
type CutOffReason = (CutOffCause, String, Option<String>);

/// The linked clusters of a cluster.
#[derive(Default)]
struct LinkedClusters<'d> {
    names: BTreeSet<&'d str>,
    declares: bool,
    works: bool,
}

impl CutOffCluster<'_> {
    /// Returns whether no node of it is known to take part. Findings about the cluster follow from that.
    pub(super) fn is_empty(&self) -> bool {
        self.cause <= CutOffCause::Nodes
    }

    /// Returns whether that is a fault, and not what people declare.
    pub(super) fn is_fault(&self) -> bool {
        !self.is_unknown && self.cause <= CutOffCause::Paths
    }
}

/// Returns the clusters that are cut off, or that cannot be checked, those that are the cause first.
pub(super) fn all<'d>(results: &'d MeshResults<'d>, ids: &'d PageIds) -> Vec<CutOffCluster<'d>> {
    let Ok(verification) = &results.verification else {
        return Vec::new();
    };
    let neighbours = neighbours(results, verification);
    let unread: BTreeSet<&str> = results.unread().map(|it| it.name.as_str()).collect();
    let mut own: BTreeMap<&str, CutOffReason> = BTreeMap::new();
    for (name, linked) in neighbours.iter().filter(|(_, it)| !it.works) {
        if let Some(reason) = own_reason(results, verification, (name, linked)) {
            own.insert(name, reason);
        }
    }
    let mut cut_off: Vec<CutOffCluster> = Vec::new();
    for (name, linked) in neighbours.iter().filter(|(_, it)| !it.works) {
        let is_unknown = unread.contains(name) || linked.names.is_subset(&unread);
        let (cause, reason, help) = match own.get(name) {
            Some(own) if !is_unknown || own.0 == CutOffCause::Unread => own.clone(),
            _ if is_unknown || linked.names.iter().all(|it| own.contains_key(it)) => {
                (CutOffCause::Neighbours, neighbour_reason(linked, &unread), None)
            }
            _ => {
                let reason = "no path from or to it is declared".to_owned();
                (CutOffCause::Undeclared, reason, None)
            }
        };
        cut_off.push(CutOffCluster {
            name,
            reason,
            help,
            href: ids.cluster(name),
            is_unknown,
            cause,
        });
    }
    cut_off.sort_by_key(|it| it.cause);
    cut_off
}

fn neighbours<'d>(
    results: &'d MeshResults<'d>,
    verification: &'d WrittenVerification,
) -> BTreeMap<&'d str, LinkedClusters<'d>> {
    let mut neighbours: BTreeMap<&str, LinkedClusters> = BTreeMap::new();
    let links = results.graph.iter().flat_map(|it| &it.links);
    let links = links.map(|it| {
        let [left, right] = &it.clusters;
        (left, right, false, false)
    });
    let pairings = verification.pairings.iter().filter(|it| it.linked);
    let pairings = pairings.map(|it| {
        let total = it.total();
        let works = 0 < total.kept + total.assumed;
        (&it.from, &it.to, 0 < total.promised, works)
    });
    for (left, right, declares, works) in links.chain(pairings) {
        for (name, other) in [(left, right), (right, left)] {
            let all = neighbours.entry(name).or_default();
            all.names.insert(other);
            all.declares |= declares;
            all.works |= works;
        }
    }
    neighbours
}

/// Returns that all neighbours of a cluster are cut off or unknown.
fn neighbour_reason(linked: &LinkedClusters, unread: &BTreeSet<&str>) -> String {
    let names = text::listed(&linked.names);
    let state = if linked.names.is_subset(unread) { "without a snapshot" } else { "cut off" };
    match linked.names.len() {
        1 => format!("its only link is to {names}, which is {state}"),
        _ => format!("all clusters that it is linked to are {state}: {names}"),
    }
}

/// Returns why a cluster is cut off, if that is its own fault, with the remedy.
fn own_reason(
    results: &MeshResults,
    verification: &WrittenVerification,
    (name, linked): (&str, &LinkedClusters),
) -> Option<CutOffReason> {
    let mut clusters = results.graph.iter().flat_map(|it| &it.clusters);
    let cluster = clusters.find(|it| it.name == name);
    if cluster.is_some_and(|it| it.is_unread) {
        let help = format!("run `clustermesh snapshot {name}`");
        let reason = "its snapshot is missing or cannot be read".to_owned();
        return Some((CutOffCause::Unread, reason, Some(help)));
    }
    let of_it = || {
        let findings = results.findings.iter().map(|it| &it.finding);
        findings.filter(|it| it.cluster.as_deref() == Some(name))
    };
    if let Some(reason) = cluster.and_then(without_nodes) {
        let mut findings: Vec<&Finding> = of_it().collect();
        findings.sort_by_key(|it| (it.node.is_none(), Reverse(it.severity)));
        let helps = findings.iter().filter_map(|it| it.help.clone());
        // A person may give up what is lost only if nothing else helps.
        let help = helps.into_iter().find(|it| !it.contains("--allow-empty"));
        return Some((CutOffCause::Nodes, reason, help));
    }
    if linked.declares
        && let Some(reason) = failing(results, verification, name)
    {
        return Some(reason);
    }
    let finding = of_it().min_by_key(|it| Reverse(it.severity))?;
    let reason = format!("{} (`{}`)", finding.message, finding.rule.name());
    Some((CutOffCause::Finding, reason, finding.help.clone()))
}

/// Returns the failure of the paths of a cluster: one whose own packet begins or ends there, if there is one.
fn failing(
    results: &MeshResults,
    verification: &WrittenVerification,
    name: &str,
) -> Option<CutOffReason> {
    let failures = || verification.failures.iter().enumerate();
    let is_its_packet = |it: &WrittenFailure| it.from.cluster == name || it.to == name;
    let is_about = |it: &WrittenFailure| it.between.iter().flatten().any(|it| it == name);
    let own = failures().find(|(_, it)| is_its_packet(it));
    let (number, failure) = own.or_else(|| failures().find(|(_, it)| is_about(it)))?;
    let trace = results.traces.get(number).and_then(Option::as_ref);
    let help = match results.errors() {
        0 => trace.and_then(|it| it.help.clone()),
        errors => Some(format!(
            "correct the {}, then run `clustermesh render`",
            text::count(errors, "error")
        )),
    };
    let reason = if is_its_packet(failure) {
        let message = trace.map_or(failure.verdict, |it| it.message());
        let (from, to) = (&failure.from.cluster, &failure.to);
        format!("{message} (`{}`, from {from} to {to})", failure.verdict)
    } else {
        format!("its declared paths fail (`{}`)", failure.verdict)
    };
    Some((CutOffCause::Paths, reason, help))
}

/// Returns that no node of a cluster takes part, and why.
fn without_nodes(cluster: &GraphCluster) -> Option<String> {
    if cluster.kind != GraphClusterKind::Cluster
        || cluster.nodes.iter().any(|it| it.role != GraphRole::Excluded)
    {
        return None;
    }
    let reasons: BTreeSet<&str> =
        cluster.nodes.iter().filter_map(|it| it.reason.as_deref()).collect();
    let nodes = text::count(cluster.nodes.len(), "node");
    let reasons = text::listed(reasons);
    Some(match (cluster.nodes.len(), reasons.as_str()) {
        (0, _) => "its snapshot has no node".to_owned(),
        (_, "") => format!("none of its {nodes} takes part"),
        _ => format!("none of its {nodes} takes part: {reasons}"),
    })
}
