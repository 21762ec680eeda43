//! Does what was declared hold for any node?

use crate::diagnostic::FindingCause;
use crate::fleet::Member;
use crate::membership::Contradicted;

rules! {
    "Declarations that do not match the nodes" in "nodes" about Plan;
    NODE_NOT_SELECTED = "node-not-selected" Notice;
    SILENT_CLUSTER = "silent-cluster" Warning;
    CONTRADICTED = "contradicted-declaration" Warning;
    CUT_OFF = "cut-off-cluster" Error;
}

/// Returns a wrong label of locations as the cause of something else.
pub(super) fn contradicted_label(member: &Member) -> Option<FindingCause> {
    contradicted(member, |it| *it == Contradicted::TopologyLabel)
}

/// Returns a contradiction as the cause of something else, if the cluster has one of that kind.
pub(super) fn contradicted(
    member: &Member,
    is_meant: impl Fn(&Contradicted) -> bool,
) -> Option<FindingCause> {
    let mut found = member.membership.contradictions.iter();
    let is_found = found.any(|it| is_meant(&it.what));
    is_found.then(|| FindingCause::of(&CONTRADICTED, &member.entry.name))
}
