//! Documents: what the page reads of the documents of the commands.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::MeshAnswers;
use super::error::HtmlError;

/// All documents.
pub(super) struct PageDocuments {
    /// The findings of `validate`.
    pub(super) findings: Vec<PageFinding>,
    /// The proof.
    pub(super) verification: Result<PageVerification, NoResult>,
    /// The load of the clusters.
    pub(super) capacity: Result<PageCapacity, NoResult>,
    /// The clusters with their nodes.
    pub(super) graph: Result<PageGraph, NoResult>,
    /// The comparison with an old version, if there is one.
    pub(super) difference: Option<Result<PageDifference, NoResult>>,
    /// The packets that fail, in the order of the failures.
    pub(super) traces: Vec<Value>,
}

/// The reason why a command has no result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NoResult {
    /// The reason.
    pub(super) message: String,
    /// The remedy.
    pub(super) help: Option<String>,
    /// The number of errors that it is, if these are in a file.
    pub(super) errors: usize,
}

/// The findings of a command.
#[derive(Deserialize)]
struct PageReport {
    findings: Vec<PageFinding>,
}

/// A finding.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageFinding {
    pub(super) rule: String,
    pub(super) severity: String,
    pub(super) message: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
    pub(super) help: Option<String>,
    pub(super) cause: Option<PageCause>,
    #[serde(default)]
    pub(super) places: Vec<PagePlace>,
}

/// The finding that causes another one.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PageCause {
    pub(super) rule: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PagePlace {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
    label: Option<String>,
    excerpt: Option<String>,
}

/// The proof.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageVerification {
    pub(super) holds: bool,
    pub(super) total: PageTally,
    pub(super) pairings: Vec<PagePairing>,
    pub(super) failures: Vec<PageFailure>,
    pub(super) assumptions: Vec<PageAssumption>,
    pub(super) expectations: Vec<Value>,
    pub(super) survival: Option<PageSurvival>,
    pub(super) findings: Vec<PageFinding>,
}

/// Numbers of paths.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageTally {
    pub(super) declared: u64,
    pub(super) working: u64,
    pub(super) assumed: u64,
    #[serde(default)]
    pub(super) undeclared_working: u64,
}

/// The paths from one cluster to another.
#[derive(Deserialize)]
pub(super) struct PagePairing {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) linked: bool,
    pub(super) classes: Vec<ClassTally>,
}

/// The paths between two classes.
#[derive(Deserialize)]
pub(super) struct ClassTally {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) tally: PageTally,
}

/// Declared paths that fail for one cause.
#[derive(Deserialize)]
pub(super) struct PageFailure {
    pub(super) verdict: String,
    pub(super) from: PageNodeName,
    pub(super) source: String,
    pub(super) to: String,
    pub(super) destination: String,
    pub(super) pairs: u64,
    pub(super) between: Vec<[String; 2]>,
}

/// A node, by its cluster and its name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageNodeName {
    pub(super) cluster: String,
    pub(super) node: String,
}

/// Declared paths that depend on a condition.
#[derive(Deserialize)]
pub(super) struct PageAssumption {
    pub(super) premise: String,
    pub(super) nodes: Vec<PageNodeName>,
    pub(super) pairs: u64,
    pub(super) between: Vec<[String; 2]>,
}

/// The effects of single losses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageSurvival {
    pub(super) parts: u64,
    pub(super) harmful: Vec<PageHarm>,
    pub(super) not_examined: Vec<PageUnexamined>,
}

/// A part that was not examined.
#[derive(Deserialize)]
pub(super) struct PageUnexamined {
    pub(super) part: String,
    pub(super) reason: String,
}

/// The effect of one loss.
#[derive(Deserialize)]
pub(super) struct PageHarm {
    pub(super) part: String,
    pub(super) paths: u64,
    pub(super) ended: Vec<PageEnded>,
}

/// The paths between two clusters that end.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageEnded {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) paths: u64,
    pub(super) example: Option<[String; 2]>,
}

/// The load of the clusters.
#[derive(Deserialize)]
pub(super) struct PageCapacity {
    pub(super) targets: Vec<PageTarget>,
}

/// The load of a cluster.
#[derive(Deserialize)]
pub(super) struct PageTarget {
    pub(super) cluster: String,
    pub(super) grade: String,
    pub(super) quantities: Vec<PageQuantity>,
}

/// A quantity of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageQuantity {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) grade: String,
    pub(super) formula: String,
    pub(super) worked: Option<String>,
    /// By severity.
    pub(super) limits: BTreeMap<String, f64>,
}

/// The clusters and their links.
#[derive(Deserialize)]
pub(super) struct PageGraph {
    pub(super) clusters: Vec<PageCluster>,
    pub(super) links: Vec<PageLink>,
}

/// A cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageCluster {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_hub: bool,
    pub(super) is_unread: bool,
    pub(super) meshes: Vec<String>,
    pub(super) granularity: Option<String>,
    pub(super) ranges: Vec<PageRange>,
    #[serde(default)]
    pub(super) segments: Vec<PageSegment>,
    #[serde(default)]
    pub(super) nodes: Vec<PageNode>,
    pub(super) gets: Vec<PageSupply>,
}

/// A declared range.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageRange {
    pub(super) range: String,
    /// The use of its addresses; none if they are for all uses.
    pub(super) class: Option<String>,
}

