//! Undone selectors: nodes that one leaves out, and that others reach nevertheless.

use std::collections::BTreeMap;

use crate::fleet::Member;
use crate::membership::ExcludedReason;
use crate::mesh::{Networks, Range};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// The field of a range that cannot be split.
pub(super) const SERVICES: &str = "serviceCIDR";

/// A range or address of an unselected node.
pub(super) struct UnselectedRange<'a> {
    /// The node.
    pub(super) node: &'a str,
    /// The range.
    pub(super) cidr: Cidr,
    /// Whether its pods have it.
    pub(super) is_pods: bool,
}

/// A declared range of a cluster as a whole with addresses of nodes that its `nodeSelector` leaves
/// out: one node carries such a range for all of them.
pub(super) struct UndoneSelector<'m, 'u> {
    /// The field that declares the range.
    pub(super) field: &'static str,
    /// The range.
    pub(super) range: &'m Range,
    /// The ranges of unselected nodes in it; at least one.
    pub(super) reached: Vec<&'u UnselectedRange<'m>>,
}

/// Returns the pod CIDRs and addresses of the nodes that only the selector leaves out.
pub(super) fn unselected<'m>(member: &'m Member) -> Vec<UnselectedRange<'m>> {
    let excluded = member
        .membership
        .excluded
        .iter()
        .filter(|it| matches!(it.reason, ExcludedReason::NotSelected));
    let mut all = Vec::new();
    for node in excluded.filter_map(|it| member.cluster.node(&it.node)) {
        let range = |cidr: Cidr, is_pods: bool| UnselectedRange {
            node: &node.node.name,
            cidr,
            is_pods,
        };
        all.extend(node.kilo.pods().map(|it| range(it, true)));
        let address = node.kilo.internal_address();
        all.extend(address.map(|it| range(Cidr::host(it), false)));
    }
    all
}

/// Returns the declared ranges that undo the selector of a cluster.
pub(super) fn undone<'m, 'u>(
    member: &'m Member,
    unselected: &'u [UnselectedRange<'m>],
) -> Vec<UndoneSelector<'m, 'u>> {
    let shared = &member.cluster.shared;
    let ranges: Prefixes<()> = shared.iter().map(|it| (*it, ())).collect();
    let mut reached: BTreeMap<Cidr, Vec<&UnselectedRange>> = BTreeMap::new();
    for held in unselected {
        let around = ranges.containing(held.cidr).next();
        for (range, ()) in around.into_iter().chain(ranges.inside(held.cidr)) {
            let known = reached.entry(range).or_default();
            if known.last().is_none_or(|it| !std::ptr::eq(*it, held)) {
                known.push(held);
            }
        }
    }
    reached
        .into_iter()
        .filter_map(|(range, reached)| {
            let (field, range) = declared(member, range)?;
            Some(UndoneSelector {
                field,
                range,
                reached,
            })
        })
        .collect()
}

/// Returns the field that declares a range for the cluster as a whole, and its place there.
fn declared<'m>(member: &'m Member, cidr: Cidr) -> Option<(&'static str, &'m Range)> {
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
