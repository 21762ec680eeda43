//! Words for declared ranges that undo a selector.

use super::UNDONE_SELECTOR;
use super::undone_selector::{SERVICES, UndoneSelector, undone, unselected};
use crate::diagnostic::{Quoted, Severity};
use crate::fleet::Member;
use crate::rules::Finding;
use crate::text::listed;

/// The number of ranges that a help text names.
const NAMED_RANGES: usize = 16;

/// Returns findings about the selector of a cluster.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let unselected = unselected(member);
    undone(member, &unselected)
        .iter()
        .map(|it| finding(member, it))
        .collect()
}

fn finding(member: &Member, undone: &UndoneSelector) -> Finding {
    let UndoneSelector {
        field,
        range,
        reached,
    } = undone;
    let those: Vec<String> = reached
        .iter()
        .map(|it| format!("{} ({})", Quoted(it.node), it.cidr))
        .collect();
    let message = format!(
        "{} in `{field}` contains addresses of nodes that `nodeSelector` excludes: {}",
        range.cidr,
        listed(those)
    );
    let mut finding = Finding::on_cluster(&UNDONE_SELECTOR, &member.entry.name, message);
    if !reached.iter().any(|it| it.is_pods) {
        // A declared LAN usually has more nodes than those that take part.
        finding.severity = Severity::Notice;
    }
    finding
        .at(range.place.clone(), "declared here")
        .at(member.entry.place.key("nodeSelector"), "excludes the nodes")
        .help(remedy(undone))
}

fn remedy(undone: &UndoneSelector) -> String {
    let (cidr, field) = (undone.range.cidr, undone.field);
    let rest = cidr.without(undone.reached.iter().map(|it| &it.cidr));
    if field == SERVICES || NAMED_RANGES < rest.len() {
        return format!(
            "select these nodes, or replace `{cidr}` with ranges that do not contain their \
             addresses"
        );
    }
    if rest.is_empty() {
        return format!("remove `{cidr}` from `{field}`, or select these nodes");
    }
    let rest: Vec<String> = rest.iter().map(|it| format!("`{it}`")).collect();
    format!(
        "replace `{cidr}` in `{field}` with {}, or select these nodes",
        rest.join(", ")
    )
}