/// A segment of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(super) struct PageSegment {
    pub(super) leader: String,
    pub(super) endpoint: Option<String>,
    pub(super) is_behind_nat: bool,
    pub(super) anchors: Vec<String>,
    pub(super) node_count: usize,
    #[serde(default)]
    pub(super) nodes: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageNode {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) location: String,
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Vec<String>,
    #[serde(rename = "internalIP")]
    pub(super) internal_ip: Option<String>,
    pub(super) reason: Option<String>,
}

/// The Peers that a cluster gets of another one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageSupply {
    pub(super) from: String,
    pub(super) peers: u64,
}

/// A link between two clusters.
#[derive(Deserialize)]
pub(super) struct PageLink {
    pub(super) clusters: [String; 2],
}

/// The effects of a change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageDifference {
    pub(super) against: String,
    pub(super) notes: Vec<String>,
    pub(super) grade: String,
    pub(super) causes: Vec<Value>,
    pub(super) targets: Vec<PageTargetChange>,
    pub(super) paths: Vec<PagePathChange>,
    pub(super) services: Vec<Value>,
    pub(super) states: u64,
}

/// The change of the Peers of a cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageTargetChange {
    pub(super) cluster: String,
    pub(super) grade: String,
    pub(super) reasons: Vec<Value>,
    pub(super) peers_before: u64,
    pub(super) peers_after: u64,
    pub(super) added: u64,
    pub(super) changed: u64,
    pub(super) removed: u64,
    pub(super) help: Vec<String>,
    pub(super) busy_seconds: Option<f64>,
}

/// The changed paths from one cluster to another, by their fate.
#[derive(Deserialize)]
pub(super) struct PagePathChange {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) fates: BTreeMap<String, Value>,
}

impl PageDocuments {
    /// Reads the answers of the commands.
    ///
    /// # Errors
    /// A document has another form than its schema.
    pub(super) fn read(answers: &MeshAnswers) -> Result<Self, HtmlError> {
        let validation = Ok(answers.validation.clone());
        let findings = match read::<PageReport>("validate", "", &validation)? {
            Ok(report) => report.findings,
            Err(_) => Vec::new(),
        };
        let difference = answers.difference.as_ref();
        Ok(Self {
            findings,
            verification: read("verify", "Verification", &answers.verification)?,
            capacity: read("capacity", "Capacity", &answers.capacity)?,
            graph: read("graph", "Graph", &answers.graph)?,
            difference: difference.map(|it| read("diff", "Diff", it)).transpose()?,
            traces: answers.traces.clone(),
        })
    }

    /// Returns the names of all clusters, in the order in which they are shown.
    pub(super) fn cluster_names(&self) -> Vec<&str> {
        if let Ok(graph) = &self.graph {
            return graph.clusters.iter().map(|it| it.name.as_str()).collect();
        }
        let mut names: Vec<&str> = Vec::new();
        let pairings = self.verification.iter().flat_map(|it| &it.pairings);
        for name in pairings.flat_map(|it| [&it.from, &it.to]) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the clusters without a usable snapshot.
    pub(super) fn unread(&self) -> impl Iterator<Item = &PageCluster> {
        let clusters = self.graph.iter().flat_map(|it| &it.clusters);
        clusters.filter(|it| it.is_unread)
    }

    /// Returns the results of the expectations.
    pub(super) fn expectations(&self) -> &[Value] {
        self.verification
            .as_ref()
            .map_or(&[], |it| &it.expectations)
    }

    /// Returns the reasons why commands have no result, by command.
    pub(super) fn refusals(&self) -> BTreeMap<&'static str, &NoResult> {
        let difference = self.difference.as_ref().and_then(|it| it.as_ref().err());
        let refusals = [
            ("verify", self.verification.as_ref().err()),
            ("capacity", self.capacity.as_ref().err()),
            ("graph", self.graph.as_ref().err()),
            ("diff", difference),
        ];
        let refusals = refusals.into_iter();
        refusals
            .filter_map(|(name, it)| Some((name, it?)))
            .collect()
    }
}

impl PageFinding {
    /// Returns it as the cause of others.
    pub(super) fn as_cause(&self) -> PageCause {
        PageCause {
            rule: self.rule.clone(),
            cluster: self.cluster.clone(),
            node: self.node.clone(),
        }
    }

    /// Returns its severity as a number, the most severe first.
    pub(super) fn rank(&self) -> usize {
        ["error", "warning", "notice"]
            .iter()
            .position(|it| *it == self.severity)
            .unwrap_or_default()
    }
}

/// Reads a document of a kind. A command that finds mistakes in its input prints a report instead.
fn read<T: DeserializeOwned>(
    command: &'static str,
    kind: &str,
    answer: &Result<Value, String>,
) -> Result<Result<T, NoResult>, HtmlError> {
    let document = match answer {
        Ok(document) => document,
        Err(message) => {
            return Ok(Err(NoResult {
                message: message.clone(),
                help: None,
                errors: 0,
            }));
        }
    };
    let failed = |source| HtmlError::Document { command, source };
    let is_report = document.get("kind").and_then(Value::as_str) == Some("Report");
    if is_report && !kind.is_empty() {
        let report: PageReport = serde_json::from_value(document.clone()).map_err(failed)?;
        return Ok(Err(refusal(&report.findings)));
    }
    let read = serde_json::from_value(document.clone()).map_err(failed)?;
    Ok(Ok(read))
}

fn refusal(findings: &[PageFinding]) -> NoResult {
    let errors = findings.iter().filter(|it| it.rank() == 0).count();
    let first = findings.iter().min_by_key(|it| it.rank());
    NoResult {
        message: first.map_or_else(String::new, |it| it.message.clone()),
        help: first.and_then(|it| it.help.clone()),
        errors,
    }
}
