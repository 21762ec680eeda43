//! The results of the commands, the names of the parts of a page, and the reasons why a part is missing.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::capacity::Cost;
use crate::diagnostic::Severity;
use crate::graph::{GraphCluster, MeshGraph};
use crate::report::origin::ResultOrigin;
use crate::results::diff::json::form::WrittenDiff;
use crate::results::findings::json::WrittenFinding;
use crate::results::outage::json::WrittenOutage;
use crate::results::trace::TraceResult;
use crate::results::verify::json::WrittenVerification;

/// The results of the commands. If a command has none, the reason takes its place.
pub struct MeshResults<'a> {
    /// The meshes and commits.
    pub origin: ResultOrigin,
    /// The findings of `validate`.
    pub findings: Vec<WrittenFinding>,
    /// The proof.
    pub verification: Result<WrittenVerification, NoResult>,
    /// The losses, if there is a proof.
    pub outage: Option<WrittenOutage>,
    /// The load of the clusters.
    pub capacity: Result<Vec<Cost>, NoResult>,
    /// The clusters with their nodes.
    pub graph: Result<MeshGraph, NoResult>,
    /// The comparison with an old version, if there is one.
    pub difference: Option<Result<WrittenDiff<'a>, NoResult>>,
    /// The smallest packets of failures, in the order of the failures. There can be fewer of them.
    pub traces: Vec<Option<TraceResult<'a>>>,
}

/// The reason why a command has no result.
#[derive(Clone, Default, Serialize)]
pub struct NoResult {
    /// The reason.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The number of errors that it is, if these are in a file.
    pub errors: usize,
    /// The findings that it is.
    #[serde(skip)]
    pub findings: Vec<WrittenFinding>,
}

impl From<Vec<WrittenFinding>> for NoResult {
    fn from(findings: Vec<WrittenFinding>) -> Self {
        let errors = findings.iter().filter(|it| it.finding.severity == Severity::Error);
        let errors = errors.count();
        let gravest = findings.iter().rev().max_by_key(|it| it.finding.severity);
        Self {
            message: gravest.map_or_else(String::new, |it| it.finding.message.to_string()),
            help: gravest.and_then(|it| it.finding.help.clone()),
            errors,
            findings,
        }
    }
}

impl MeshResults<'_> {
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
    pub(super) fn unread(&self) -> impl Iterator<Item = &GraphCluster> {
        let clusters = self.graph.iter().flat_map(|it| &it.clusters);
        clusters.filter(|it| it.is_unread)
    }

    /// Returns the number of errors of the inputs.
    pub(super) fn errors(&self) -> usize {
        self.findings.iter().filter(|it| it.finding.severity == Severity::Error).count()
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

/// The ids of clusters and of pairs of clusters.
pub(super) struct PageIds {
    taken: BTreeSet<String>,
    clusters: BTreeMap<String, String>,
    pairs: BTreeMap<(String, String), String>,
}

impl PageIds {
    /// Gives every cluster an id.
    pub(super) fn new(results: &MeshResults) -> Self {
        let mut ids =
            Self { taken: BTreeSet::new(), clusters: BTreeMap::new(), pairs: BTreeMap::new() };
        for name in results.cluster_names() {
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
