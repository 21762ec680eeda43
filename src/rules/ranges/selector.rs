//! Selectors: nodes that one leaves out, and that others reach all the same.

use std::collections::BTreeMap;

use super::UNDONE_SELECTOR;
use crate::diagnostic::{Quoted, Severity};
use crate::fleet::Member;
use crate::membership::ExcludedReason;
use crate::mesh::{Networks, Range};
use crate::net::{Cidr, Nest};
use crate::rules::Finding;
use crate::text::listed;

/// The number of ranges that a help text names.
const NAMED_RANGES: usize = 16;

/// The field of a range that cannot be split.
const SERVICES: &str = "serviceCIDR";

/// A range or address of an unselected node.
struct SelectedRange<'a> {
    node: &'a str,
    cidr: Cidr,
    is_pods: bool,
}

/// Returns the declared ranges of the cluster as a whole that contain addresses of nodes which its
/// `nodeSelector` leaves out: one node carries such a range for all of them.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let unselected = unselected(member);
    if unselected.is_empty() {
        return Vec::new();
    }
    let shared = &member.cluster.shared;
    let nest: Nest<()> = shared.iter().map(|it| (*it, ())).collect();
    let mut reached: BTreeMap<Cidr, Vec<&SelectedRange>> = BTreeMap::new();
    for held in &unselected {
        let around = nest.around(held.cidr).next();
        for (range, ()) in around.into_iter().chain(nest.inside(held.cidr)) {
            let known = reached.entry(range).or_default();
            if known.last().is_none_or(|it| !std::ptr::eq(*it, held)) {
                known.push(held);
            }
        }
    }
    let mut findings = Vec::new();
    for (range, held) in reached {
        findings.extend(
            declared(member, range).map(|(field, range)| undone(member, field, range, &held)),
        );
    }
    findings
}

/// Returns the pod CIDRs and addresses of the nodes that only the selector leaves out.
fn unselected<'a>(member: &'a Member) -> Vec<SelectedRange<'a>> {
    let excluded = member
        .membership
        .excluded
        .iter()
        .filter(|it| matches!(it.reason, ExcludedReason::NotSelected));
    let mut all = Vec::new();
    for node in excluded.filter_map(|it| member.cluster.node(&it.node)) {
        let held = |cidr: Cidr, is_pods: bool| SelectedRange {
            node: &node.node.name,
            cidr,
            is_pods,
        };
        all.extend(node.kilo.pods().map(|it| held(it, true)));
        let address = node.kilo.internal_address();
        all.extend(address.map(|it| held(Cidr::host(it), false)));
    }
    all
}

/// Returns the field that declares a range for the cluster as a whole, and its place there.
fn declared<'a>(member: &'a Member, cidr: Cidr) -> Option<(&'static str, &'a Range)> {
    let is_meant = |it: &&Range| it.cidr == cidr;
    match &member.entry.networks {
        Networks::Typed {
            services,
            additional,
            ..
        } => {
            let service = services.iter().find(is_meant).map(|it| (SERVICES, it));
            service.or_else(|| Some(("additionalCIDRs", additional.iter().find(is_meant)?)))
        }
        Networks::Flat { allowed } => Some(("allowedNetworks", allowed.iter().find(is_meant)?)),
    }
}

fn undone(member: &Member, field: &str, range: &Range, held: &[&SelectedRange]) -> Finding {
    let cidr = range.cidr;
    let those: Vec<String> = held
        .iter()
        .map(|it| format!("{} ({})", Quoted(it.node), it.cidr))
        .collect();
    let message = format!(
        "{cidr} in `{field}` contains addresses of nodes that `nodeSelector` excludes: {}",
        listed(those)
    );
    let mut finding = Finding::on_cluster(&UNDONE_SELECTOR, &member.entry.name, message);
    if !held.iter().any(|it| it.is_pods) {
        // A declared LAN usually has more nodes than those that take part.
        finding.severity = Severity::Notice;
    }
    let finding = finding
        .at(range.place.clone(), "declared here")
        .at(member.entry.place.key("nodeSelector"), "excludes the nodes");
    finding.help(remedy(field, cidr, held))
}

fn remedy(field: &str, cidr: Cidr, held: &[&SelectedRange]) -> String {
    let rest = cidr.without(held.iter().map(|it| &it.cidr));
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
