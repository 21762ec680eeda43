//! Peers and ranges that a plan leaves out because of nodes' claims. `verify` warns about them and does
//! not fail.

use crate::fleet::{Fleet, Member};
use crate::membership::{EndpointProblem, ExcludedReason, PeerCandidate};
use crate::name::{ClusterName, NodeName};
use crate::net::Cidr;
use crate::plan::{
    Captured, CapturedOutcome, LocalAddress, LoopingPeer, Plan, TargetReason, Withheld,
};
use crate::proof::excused::Excused;

/// Returns what is left out for nodes' claims, unless most of a cluster's nodes agree: then it is what
/// people declare that is wrong.
pub fn excused(fleet: &Fleet, plan: &Plan) -> Excused {
    let mut excused = Excused::default();
    for member in fleet.members() {
        membership(member, &mut excused);
    }
    for (target, source) in plan.lost_to_one() {
        let ranges = fleet.memberships(source).flat_map(|it| it.entry.networks.all());
        ranges.for_each(|it| excused.range(target, source, it.cidr));
    }
    for withheld in &plan.withheld {
        let (target, source) = (&withheld.target, &withheld.source);
        let member = |cluster: &ClusterName| fleet.memberships(cluster).next();
        match &*withheld.reason {
            TargetReason::OwnKey { node, .. } | TargetReason::SharedKey { node, .. } => {
                let ranges = given(fleet, source, node);
                ranges.for_each(|it| excused.range(target, source, it));
            }
            TargetReason::LoopingPeer(peer) => {
                let excluded = plan.withheld.iter().filter(|it| {
                    let is_looping = matches!(&*it.reason, TargetReason::LoopingPeer(_));
                    is_looping && it.target == *target && it.source == *source
                });
                let all = member(source).map_or(0, |it| it.membership.candidates.len());
                if is_minority(excluded.count(), all) {
                    let ranges = given(fleet, source, &peer.node);
                    ranges.for_each(|it| excused.range(target, source, it));
                }
            }
            TargetReason::Captured(captured) => {
                let all = member(target).map_or(0, |it| it.membership.local_nodes.len());
                let ranges = lacking(captured, is_minority(captured.nodes, all));
                ranges.for_each(|it| excused.range(target, source, it));
            }
            TargetReason::LoopingRanges(looping) => {
                let all = member(&looping.cluster).map_or(0, |it| it.cluster.nodes.len());
                if is_minority(looping.endpoints, all) {
                    let ranges = &looping.ranges.cidrs;
                    for range in ranges {
                        excused.range(target, source, *range);
                    }
                }
            }
            TargetReason::NoAnchor { ranges } => {
                let is_of_set = |it: &&Withheld| it.target == *target && it.source == *source;
                let mut of_set = plan.withheld.iter().filter(is_of_set);
                if member(source)
                    .is_some_and(|it| lost_anchors(it) || of_set.any(|of| withholds_anchor(it, of)))
                {
                    for range in ranges {
                        excused.range(target, source, *range);
                    }
                }
            }
            _ => {}
        }
    }
    excused
}

/// Returns whether nodes that others could dial are left out of a cluster for what they report.
fn lost_anchors(member: &Member) -> bool {
    let mut excluded = member.membership.excluded.iter();
    excluded.any(|it| {
        let node = member.cluster.node(&it.node);
        match &it.reason {
            ExcludedReason::NotSelected => false,
            ExcludedReason::EndpointInvalid { error, .. } => {
                *error != EndpointProblem::UndeclaredName
            }
            _ => node.is_some_and(|it| it.checked.endpoint().is_some()),
        }
    })
}

/// Returns whether a target does not get the Peer of a node that others can dial, because of claims of nodes.
fn withholds_anchor(member: &Member, withheld: &Withheld) -> bool {
    let (TargetReason::OwnKey { node, .. }
    | TargetReason::SharedKey { node, .. }
    | TargetReason::LoopingPeer(LoopingPeer { node, .. })) = &*withheld.reason
    else {
        return false;
    };
    let mut candidates = member.membership.candidates.iter();
    candidates.any(|it| it.leader == *node && it.endpoint.is_some())
}

/// Excuses ranges that no cluster gets, unless most nodes of the cluster contradict its entry. A single node may always be
/// wrong.
fn membership(member: &Member, excused: &mut Excused) {
    let membership = &member.membership;
    if membership.contradictions.iter().any(|it| 1 < it.against) {
        return;
    }
    let cluster = &member.entry.name;
    for excluded in &membership.excluded {
        excused.node(cluster, &excluded.node);
    }
    for withheld in &membership.withheld {
        if let Ok(range) = withheld.range.parse() {
            excused.withheld(cluster, &withheld.node, range);
        }
    }
}

/// Returns whether this many nodes are too few to count for their cluster; a single one may always
/// be wrong.
fn is_minority(count: usize, all: usize) -> bool {
    2 * count <= all || all == 1
}

/// Returns the ranges of a node with a Peer.
pub(super) fn given<'f>(
    fleet: &'f Fleet<'f>,
    cluster: &'f ClusterName,
    leader: &'f NodeName,
) -> impl Iterator<Item = Cidr> + 'f {
    fleet
        .memberships(cluster)
        .flat_map(|it| &it.membership.candidates)
        .filter(move |it| it.leader == *leader)
        .flat_map(PeerCandidate::claims)
}

/// Returns the ranges that a target does not get because of its own nodes: hosts always, networks
/// only if a few nodes report them.
fn lacking(captured: &Captured, is_minority: bool) -> impl Iterator<Item = Cidr> {
    let is_address = !matches!(captured.own, LocalAddress::Lan(_));
    let lacking = match &captured.outcome {
        CapturedOutcome::Withheld => captured.ranges.cidrs.clone(),
        CapturedOutcome::Without(holes) => holes.clone(),
        CapturedOutcome::Kept => Vec::new(),
    };
    let is_excused = move |it: &Cidr| is_minority || is_address && it.is_host();
    lacking.into_iter().filter(is_excused)
}
