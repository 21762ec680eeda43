//! The matrix of clusters: a cell for each sender and receiver, for all paths and for each class.
//!
//! Few clusters are a table with numbers, many a picture. A cell of the picture takes a byte or less: equal
//! neighbours of a row are one line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::documents::PageDocuments;
use super::ids::PageIds;
use super::path_state::{PathState, StateLegend};
use super::proof_document::PagePairing;

/// The most clusters of a table.
const TABLE: usize = 12;

/// The most clusters of a picture in which they have names.
const NAMED: usize = 60;

/// The classes, in the order in which they are offered.
const CLASSES: [(&str, &str); 8] = [
    ("pod", "pod"),
    ("pod", "service"),
    ("pod", "network"),
    ("pod", "node"),
    ("node", "pod"),
    ("node", "node"),
    ("node", "service"),
    ("node", "network"),
];

/// The matrix.
#[derive(Serialize)]
pub(super) struct PathMatrix<'d> {
    clusters: Vec<&'d str>,
    is_table: bool,
    is_named: bool,
    /// The room for names in the picture, in cells.
    margin: usize,
    layers: Vec<MatrixLayer<'d>>,
    legend: Vec<StateLegend>,
}

/// The cells for some classes of paths.
#[derive(Serialize)]
struct MatrixLayer<'d> {
    /// The name of the classes; the first layer has all.
    label: String,
    rows: Vec<MatrixRow<'d>>,
    lines: Vec<MatrixLine>,
}

/// A row of the table.
#[derive(Serialize)]
struct MatrixRow<'d> {
    from: &'d str,
    cells: Vec<MatrixCell<'d>>,
}

/// A cell of the table.
#[derive(Serialize)]
struct MatrixCell<'d> {
    state: PathState,
    sign: &'static str,
    words: &'static str,
    to: &'d str,
    /// The number of declared paths that work, and of all.
    counts: Option<(u64, u64)>,
    href: Option<&'d str>,
    is_same: bool,
}

/// The cells of the picture that have one state.
#[derive(Serialize)]
struct MatrixLine {
    state: PathState,
    path: String,
}

/// The inputs of the matrix.
struct MatrixSource<'d> {
    clusters: Vec<&'d str>,
    pairings: BTreeMap<(&'d str, &'d str), &'d PagePairing>,
    unread: BTreeSet<(&'d str, &'d str)>,
    ids: &'d PageIds,
}

impl<'d> PathMatrix<'d> {
    /// Returns the matrix of all clusters; none without a proof.
    pub(super) fn new(documents: &'d PageDocuments, ids: &'d PageIds) -> Option<Self> {
        let verification = documents.verification.as_ref().ok()?;
        let pairings = verification.pairings.iter();
        let clusters = documents.cluster_names();
        let source = MatrixSource {
            pairings: pairings.map(|it| ((it.from.as_str(), it.to.as_str()), it)).collect(),
            unread: unread(documents),
            clusters,
            ids,
        };
        let used: BTreeSet<(&str, &str)> = verification
            .pairings
            .iter()
            .flat_map(|it| &it.classes)
            .filter(|it| 0 < it.tally.declared)
            .map(|it| (it.from.as_str(), it.to.as_str()))
            .collect();
        let of_pairs = verification.pairings.iter().flat_map(PagePairing::states);
        let of_unread = source.unread.iter().map(|_| PathState::Unread);
        let states = of_pairs.chain(of_unread).collect();
        let classes = CLASSES.into_iter().filter(|it| used.contains(it));
        let layers = [None].into_iter().chain(classes.map(Some));
        let clusters = source.clusters.len();
        let longest = source.clusters.iter().map(|it| it.chars().count()).max();
        Some(Self {
            is_table: clusters <= TABLE,
            is_named: clusters <= NAMED,
            margin: if clusters <= NAMED { 1 + longest.unwrap_or_default() / 2 } else { 0 },
            layers: layers.map(|it| source.layer(it)).collect(),
            legend: PathState::legend(&states).collect(),
            clusters: source.clusters,
        })
    }
}

/// Returns the linked pairs of which a cluster has no snapshot, in both directions.
fn unread(documents: &PageDocuments) -> BTreeSet<(&str, &str)> {
    let unread: BTreeSet<&str> = documents.unread().map(|it| it.name.as_str()).collect();
    let links = documents.graph.iter().flat_map(|it| &it.links);
    let pairs = links.flat_map(|it| {
        let [left, right] = &it.clusters;
        [(left.as_str(), right.as_str()), (right, left)]
    });
    pairs.filter(|(from, to)| unread.contains(from) || unread.contains(to)).collect()
}

impl<'d> MatrixSource<'d> {
    fn layer(&self, classes: Option<(&str, &str)>) -> MatrixLayer<'d> {
        let rows = self.clusters.iter().map(|from| MatrixRow {
            from,
            cells: self.clusters.iter().map(|to| self.cell(from, to, classes)).collect(),
        });
        let label = classes.map(|(from, to)| format!("{from} → {to}"));
        let rows: Vec<MatrixRow> = rows.collect();
        let is_table = self.clusters.len() <= TABLE;
        MatrixLayer {
            label: label.unwrap_or_else(|| "all paths".to_owned()),
            lines: if is_table { Vec::new() } else { lines(&rows) },
            rows: if is_table { rows } else { Vec::new() },
        }
    }

    fn cell(&self, from: &'d str, to: &'d str, classes: Option<(&str, &str)>) -> MatrixCell<'d> {
        let pairing = self.pairings.get(&(from, to)).copied();
        let tally = pairing.and_then(|it| match classes {
            None => Some(it.total()),
            Some(classes) => {
                let mut tallies = it.classes.iter();
                let of = tallies.find(|it| (it.from.as_str(), it.to.as_str()) == classes);
                of.map(|it| it.tally)
            }
        });
        let is_linked = pairing.is_some_and(|it| it.linked);
        let state = match tally {
            Some(tally) => PathState::of(tally, is_linked),
            None if self.unread.contains(&(from, to)) => PathState::Unread,
            None => PathState::Unlinked,
        };
        MatrixCell {
            state,
            sign: state.sign(),
            words: state.words(),
            to,
            counts: tally
                .filter(|it| 0 < it.declared)
                .map(|it| (it.working + it.assumed, it.declared)),
            href: self.ids.pair(from, to),
            is_same: from == to,
        }
    }
}

/// Returns a line for each state, of all runs of equal cells.
fn lines(rows: &[MatrixRow]) -> Vec<MatrixLine> {
    let mut paths: BTreeMap<PathState, String> = BTreeMap::new();
    for (y, row) in rows.iter().enumerate() {
        let mut x = 0;
        for run in row.cells.chunk_by(|left, right| left.state == right.state) {
            let state = run.first().map(|it| it.state);
            if let Some(state) = state.filter(|it| *it != PathState::Unlinked) {
                let path = paths.entry(state).or_default();
                let _ = write!(path, "M{x} {y}.5h{}", run.len());
            }
            x += run.len();
        }
    }
    let lines = paths.into_iter();
    lines.map(|(state, path)| MatrixLine { state, path }).collect()
}
