//! Undone selectors: nodes that one leaves out, and that others reach nevertheless.

use std::collections::BTreeMap;

use super::UNDONE_SELECTOR;
use crate::diagnostic::{Quoted, Severity};
use crate::fleet::Member;
use crate::membership::ExcludedReason;
use crate::mesh::{Networks, Range};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::rules::Finding;
use crate::text::listed;

/// The number of ranges that a help text names.
const NAMED_RANGES: usize = 16;

/// The field of a range that cannot be split.
const SERVICES: &str = "serviceCIDR";

/// The field of Kilo's subnet, which an anchor can carry as a whole.
const SUBNET: &str = "wireguardCIDR";

/// A range or address of an unselected node.
struct UnselectedRange<'a> {
    node: &'a str,
    /// The range.
    cidr: Cidr,
    /// Whether its pods have it.
    is_pods: bool,
}

/// A declared range of a cluster as a whole with addresses of nodes that its `nodeSelector` leaves
/// out: one node carries such a range for all of them.
struct UndoneSelector<'m, 'u> {
    /// The field that declares the range.
    field: &'static str,
    range: &'m Range,
    /// The ranges of unselected nodes in it; at least one.
    reached: Vec<&'u UnselectedRange<'m>>,
}

/// Returns findings about the declared ranges that undo the selector of a cluster.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let unselected = unselected(member);
    let ranges: Prefixes<()> = member.shared().map(|it| (it, ())).collect();
    let mut reached: BTreeMap<Cidr, Vec<&UnselectedRange>> = BTreeMap::new();
    for held in &unselected {
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
            let undone = UndoneSelector { field, range, reached };
            Some(undone.finding(member))
        })
        .collect()
}

/// Returns the pod CIDRs and addresses of the nodes that only the selector leaves out.
fn unselected<'m>(member: &'m Member) -> Vec<UnselectedRange<'m>> {
    let excluded = member
        .membership
        .excluded
        .iter()
        .filter(|it| matches!(it.reason, ExcludedReason::NotSelected));
    let mut all = Vec::new();
    for node in excluded.filter_map(|it| member.cluster.node(&it.node)) {
        let range =
            |cidr: Cidr, is_pods: bool| UnselectedRange { node: &node.node.name, cidr, is_pods };
        all.extend(node.kilo.pods().map(|it| range(it, true)));
        let tunnel = node.kilo.wireguard_ip().map(|it| it.address);
        let addresses = node.kilo.internal_address().into_iter().chain(tunnel);
        all.extend(addresses.map(|it| range(Cidr::host(it), false)));
    }
    all
}

/// Returns the field that declares a range for the cluster as a whole, and its place there.
fn declared<'m>(member: &'m Member, cidr: Cidr) -> Option<(&'static str, &'m Range)> {
    let is_meant = |it: &&Range| it.cidr == cidr;
    match &member.entry.networks {
        Networks::Typed { wireguard, services, additional, .. } => {
            let services = services.iter().map(|it| (SERVICES, it));
            let additional = additional.iter().map(|it| ("additionalCIDRs", it));
            let mut all = services.chain(additional).chain([(SUBNET, wireguard)]);
            all.find(|it| is_meant(&it.1))
        }
        Networks::Flat { allowed } => Some(("allowedNetworks", allowed.iter().find(is_meant)?)),
    }
}

impl UndoneSelector<'_, '_> {
    fn finding(&self, member: &Member) -> Finding {
        let those: Vec<String> =
            self.reached.iter().map(|it| format!("{} ({})", Quoted(it.node), it.cidr)).collect();
        let message = format!(
            "{} in `{}` contains addresses of nodes that `nodeSelector` leaves out: {}",
            self.range.cidr,
            self.field,
            listed(those)
        );
        let mut finding = Finding::on_cluster(&UNDONE_SELECTOR, &member.entry.name, message);
        if !self.reached.iter().any(|it| it.is_pods) {
            // A declared LAN usually has more nodes than those that take part.
            finding.severity = Severity::Notice;
        }
        finding
            .at(self.range.place.clone(), "declared here")
            .at(member.entry.field("nodeSelector"), "excludes the nodes")
            .help(self.remedy(member.cluster.anchored.subnet))
    }

    /// Returns the remedy, given Kilo's subnet if an anchor carries it.
    fn remedy(&self, subnet: Option<Cidr>) -> String {
        if subnet == Some(self.range.cidr) {
            return "write `wireguardAddresses: PerNode`, or select these nodes".to_owned();
        }
        let (cidr, field) = (self.range.cidr, self.field);
        let rest = cidr.without(self.reached.iter().map(|it| &it.cidr));
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
        format!("replace `{cidr}` in `{field}` with {}, or select these nodes", rest.join(", "))
    }
}
