//! The matrix of clusters: a cell for each sender and receiver, for all paths and for each class, with what becomes of
//! the paths as a sign, a word and a colour.
//!
//! Few clusters are a table with numbers, and so are many of which most are alike: these share a row and a column. All others
//! are a picture. A cell of the picture takes a byte or less: equal neighbours of a row are one line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::mesh_results::{MeshResults, PageIds};
use crate::proof::verify::{ClassPair, Tally};
use crate::report::alike::{self, Arrow};
use crate::results::verify::CLASSES;
use crate::results::verify::json::WrittenPairing;
use crate::text;

/// The most rows of a table.
const TABLE: usize = 12;

/// The most clusters of a picture in which they have names.
const NAMED: usize = 60;

/// The matrix.
#[derive(Serialize)]
pub(super) struct PathMatrix<'d> {
    /// The names of the rows and columns.
    clusters: Vec<String>,
    is_table: bool,
    /// Whether clusters share a row.
    is_folded: bool,
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
    from: String,
    /// The clusters that share it.
    members: Vec<&'d str>,
    cells: Vec<MatrixCell<'d>>,
}

/// A cell of the table.
#[derive(Serialize)]
struct MatrixCell<'d> {
    state: PathState,
    sign: &'static str,
    words: &'static str,
    to: String,
    /// The clusters that share the column.
    members: Vec<&'d str>,
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
    /// The clusters of each row and column.
    groups: Vec<Vec<&'d str>>,
    is_table: bool,
    pairings: BTreeMap<(&'d str, &'d str), &'d WrittenPairing>,
    unread: BTreeSet<(&'d str, &'d str)>,
    ids: &'d PageIds,
}

impl<'d> PathMatrix<'d> {
    /// Returns the matrix of all clusters; none without a proof.
    pub(super) fn new(results: &'d MeshResults<'d>, ids: &'d PageIds) -> Option<Self> {
        let verification = results.verification.as_ref().ok()?;
        let pairings = verification.pairings.iter();
        let clusters = results.cluster_names();
        let unread = unread(results);
        let alone: Vec<Vec<&str>> = clusters.iter().map(|it| vec![*it]).collect();
        let groups = if TABLE < clusters.len() {
            let alike = groups(&clusters, &verification.pairings, &unread);
            Some(alike).filter(|it| it.len() <= TABLE).unwrap_or(alone)
        } else {
            alone
        };
        let source = MatrixSource {
            is_table: groups.len() <= TABLE,
            groups,
            pairings: pairings.map(|it| ((it.from.as_str(), it.to.as_str()), it)).collect(),
            unread,
            ids,
        };
        let of_pairs = verification.pairings.iter().flat_map(WrittenPairing::states);
        let of_unread = source.unread.iter().map(|_| PathState::Unread);
        let states = of_pairs.chain(of_unread).collect();
        let classes = used_classes(&verification.pairings).into_iter();
        let layers = [None].into_iter().chain(classes.map(Some));
        let names: Vec<String> = source.groups.iter().map(text::listed).collect();
        let longest = names.iter().map(|it| it.chars().count()).max();
        let is_named = names.len() <= NAMED;
        Some(Self {
            is_table: source.is_table,
            is_folded: names.len() < clusters.len(),
            is_named,
            margin: if is_named { 1 + longest.unwrap_or_default() / 2 } else { 0 },
            layers: layers.map(|it| source.layer(it)).collect(),
            legend: PathState::legend(&states).collect(),
            clusters: names,
        })
    }
}

/// Returns the classes of declared paths.
fn used_classes(pairings: &[WrittenPairing]) -> Vec<ClassPair> {
    let classes = pairings.iter().flat_map(|it| &it.classes);
    let used = classes.filter(|it| 0 < it.tally.promised).map(|it| (it.from, it.to));
    let used: BTreeSet<ClassPair> = used.collect();
    CLASSES.into_iter().filter(|it| used.contains(it)).collect()
}

/// Returns the clusters in groups, in each of which all have the same cells.
fn groups<'d>(
    clusters: &[&'d str],
    pairings: &'d [WrittenPairing],
    unread: &BTreeSet<(&'d str, &'d str)>,
) -> Vec<Vec<&'d str>> {
    let proved = pairings.iter().map(|it| Arrow {
        from: it.from.as_str(),
        to: it.to.as_str(),
        label: it.layers(),
    });
    let unread = unread.iter().map(|(from, to)| Arrow { from, to, label: Vec::new() });
    let is_cell =
        |it: &Arrow<Vec<LayerState>>| it.label.iter().any(|it| it.1 != PathState::Unlinked);
    let arrows: Vec<Arrow<Vec<LayerState>>> = proved.filter(is_cell).chain(unread).collect();
    let alike = alike::groups(&arrows);
    let keyed = clusters.iter().map(|it| (alike.get(it), *it));
    alike::grouped(keyed).into_iter().map(|it| it.1).collect()
}

/// The classes of paths, and their state; of all paths without classes.
type LayerState = (Option<ClassPair>, PathState);

/// Returns the linked pairs of which a cluster has no snapshot, in both directions.
fn unread<'d>(results: &'d MeshResults) -> BTreeSet<(&'d str, &'d str)> {
    let unread: BTreeSet<&str> = results.unread().map(|it| it.name.as_str()).collect();
    let links = results.graph.iter().flat_map(|it| &it.links);
    let pairs = links.flat_map(|it| {
        let [left, right] = &it.clusters;
        [(left.as_str(), right.as_str()), (right, left)]
    });
    pairs.filter(|(from, to)| unread.contains(from) || unread.contains(to)).collect()
}

