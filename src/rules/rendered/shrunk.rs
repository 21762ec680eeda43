//! Sources of which targets lose many Peers, but not all.

use super::{SHRUNK_SOURCE, members};
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::membership::{ExcludedNode, ExcludedReason};
use crate::name::peer_name;
use crate::rules::nodes::NODE_NOT_SELECTED;
use crate::rules::plan::within;
use crate::rules::{Finding, bare};
use crate::text::{listed, share};
use crate::tree_diff::{Case, Shrunk};

/// Returns the finding about Peers that go, given what cuts their target off.
pub(super) fn finding(
    case: &Case<Shrunk>,
    fleet: &Fleet,
    cut_off: Option<FindingCause>,
) -> Finding {
    let Shrunk { source, before, gone } = &case.what;
    let message = format!(
        "{} would be removed: {} {}",
        share(gone.len(), *before, "Peer"),
        listed(gone.iter().map(|it| bare(it))),
        within(&case.targets)
    );
    let finding = Finding::on_named(&SHRUNK_SOURCE, source, message)
        .at(case.place.clone(), "would be removed");
    let finding = finding.with_cause(cut_off.or_else(|| deselected(&case.what, fleet)));
    match excluded(fleet, source, gone) {
        Some((_, node)) => finding.at(node.place.key("name"), "left out").help(
            "check why these nodes are left out and whether the snapshot is correct, unless the nodes \
             were removed",
        ),
        None => finding.help(format!(
            "if these nodes still exist, run `clustermesh snapshot {}`",
            bare(source)
        )),
    }
}

/// Returns the first node that is left out and had one of these Peers.
fn excluded<'f>(
    fleet: &'f Fleet,
    source: &str,
    gone: &[String],
) -> Option<(&'f Member<'f>, &'f ExcludedNode)> {
    members(fleet, source).find_map(|member| {
        let (mesh, cluster) = (&member.mesh.name, &member.entry.name);
        let is_meant = member.membership.excluded.iter().find(|it| {
            let name = peer_name(mesh.as_str(), cluster.as_str(), &it.node);
            gone.contains(&name)
        });
        is_meant.map(|it| (member, it))
    })
}

/// Returns the finding about nodes that their entry does not select, if they had the Peers that go.
fn deselected(shrunk: &Shrunk, fleet: &Fleet) -> Option<FindingCause> {
    let (member, node) = excluded(fleet, &shrunk.source, &shrunk.gone)?;
    let is_deselected = node.reason == ExcludedReason::NotSelected;
    is_deselected.then(|| FindingCause::of(&NODE_NOT_SELECTED, &member.entry.name))
}
