//! Refused ranges: those that a target does not accept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decision::Decisions;
use super::target_view::{TargetSource, TargetView};
use super::withheld::{TargetReason, WithheldRanges};
use crate::net::Cidr;

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
        let decision = decisions.entry(source.id).or_default();
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
