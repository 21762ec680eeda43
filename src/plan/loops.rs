//! Loops: endpoints in ranges of other clusters, so that packets of a tunnel would have to go
//! through one (`kilo.md` §2.6), or would not leave the target.

use std::sync::Arc;

use super::conflicts::Conflicting;
use super::decision::Decisions;
use super::own_loops::Inside;
use super::target_view::{TargetSource, TargetView};
use super::withheld::{LoopingPeer, TargetReason, WithheldEndpoint};
use crate::fleet::Member;
use crate::net::Cidr;

/// Leaves out Peers of a source whose endpoints are in ranges that other sources declare, or in ranges in which only
/// the target has addresses.
///
/// Declarations take precedence over claims of nodes, in both forms of an entry: so no node can take
/// a range from another cluster, or have another cluster's Peer left out.
pub(super) fn settle(view: &TargetView, source: &TargetSource, decisions: &mut Decisions) {
    for (cluster, meetings) in view.conflicts.endpoints(source.id) {
        let Some(owner) = view.source(cluster) else {
            continue;
        };
        for conflict in meetings {
            if let Conflicting::Endpoint(candidate, address) = conflict.what
                && view.could_reach(owner, address)
            {
                let inside = Inside { candidate, address };
                exclude_candidate(source, owner.member, conflict.range.cidr, inside, decisions);
            }
        }
    }
    // The guard of the target refuses these endpoints, and all Peers with them.
    let target = &source.own.entry.name;
    for conflict in view.conflicts.foreign_endpoints(source.id, target) {
        if let Conflicting::Endpoint(candidate, address) = conflict.what {
            let inside = Inside { candidate, address };
            exclude_candidate(source, source.own, conflict.range.cidr, inside, decisions);
        }
    }
}

fn exclude_candidate(
    source: &TargetSource,
    owner: &Member,
    range: Cidr,
    inside: Inside,
    decisions: &mut Decisions,
) {
    let decision = decisions.entry(source.id).or_default();
    let candidate = &source.member.membership.candidates[inside.candidate];
    if decision.excluded.insert(inside.candidate) {
        decision.reasons.push(Arc::new(TargetReason::LoopingPeer(LoopingPeer {
            node: candidate.leader.clone(),
            endpoint: WithheldEndpoint {
                address: inside.address,
                place: source.member.endpoint_place(candidate),
            },
            range,
            owner: owner.entry.name.clone(),
            range_place: owner.declaration(range).map(|it| it.place.clone()),
        })));
    }
}
