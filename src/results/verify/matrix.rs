//! The results for pairs of clusters: a table, and what it does not show.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{CLASSES, SHOWN, Verified, are_assumed};
use crate::agent::fabric::SiteId;
use crate::proof::verify::{ClassPair, Pairing, Tally};
use crate::report::alike::{Arrow, folded};
use crate::report::table::TextTable;
use crate::text;

/// The most pairs among which alike ones are looked for.
const COMPARED: usize = 20_000;

/// The results for pairs of clusters.
pub(super) struct Matrix {
    /// A row for each pair of clusters that is shown, of which alike ones share one; nothing if none is.
    pub(super) table: Option<TextTable>,
    /// A line for each kind of pair that is not shown.
    pub(super) rest: String,
}

/// A pair of clusters in the table.
struct MatrixPair<'p> {
    pairing: &'p Pairing,
    ends: [String; 2],
    cells: Vec<String>,
}

impl Verified<'_, '_> {
    /// Returns a row for each pair of clusters, where there are not too many; else for those that fail.
    pub(super) fn matrix(&self) -> Matrix {
        let is_apart =
            |it: &&Pairing| !it.is_linked && it.tallies.values().all(|it| it.reached == 0);
        let (apart, pairings): (Vec<&Pairing>, Vec<&Pairing>) =
            self.verification.pairings.iter().partition(is_apart);
        let is_of_focus = |it: &Pairing| {
            let mut focus = self.focus.into_iter();
            focus.all(|focus| focus.contains(&it.from) || focus.contains(&it.to))
        };
        let classes = self.used_classes();
        let asked = pairings.iter().filter(|it| is_of_focus(it) || fails(it));
        let asked: Vec<MatrixPair> = asked.map(|it| self.matrix_pair(it, &classes)).collect();
        let all = arrows(asked.iter().take(COMPARED));
        let failing = arrows(asked.iter().filter(|it| fails(it.pairing)).take(COMPARED));
        let mut rows = folded(&all);
        if SHOWN < rows.len() || COMPARED < asked.len() {
            rows = folded(&failing);
        }
        rows.truncate(SHOWN);
        let columns = classes.iter().map(|(from, to)| format!("{from} → {to}"));
        let columns: Vec<String> = columns.collect();
        let columns = columns.iter().map(String::as_str);
        let mut table = TextTable::new(["FROM", "TO"].into_iter().chain(columns)).named_by(2);
        let mut shown = BTreeSet::new();
        for row in &rows {
            let to = if row.is_mutual() { "each other".to_owned() } else { text::listed(&row.to) };
            let ends = [text::listed(&row.from), to].into_iter();
            table.add(ends.chain(row.label.iter().cloned()).collect());
            shown
                .extend(row.from.iter().flat_map(|from| row.to.iter().map(move |to| [*from, *to])));
        }
        let named = asked.iter().filter(|it| shown.contains(&it.ends.each_ref().map(|it| &**it)));
        let named: BTreeSet<[SiteId; 2]> =
            named.map(|it| [it.pairing.from, it.pairing.to]).collect();
        let others = pairings.into_iter().filter(|it| !named.contains(&[it.from, it.to]));
        let rest = self.rest(&others.collect::<Vec<_>>(), &apart, rows.is_empty());
        Matrix { table: (!rows.is_empty()).then_some(table), rest }
    }

    /// Returns the classes of all paths that are declared or work.
    fn used_classes(&self) -> Vec<ClassPair> {
        let tallies = self.verification.tallies();
        let tallies = tallies.flat_map(|(tallies, _)| tallies.iter());
        let used = tallies.filter(|(_, tally)| 0 < tally.promised || 0 < tally.reached);
        let used: BTreeSet<ClassPair> = used.map(|(classes, _)| classes).collect();
        CLASSES.into_iter().filter(|it| used.contains(it)).collect()
    }

    fn matrix_pair<'p>(&self, pairing: &'p Pairing, classes: &[ClassPair]) -> MatrixPair<'p> {
        let cells = classes.iter().map(|it| cell(pairing, pairing.tallies.get(*it)));
        let ends = [pairing.from, pairing.to].map(|it| self.cluster(it));
        MatrixPair { pairing, ends, cells: cells.collect() }
    }

    /// Returns a line for each kind of pair that has no row.
    fn rest(&self, others: &[&Pairing], apart: &[&Pairing], is_all: bool) -> String {
        let mut rest = String::new();
        let other = if is_all { "" } else { "other " };
        let (failing, working): (Vec<&Pairing>, Vec<&Pairing>) =
            others.iter().partition(|it| fails(it));
        if !failing.is_empty() {
            let pairs = text::count(failing.len(), &format!("{other}pair"));
            let _ = writeln!(
                rest,
                "Declared paths also fail between {pairs} of clusters (see `--output json`)."
            );
        }
        if !working.is_empty() {
            let pairs = text::count(working.len(), &format!("{other}pair"));
            let tallies = working.iter().flat_map(|it| it.tallies.values());
            let _ = match tallies.map(|it| it.assumed).sum() {
                0 => writeln!(rest, "All declared paths work between {pairs} of clusters."),
                assumed => writeln!(
                    rest,
                    "No declared path fails between {pairs} of clusters; {}.",
                    are_assumed(assumed)
                ),
            };
        }
        // An external peer reaches the clusters that its entry lists, and the links of a cluster that joins or leaves wait
        // for it, so a missing link is intended.
        let is_meant = |it: SiteId| self.fabric.site(it).entry.is_joined_cluster();
        let apart = apart.iter().filter(|it| is_meant(it.from) && is_meant(it.to));
        let apart: BTreeSet<_> = apart.map(|it| (it.from.min(it.to), it.from.max(it.to))).collect();
        if !apart.is_empty() {
            let have = if apart.len() == 1 { "has" } else { "have" };
            let pairs = text::count(apart.len(), "pair");
            let _ = writeln!(rest, "{pairs} of clusters {have} no link.");
        }
        rest
    }
}

fn fails(pairing: &Pairing) -> bool {
    pairing.tallies.values().any(Tally::fails)
}

fn arrows<'p>(pairs: impl Iterator<Item = &'p MatrixPair<'p>>) -> Vec<Arrow<'p, &'p Vec<String>>> {
    let arrows =
        pairs.map(|MatrixPair { ends: [from, to], cells, .. }| Arrow { from, to, label: cells });
    arrows.collect()
}

/// The result of one class of one pair.
fn cell(pairing: &Pairing, tally: Option<&Tally>) -> String {
    let Some(tally) = tally else {
        return "-".to_owned();
    };
    match (tally.promised, tally.reached) {
        (0, 0) if pairing.is_linked => "-".to_owned(),
        (0, 0) => "no link".to_owned(),
        (0, reached) => format!("+{reached}"),
        (promised, reached) => {
            let mut text = format!("{}/{promised}", tally.kept);
            if 0 < tally.assumed {
                let _ = write!(text, " ?{}", tally.assumed);
            }
            if 0 < reached {
                let _ = write!(text, " +{reached}");
            }
            text
        }
    }
}
