//! Failures by their causes. Of many causes of one kind only the first few are kept apart, so that
//! what a verification takes and prints depends on the number of clusters, not of ranges or pairs.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::iter::successors;

use super::cause::{Explained, FailureCause};
use crate::agent::fabric::{Owner, SiteId, SitePair};
use crate::mesh::AddressClass;
use crate::packet::trace::Trace;
use crate::proof::bounded_list::APART;

/// Declared paths that fail for the same cause.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The smallest packet that shows it.
    pub trace: Trace,
    /// The number of paths that fail.
    pub pairs: u64,
    /// Between which clusters.
    pub between: BTreeSet<SitePair>,
    /// Whether what nodes claim causes it, and not what people wrote.
    pub is_claimed: bool,
    /// The failure that it follows from, by its place in `Verification::failures`.
    pub follows: Option<usize>,
    /// In which classes.
    pub classes: BTreeSet<(AddressClass, AddressClass)>,
    /// The owners of the addresses that are not reached.
    pub receivers: BTreeSet<(SiteId, Owner)>,
}

/// Failures by their causes.
#[derive(Debug, Default)]
pub(super) struct Failures {
    by_cause: BTreeMap<FailureCause, Failure>,
    /// The number of causes that are kept apart, by the wider cause that they have in common.
    apart: BTreeMap<FailureCause, usize>,
}

impl Failures {
    /// Adds a failure to those of its cause.
    pub(super) fn add(&mut self, cause: FailureCause, failure: Failure) {
        let cause = self.apart_or_wider(cause);
        match self.by_cause.entry(cause) {
            Entry::Vacant(entry) => drop(entry.insert(failure)),
            Entry::Occupied(mut entry) => entry.get_mut().add(failure),
        }
    }

    /// Adds the failures of others, in their order.
    pub(super) fn join(&mut self, others: Self) {
        for (cause, failure) in others.by_cause {
            self.add(cause, failure);
        }
    }

    /// Returns the cause under which a failure is kept: its own, or that of the rest of its kind.
    fn apart_or_wider(&mut self, mut cause: FailureCause) -> FailureCause {
        while let Some(wider) = cause.wider()
            && !self.by_cause.contains_key(&cause)
        {
            let kinds: Vec<_> = successors(Some(wider.clone()), FailureCause::wider).collect();
            let is_full = |it: &FailureCause| self.apart.get(it).is_some_and(|it| APART <= *it);
            if !kinds.iter().any(is_full) {
                for it in kinds {
                    *self.apart.entry(it).or_default() += 1;
                }
                break;
            }
            cause = wider;
        }
        cause
    }

    /// Returns the failures, the largest first, each with the one that it follows from.
    pub(super) fn in_order(self) -> Vec<Failure> {
        let mut failures: Vec<(FailureCause, Failure)> = self.by_cause.into_iter().collect();
        failures.sort_by_key(|(_, failure)| Reverse(failure.pairs));
        let mut explaining: BTreeMap<(Explained, SitePair), Vec<usize>> = BTreeMap::new();
        for (index, (cause, failure)) in failures.iter().enumerate() {
            if let Some(explained) = cause.explains() {
                for pair in &failure.between {
                    explaining.entry((explained, *pair)).or_default().push(index);
                }
            }
        }
        let follows: Vec<Option<usize>> = failures
            .iter()
            .map(|(cause, failure)| {
                let mut back = failure.between.iter().map(|it| it.back());
                let mut explaining =
                    explaining.get(&(cause.explained()?, back.next()?))?.iter().copied();
                explaining.find(|index| {
                    let other = failures.get(*index).map(|it| &it.1.between);
                    other.is_some_and(|other| back.clone().all(|pair| other.contains(&pair)))
                })
            })
            .collect();
        let failures = failures
            .into_iter()
            .zip(follows)
            .map(|((_, failure), follows)| Failure { follows, ..failure });
        failures.collect()
    }
}

impl Failure {
    /// Adds what fails for the same cause.
    fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.between.extend(other.between);
        self.classes.extend(other.classes);
        self.receivers.extend(other.receivers);
        let size = |trace: &Trace| (trace.packet.source, trace.packet.destination);
        if size(&other.trace) < size(&self.trace) {
            self.trace = other.trace;
        }
    }
}
