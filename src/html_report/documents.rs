//! Documents: the results of the commands, the values that the page reads from them, the names of the parts of a page,
//! and the reasons why a part is missing.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::command_documents::{
    PageCluster, PageDifference, PageFinding, PageGraph, PageOutage, PageReport, PageVerification,
};

pub(super) struct PageDocuments {
    /// The findings of `validate`.
    pub(super) findings: Vec<PageFinding>,
    /// The proof.
    pub(super) verification: Result<PageVerification, NoResult>,
    /// The losses.
    pub(super) outage: Result<PageOutage, NoResult>,
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
    /// The findings that it is.
    #[serde(skip)]
    pub(super) findings: Vec<PageFinding>,
}

/// The kind of a document.
#[derive(Deserialize)]
struct PageKind {
    kind: String,
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
    formula: String,
    worked: Option<String>,
    /// By severity.
    pub(super) limits: BTreeMap<String, f64>,
}

impl PageDocuments {
    /// Reads the answers of the commands.
    ///
    /// # Errors
    /// A document has another form than its schema.
    pub(super) fn read(answers: &MeshAnswers) -> Result<Self, HtmlError> {
        let validation = Ok(answers.validation.clone());
        let findings = match read::<PageReport>("validate", "Report", &validation)? {
            Ok(report) => report.findings,
            Err(_) => Vec::new(),
        };
        let difference = answers.difference.as_ref();
        let traces = answers.traces.lines().map(|it| {
            let failed = |source| HtmlError::Document { command: "trace", source };
            serde_json::from_str(it).map_err(failed)
        });
        Ok(Self {
            findings,
            verification: read("verify", "Verification", &answers.verification)?,
            outage: read("outage", "Outage", &answers.outage)?,
            capacity: read("capacity", "Capacity", &answers.capacity)?,
            graph: read("graph", "Graph", &answers.graph)?,
            difference: difference.map(|it| read("diff", "Diff", it)).transpose()?,
            traces: traces.collect::<Result<_, _>>()?,
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
        self.verification.as_ref().map_or(&[], |it| &it.expectations)
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
        refusals.filter_map(|(name, it)| Some((name, it?))).collect()
    }
}

/// Reads a document of a kind. A command that finds mistakes in its input prints a report instead.
fn read<T: DeserializeOwned>(
    command: &'static str,
    kind: &str,
    answer: &Result<String, String>,
) -> Result<Result<T, NoResult>, HtmlError> {
    let document = match answer {
        Ok(document) => document,
        Err(message) => {
            return Ok(Err(NoResult {
                message: message.clone(),
                help: None,
                errors: 0,
                findings: Vec::new(),
            }));
        }
    };
    let failed = |source| HtmlError::Document { command, source };
    let PageKind { kind: found } = serde_json::from_str(document).map_err(failed)?;
    if found != kind {
        let report: PageReport = serde_json::from_str(document).map_err(failed)?;
        return Ok(Err(refusal(report.findings)));
    }
    Ok(Ok(serde_json::from_str(document).map_err(failed)?))
}

fn refusal(findings: Vec<PageFinding>) -> NoResult {
    let errors = findings.iter().filter(|it| it.rank() == 0).count();
    let first = findings.iter().min_by_key(|it| it.rank());
    NoResult {
        message: first.map_or_else(String::new, |it| it.message.clone()),
        help: first.and_then(|it| it.help.clone()),
        errors,
        findings,
    }
}

/// The texts of the documents of the commands. If a command has none, the reason takes its place.
#[derive(Clone, Debug)]
pub struct MeshAnswers {
    /// The document of `validate`.
    pub validation: String,
    /// The document of `verify`.
    pub verification: Result<String, String>,
    /// The document of `outage`.
    pub outage: Result<String, String>,
    /// The document of `capacity`.
    pub capacity: Result<String, String>,
    /// The document of `graph --level nodes`.
    pub graph: Result<String, String>,
    /// The picture of `graph`, as SVG.
    pub picture: Option<String>,
    /// The document of `diff`, if there is an old version.
    pub difference: Option<Result<String, String>>,
    /// The documents of `trace` for the smallest packets of failures, one a line and in their order. There can be fewer of
    /// them.
    pub traces: String,
}

/// The reason why there is no page. Both are bugs in clustermesh.
#[derive(Debug, Error)]
pub enum HtmlError {
    /// A document has another form than its schema.
    #[error("cannot read the document of `clustermesh {command}`")]
    Document {
        /// The command.
        command: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The template does not fit its values.
    #[error("cannot fill in the page")]
    Template(#[from] minijinja::Error),
}

/// The ids of clusters and of pairs of clusters.
pub(super) struct PageIds {
    taken: BTreeSet<String>,
    clusters: BTreeMap<String, String>,
    pairs: BTreeMap<(String, String), String>,
}

impl PageIds {
    /// Gives every cluster an id.
    pub(super) fn new(documents: &PageDocuments) -> Self {
        let mut ids =
            Self { taken: BTreeSet::new(), clusters: BTreeMap::new(), pairs: BTreeMap::new() };
        for name in documents.cluster_names() {
            let id = ids.take(&format!("cluster-{name}"));
            ids.clusters.insert(name.to_owned(), id);
        }
        ids
    }

    /// Gives a pair of clusters an id.
    pub(super) fn add_pair(&mut self, from: &str, to: &str) -> String {
        let id = self.take(&format!("pair-{from}-{to}"));
        self.pairs.insert((from.to_owned(), to.to_owned()), id.clone());
        id
    }

    /// Returns the id of a cluster.
    pub(super) fn cluster(&self, name: &str) -> Option<&str> {
        self.clusters.get(name).map(String::as_str)
    }

    /// Returns the id of a pair of clusters, if it has one.
    pub(super) fn pair(&self, from: &str, to: &str) -> Option<&str> {
        let pair = (from.to_owned(), to.to_owned());
        self.pairs.get(&pair).map(String::as_str)
    }

    /// Takes an id, with a number behind it if another part has it: `a-b` and `c`, and `a` and `b-c`.
    fn take(&mut self, wanted: &str) -> String {
        let is_safe = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        let wanted = wanted.replace(|it| !is_safe(it), "_");
        let numbered = (2..).map(|it| format!("{wanted}-{it}"));
        let mut free =
            std::iter::once(wanted.clone()).chain(numbered).filter(|it| !self.taken.contains(it));
        let id = free.next().unwrap_or(wanted);
        self.taken.insert(id.clone());
        id
    }
}
