//! Accepted ranges: a target accepts only ranges that are completely inside one entry of each of its
//! lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::target_view::{Decisions, TargetSource, TargetView};
use super::withheld::{TargetReason, WithheldRanges};
use crate::mesh::Range;
use crate::net::{Cidr, Cover};
use crate::place::Place;

/// The lists of a target by one of its memberships; at least one.
pub(super) struct Accepted<'f> {
    lists: Vec<AcceptedList<'f>>,
}

struct AcceptedList<'f> {
    ranges: Cover<()>,
    first: Option<&'f Range>,
}

impl<'f> Accepted<'f> {
    /// Returns the lists, if there are any.
    pub(super) fn new(lists: impl Iterator<Item = &'f [Range]>) -> Option<Self> {
        let lists: Vec<AcceptedList> = lists
            .map(|ranges| AcceptedList {
                ranges: ranges.iter().map(|range| (range.cidr, ())).collect(),
                first: ranges.first(),
            })
            .collect();
        (!lists.is_empty()).then_some(Self { lists })
    }

    /// Returns whether every list takes a range.
    pub(super) fn takes(&self, range: Cidr) -> bool {
        self.lists.iter().all(|list| list.takes(range))
    }

    /// Returns what of a range every list takes.
    pub(super) fn common(&self, range: Cidr) -> Vec<Cidr> {
        self.lists.iter().fold(vec![range], |left, list| {
            let parts = left.into_iter().flat_map(|it| list.ranges.common(it));
            parts.collect()
        })
    }

    /// Returns the first list that does not take a range, by where it begins.
    fn refusal(&self, range: Cidr) -> Option<&Place> {
        let refusing = self.lists.iter().find(|list| !list.takes(range))?;
        Some(&refusing.first?.place)
    }
}

impl AcceptedList<'_> {
    /// Of nested entries the widest is kept, which is the one that can hold most.
    fn takes(&self, range: Cidr) -> bool {
        let holder = self.ranges.holder(range.first());
        holder.is_some_and(|(entry, ())| entry.contains(range))
    }
}

/// Leaves out what the target does not take of a source.
pub(super) fn settle(view: &TargetView, source: &TargetSource, decisions: &mut Decisions) {
    let Some(accepted) = view.accepted(source) else {
        return;
    };
    let mut refused: BTreeMap<Option<Cidr>, BTreeSet<Cidr>> = BTreeMap::new();
    for range in source.member.given() {
        if view.can_route(range) && !accepted.takes(range) {
            let declared = source.member.declaration(range).map(|it| it.cidr);
            refused.entry(declared).or_default().insert(range);
        }
    }
    for ranges in refused.into_values() {
        let decision = decisions.entry(source.index).or_default();
        decision.withheld.extend(&ranges);
        let Some(&first) = ranges.first() else {
            continue;
        };
        let place = accepted.refusal(first).cloned();
        decision.reasons.extend(place.map(|accepted| {
            Arc::new(TargetReason::Unaccepted {
                ranges: WithheldRanges {
                    declared: source.member.declaration(first).map(|it| it.place.clone()),
                    cidrs: ranges.into_iter().collect(),
                },
                accepted,
            })
        }));
    }
}
