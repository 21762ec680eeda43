//! Entries: what is listed one by one, which is each cause with what follows from it.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::diagnostic::{FindingCause, Severity};
use crate::rules::Finding;

/// A finding, and those that follow from it.
pub struct ReportEntry<'f, F = Finding> {
    /// The finding.
    pub finding: &'f F,
    /// Its consequences, in order.
    pub consequences: Vec<&'f F>,
}

impl<'f, F> ReportEntry<'f, F> {
    fn alone(finding: &'f F) -> Self {
        Self { finding, consequences: Vec::new() }
    }
}

impl<F: Borrow<Finding>> ReportEntry<'_, F> {
    /// Returns the severity of the most severe finding in it: no cause hides an error that follows from it.
    pub fn severity(&self) -> Severity {
        let own = self.finding.borrow().severity;
        let consequences = self.consequences.iter().map(|it| (*it).borrow().severity);
        consequences.fold(own, Severity::max)
    }

    /// Returns all findings in it, each as an entry: it, and those that follow from it.
    pub(super) fn unfolded(self) -> impl Iterator<Item = Self> {
        let consequences: Vec<Self> = self.consequences.iter().map(|it| Self::alone(it)).collect();
        iter::once(self).chain(consequences)
    }
}

/// The entries that are shown if there is no room for all, both parts in order.
pub(super) struct EntrySelection<'e, 'f> {
    /// The entries that are shown.
    pub(super) shown: Vec<&'e ReportEntry<'f>>,
    /// The other entries.
    pub(super) left_out: Vec<&'e ReportEntry<'f>>,
}

/// Returns findings, with those that follow from another one below it. A cause stands where the most severe finding
/// of the two stood.
pub fn entries<F: Borrow<Finding>>(findings: &[F]) -> Vec<ReportEntry<'_, F>> {
    if findings.iter().all(|it| it.borrow().cause.is_none()) {
        return findings.iter().map(ReportEntry::alone).collect();
    }
    let mut by_subject: BTreeMap<FindingCause, &Finding> = BTreeMap::new();
    for finding in findings.iter().map(Borrow::borrow) {
        by_subject.entry(finding.as_cause()).or_insert(finding);
    }
    let mut consequences: BTreeMap<FindingCause, Vec<&F>> = BTreeMap::new();
    let mut raised: BTreeMap<FindingCause, usize> = BTreeMap::new();
    let mut first = Vec::new();
    for (position, finding) in findings.iter().enumerate() {
        let Some(cause) = root(&by_subject, finding.borrow()) else {
            first.push((position, finding));
            continue;
        };
        consequences.entry(cause.as_cause()).or_default().push(finding);
        if cause.severity < finding.borrow().severity {
            raised.entry(cause.as_cause()).or_insert(position);
        }
    }
    let entries = first.into_iter().map(|(position, finding)| {
        let cause = finding.borrow().as_cause();
        let consequences = consequences.remove(&cause).unwrap_or_default();
        let raised = raised.remove(&cause).unwrap_or(position);
        (position.min(raised), ReportEntry { finding, consequences })
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|it| it.0);
    entries.into_iter().map(|it| it.1).collect()
}

/// Returns the finding under which another one is listed: its first cause.
fn root<'f>(
    by_subject: &BTreeMap<FindingCause, &'f Finding>,
    finding: &'f Finding,
) -> Option<&'f Finding> {
    let mut passed = BTreeSet::from([finding.as_cause()]);
    let mut root = finding;
    while let Some(cause) = root.cause.as_ref().and_then(|it| by_subject.get(it)) {
        // A finding that follows from itself would be listed nowhere.
        if !passed.insert(cause.as_cause()) {
            break;
        }
        root = cause;
    }
    (root.as_cause() != finding.as_cause()).then_some(root)
}

/// Selects what is shown where there is no room for all: the most severe first, and among those
/// clusters take turns, so that what is wrong with one cannot hide what is wrong with the others.
/// It ends with the first that does not fit.
pub(super) fn select<'e, 'f>(
    entries: &[&'e ReportEntry<'f>],
    mut fits: impl FnMut(&ReportEntry) -> bool,
) -> EntrySelection<'e, 'f> {
    let mut turns: BTreeMap<(Severity, Option<&str>), usize> = BTreeMap::new();
    let mut order: Vec<_> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let (severity, cluster) = (entry.severity(), entry.finding.cluster.as_deref());
            let turn = turns.entry((severity, cluster)).or_default();
            *turn += 1;
            (Reverse(severity), *turn, index, *entry)
        })
        .collect();
    order.sort_by_key(|&(severity, turn, index, _)| (severity, turn, index));
    let shown: BTreeSet<usize> = order
        .into_iter()
        .take_while(|(.., entry)| fits(entry))
        .map(|(_, _, index, _)| index)
        .collect();
    let (shown, left_out): (Vec<_>, Vec<_>) =
        entries.iter().enumerate().partition(|(index, _)| shown.contains(index));
    EntrySelection {
        shown: shown.into_iter().map(|(_, it)| *it).collect(),
        left_out: left_out.into_iter().map(|(_, it)| *it).collect(),
    }
}

/// Returns a filter that admits only this many.
pub(super) fn at_most(number: usize) -> impl FnMut(&ReportEntry) -> bool {
    let mut room = number;
    move |_| {
        let fits = 0 < room;
        room = room.saturating_sub(1);
        fits
    }
}
