//! Nodes that anchors name: their segments, and why some of them cannot carry anything.

use super::carrier::Carrier;
use super::contenders::Contender;
use super::withheld::{AnchorProblem, TargetReason, UnknownAnchor};
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::membership::Unready;
use crate::mesh::Named;

/// Returns the place of the segment of a node: the one that it leads, else the one that it is in, also if its own ranges
/// are left out.
pub(super) fn position(source: &Member, left: &[Carrier], node: &str) -> Option<usize> {
    let leads = |it: &Carrier| it.candidate.leader.as_str() == node;
    let name = |id: NodeId| &source.cluster.nodes[id].node.name;
    let mut segments = source.cluster.segments.formed.iter();
    left.iter().position(leads).or_else(|| {
        let segment = segments.find(|it| it.members.iter().any(|it| name(*it) == node))?;
        let leader = name(segment.leader);
        left.iter().position(|it| it.candidate.leader.as_str() == leader)
    })
}

/// Reports a named node that cannot carry anything, once for each line that names it.
pub(super) fn report(
    source: &Member,
    named: &Named,
    problem: Option<AnchorProblem>,
    reasons: &mut Vec<TargetReason>,
) {
    let is_reported = |it: &TargetReason| matches!(it, TargetReason::UnknownAnchor(it) if it.place == named.place);
    if let Some(problem) = problem
        && !reasons.iter().any(is_reported)
    {
        reasons.push(TargetReason::UnknownAnchor(UnknownAnchor {
            node: named.name.clone(),
            place: named.place.clone(),
            node_place: source.node_place(&named.name),
            problem,
        }));
    }
}

/// Returns the reason why a named node cannot carry anything, if it cannot.
pub(super) fn problem(
    source: &Member,
    named: &Named,
    contender: Option<Contender>,
) -> Option<AnchorProblem> {
    let mut candidates = source.membership.candidates.iter();
    let mut excluded = source.membership.excluded.iter();
    let node = source.node(&named.name);
    Some(match contender {
        Some(contender) if contender.is_able => return None,
        Some(Contender { is_dialled: true, unready: Some(why), .. }) => {
            AnchorProblem::NotReady(why)
        }
        None if node.is_none() => AnchorProblem::NoNode,
        None if node.is_some_and(|it| !source.entry.selector.matches(&it.labels)) => {
            AnchorProblem::NotSelected
        }
        None if node.is_some_and(|it| it.stale) => AnchorProblem::NotReady(Unready::Stale),
        None if candidates.any(|it| it.leader.as_str() == named.name)
            || excluded.any(|it| it.node == named.name) =>
        {
            AnchorProblem::LeftOut
        }
        Some(_) | None => AnchorProblem::NoSegment,
    })
}