impl<'d> MatrixSource<'d> {
    fn layer(&self, classes: Option<ClassPair>) -> MatrixLayer<'d> {
        let rows = self.groups.iter().map(|from| MatrixRow {
            from: text::listed(from),
            members: from.clone(),
            cells: self.groups.iter().map(|to| self.cell(from, to, classes)).collect(),
        });
        let label = classes.map(|(from, to)| format!("{from} → {to}"));
        let rows: Vec<MatrixRow> = rows.collect();
        MatrixLayer {
            label: label.unwrap_or_else(|| "all paths".to_owned()),
            lines: if self.is_table { Vec::new() } else { lines(&rows) },
            rows: if self.is_table { rows } else { Vec::new() },
        }
    }

    /// Returns the cell of two groups, in which all pairs have the same state.
    fn cell(&self, from: &[&'d str], to: &[&'d str], classes: Option<ClassPair>) -> MatrixCell<'d> {
        let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
        let pairs: Vec<(&str, &str)> = pairs.filter(|(from, to)| from != to).collect();
        let pairings = pairs.iter().filter_map(|it| self.pairings.get(it));
        let mut total: Option<Tally> = None;
        for tally in pairings.clone().filter_map(|it| it.of(classes)) {
            *total.get_or_insert_default() += tally;
        }
        let is_linked = pairings.clone().any(|it| it.linked);
        let first = pairs.first();
        let state = match total {
            Some(total) => PathState::of(total, is_linked),
            None if first.is_some_and(|it| self.unread.contains(it)) => PathState::Unread,
            None => PathState::Unlinked,
        };
        MatrixCell {
            state,
            sign: state.sign(),
            words: state.words(),
            to: text::listed(to),
            members: to.to_vec(),
            counts: total
                .filter(|it| 0 < it.promised)
                .map(|it| (it.kept + it.assumed, it.promised)),
            href: first.and_then(|(from, to)| self.ids.pair(from, to)),
            is_same: first.is_none(),
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

/// The state of the paths from one cluster to another, the worst first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PathState {
    /// No declared path works.
    Fails,
    /// Some declared paths fail.
    Partly,
    /// Paths work although the clusters have no link.
    Undeclared,
    /// Some declared paths depend on conditions that no file shows.
    Assumed,
    /// All declared paths work.
    Works,
    /// The snapshot of a cluster is missing.
    Unread,
    /// No path is declared.
    Unlinked,
}

/// A state as the legend explains it.
#[derive(Clone, Copy, Serialize)]
struct StateLegend {
    state: PathState,
    sign: &'static str,
    word: &'static str,
}

impl PathState {
    /// All states.
    const ALL: [Self; 7] = [
        Self::Works,
        Self::Assumed,
        Self::Partly,
        Self::Fails,
        Self::Undeclared,
        Self::Unread,
        Self::Unlinked,
    ];

    /// Returns the state of paths.
    pub(super) fn of(tally: Tally, is_linked: bool) -> Self {
        let held = tally.kept + tally.assumed;
        match tally.promised {
            0 if 0 < tally.reached && !is_linked => Self::Undeclared,
            0 => Self::Unlinked,
            _ if held == 0 => Self::Fails,
            declared if held < declared => Self::Partly,
            _ if 0 < tally.assumed => Self::Assumed,
            _ => Self::Works,
        }
    }

    /// Returns whether there is something to look at.
    pub(super) fn is_trouble(self) -> bool {
        self <= Self::Assumed
    }

    /// Returns its sign, for people who see no colours.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Fails => "✗",
            Self::Partly => "◐",
            Self::Undeclared => "+",
            Self::Assumed => "?",
            Self::Works => "✓",
            Self::Unread => "…",
            Self::Unlinked => "·",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Fails => "no declared path works",
            Self::Partly => "some declared paths fail",
            Self::Undeclared => "reachable without a link",
            Self::Assumed => "works if an assumption holds",
            Self::Works => "all declared paths work",
            Self::Unread => "unknown, a snapshot is missing",
            Self::Unlinked => "no declared path",
        }
    }

    /// Returns the legend of some states.
    fn legend(used: &BTreeSet<Self>) -> impl Iterator<Item = StateLegend> {
        let used = Self::ALL.into_iter().filter(|it| used.contains(it));
        used.map(|state| StateLegend { state, sign: state.sign(), word: state.words() })
    }
}

impl WrittenPairing {
    /// Returns all its paths.
    pub(super) fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.classes.iter().for_each(|it| total += it.tally);
        total
    }

    /// Returns its paths of some classes.
    fn of(&self, classes: Option<ClassPair>) -> Option<Tally> {
        let Some(classes) = classes else {
            return Some(self.total());
        };
        let found = self.classes.iter().find(|it| (it.from, it.to) == classes);
        found.map(|it| it.tally)
    }

    /// Returns the state of all its paths, and of those of each class.
    fn layers(&self) -> Vec<LayerState> {
        let classes = self
            .classes
            .iter()
            .map(|it| (Some((it.from, it.to)), PathState::of(it.tally, self.linked)));
        [(None, self.state())].into_iter().chain(classes).collect()
    }

    /// Returns the states of all its paths, and of those of each class.
    pub(super) fn states(&self) -> impl Iterator<Item = PathState> {
        let classes = self.classes.iter();
        let classes = classes.map(|it| PathState::of(it.tally, self.linked));
        classes.chain([self.state()])
    }

    /// Returns the state of all its paths.
    pub(super) fn state(&self) -> PathState {
        PathState::of(self.total(), self.linked)
    }
}
