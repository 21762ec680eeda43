//! Rangeless Peers: those that are not rendered because all their ranges are withheld.

use std::sync::Arc;

use super::decision::Decisions;
use super::target_view::{TargetSource, TargetView};
use super::withheld::TargetReason;
use crate::membership::PeerCandidate;
use crate::net::Cidr;

/// Counts the Peers that have no ranges left because of claims of nodes, of the source or of
/// the target. The nodes of the target also determine which families its Kilo can route.
pub(super) fn count(view: &TargetView, source: &TargetSource, decisions: &mut Decisions) {
    let own_loops = view.conflicts.own_loops(source.id);
    let decision = decisions.get(&source.id);
    if decision.is_none() && own_loops.withheld.is_empty() && view.families.len() < 2 {
        return;
    }
    let is_withheld = |it: &Cidr| {
        let of_target = decision.is_some_and(|decision| decision.withheld.contains(it));
        of_target || own_loops.withheld.contains(it)
    };
    let is_bare = |candidate: &PeerCandidate| {
        // `localNetworks` are not claims of nodes.
        let is_local = |it: &Cidr| {
            source.own.entry.local_networks.iter().any(|network| network.cidr.contains(*it))
        };
        // The only host of an external peer carries all of its ranges.
        let is_host = source.member.entry.name.is_external();
        let mut claims = candidate
            .claims()
            .chain(source.member.shared().filter(|_| is_host))
            .filter(|it| !is_local(it))
            .filter(|it| view.families.contains(&it.family()))
            .peekable();
        claims.peek().is_some() && claims.all(|it| !view.can_route(it) || is_withheld(&it))
    };
    let bare = source.member.membership.candidates.numbered();
    let bare = bare.filter(|(index, candidate)| {
        let is_dropped = decision.is_some_and(|decision| decision.excluded.contains(index));
        !is_dropped && !own_loops.excluded.contains(index) && is_bare(candidate)
    });
    let peers = bare.count();
    if 0 < peers {
        let decision = decisions.entry(source.id).or_default();
        let reason = TargetReason::Rangeless { peers };
        decision.reasons.push(Arc::new(reason));
    }
}
