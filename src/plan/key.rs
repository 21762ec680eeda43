//! Keys: of two Peers with one key a target gets one, and none with the key of an own node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::SourceDecision;
use super::target_view::{TargetSource, TargetView};
use super::withheld::TargetReason;
use crate::membership::PeerCandidate;
use crate::name::ClusterName;
use crate::net::Cidr;

/// The holder of a key in a target.
pub(super) type Keepers<'f> = BTreeMap<[u8; 32], (&'f ClusterName, &'f PeerCandidate)>;

/// Leaves out the candidates of a source whose keys the target must not have twice, and those that
/// neither side can dial. Sources come in order of rank.
pub(super) fn settle<'f>(
    view: &TargetView<'_, 'f>,
    source: &TargetSource<'f>,
    keepers: &mut Keepers<'f>,
    decision: &mut SourceDecision,
) {
    let own_loops = view.conflicts.own_loops(source.id);
    let mut peers = 0;
    for (index, candidate) in source.member.membership.candidates.numbered() {
        if decision.excluded.contains(&index) || own_loops.excluded.contains(&index) {
            continue;
        }
        if candidate.endpoint.is_none() && source.own.roams() {
            peers += 1;
            decision.excluded.insert(index);
        } else if gives(view, source, candidate, decision)
            && !keeps_key(view, source, candidate, keepers, decision)
        {
            decision.excluded.insert(index);
        }
    }
    if 0 < peers {
        let reason = TargetReason::NoInitiator { peers };
        decision.reasons.push(Arc::new(reason));
    }
}

/// Returns whether the target may get a candidate: for its own ranges, or as an anchor.
fn gives(
    view: &TargetView,
    source: &TargetSource,
    candidate: &PeerCandidate,
    decision: &SourceDecision,
) -> bool {
    let own_loops = view.conflicts.own_loops(source.id);
    // An external peer carries its ranges in any case.
    let is_anchor = || candidate.endpoint.is_some() || source.member.entry.name.is_external();
    let is_given = |it: Cidr| {
        view.can_route(it) && !decision.withheld.contains(&it) && !own_loops.withheld.contains(&it)
    };
    let mut pods = source.member.cluster.anchored.pods.iter().copied();
    candidate.claims().any(is_given)
        || pods.any(is_given)
        || is_anchor() && source.member.shared().any(is_given)
}

/// Settles whether the target may have a candidate's key: it is neither that of one of its own nodes,
/// regardless of rank, nor that of a Peer that ranks first.
///
/// With the key of an own node, every agent of the target would rewrite its WireGuard at each resync, and
/// the node would lose its ranges to the Peer (`kilo.md` §2.7). So a node that copies a key costs its own
/// cluster a Peer, and no node can harm another cluster.
fn keeps_key<'f>(
    view: &TargetView<'_, 'f>,
    source: &TargetSource<'f>,
    candidate: &'f PeerCandidate,
    keepers: &mut Keepers<'f>,
    decision: &mut SourceDecision,
) -> bool {
    let (member, own) = (source.member, source.own);
    let claimants = view.conflicts.fleet.claimants(&candidate.key);
    if let Some(owner) = claimants.iter().find(|it| *it.cluster == own.entry.name) {
        decision.reasons.push(Arc::new(TargetReason::OwnKey {
            node: candidate.leader.clone(),
            place: candidate.place.clone(),
            own: owner.node.to_owned(),
            own_place: owner.place.clone(),
        }));
        return false;
    }
    if claimants.is_empty() {
        return true;
    }
    if let Some((keeper, keeping)) = keepers.get(candidate.key.as_bytes()) {
        decision.reasons.push(Arc::new(TargetReason::SharedKey {
            node: candidate.leader.clone(),
            place: candidate.place.clone(),
            keeper: (*keeper).clone(),
            keeper_node: keeping.leader.clone(),
            keeper_place: keeping.place.clone(),
        }));
        return false;
    }
    keepers.insert(*candidate.key.as_bytes(), (&member.entry.name, candidate));
    true
}
