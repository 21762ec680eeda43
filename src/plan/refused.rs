//! Refused ranges: those that a target does not accept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::accepted::Accepted;
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
    let mut pathless = if refused.is_empty() { None } else { pathless(view, source, accepted) };
    for (declared, ranges) in refused {
        let decision = decisions.entry(source.id).or_default();
        decision.withheld.extend(&ranges);
        let Some(&first) = ranges.first() else {
            continue;
        };
        let place = accepted.refusal(first).cloned();
        // One finding is enough.
        let has_paths = |it: &mut BTreeSet<Cidr>| !ranges.is_subset(it);
        let is_pathless = pathless.take_if(has_paths).is_some();
        let whole = declared.filter(|it| accepted.common(*it).is_empty());
        decision.reasons.extend(place.map(|accepted| {
            Arc::new(TargetReason::Unaccepted {
                ranges: WithheldRanges {
                    declared: source.member.declaration(first).map(|it| it.place.clone()),
                    cidrs: ranges.into_iter().collect(),
                },
                accepted,
                whole,
                is_pathless,
            })
        }));
    }
}

/// Returns the addresses of the tunnels of a source, to which no path leads, if a target accepts nothing else of it.
fn pathless(
    view: &TargetView,
    source: &TargetSource,
    accepted: &Accepted,
) -> Option<BTreeSet<Cidr>> {
    let cluster = &source.member.cluster;
    let nodes = cluster.nodes.iter();
    let tunnels = nodes.filter_map(|it| Some(Cidr::host(it.kilo.wireguard_ip()?.address)));
    let tunnels: BTreeSet<Cidr> = tunnels.chain(cluster.anchored.subnet).collect();
    let mut given = source.member.given().filter(|it| view.can_route(*it));
    given.all(|it| tunnels.contains(&it) || !accepted.takes(it)).then_some(tunnels)
}
