//! Words for two entries of which something was exchanged: the nodes of each are in the ranges of the other.

use super::nodes::CONTRADICTED;
use super::ranges::OVERLAPPING_SUBNET;
use super::{Finding, Rule};
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::membership::Contradicted;
use crate::mesh::Networks;

/// The rules about one of two such clusters.
static RULES: [&Rule; 2] = [&CONTRADICTED, &OVERLAPPING_SUBNET];

/// A part of two entries that was exchanged.
struct ExchangedPart {
    field: &'static str,
    /// The addresses that are in the range of the other cluster.
    addresses: &'static str,
    help: &'static str,
}

/// Adds the findings about such entries, and makes those about the clusters follow from them.
pub(super) fn add(fleet: &Fleet, findings: &mut Vec<Finding>) {
    let contradicted: Vec<&Member> =
        fleet.members().iter().filter(|it| !it.membership.contradictions.is_empty()).collect();
    for (index, one) in contradicted.iter().enumerate() {
        let others = contradicted.iter().skip(index + 1);
        let mut others = others.filter(|other| one.mesh.place == other.mesh.place);
        let Some((other, part)) = others.find_map(|it| Some((it, exchanged(one, it)?))) else {
            continue;
        };
        let names = [one, other].map(|it| it.entry.name.as_str());
        let is_meant = |it: &&mut Finding| {
            let is_of_pair = it.cluster.as_deref().is_some_and(|it| names.contains(&it));
            RULES.contains(&it.rule) && is_of_pair
        };
        for finding in findings.iter_mut().filter(is_meant) {
            finding.cause = Some(FindingCause { rule: &CONTRADICTED, cluster: None, node: None });
        }
        let places = [one, other].map(|it| (it.entry.place.key(part.field), ""));
        let ([one, other], addresses) = (names, part.addresses);
        let message = format!(
            "the {addresses} of `{one}` are in the ranges of `{other}`, and the {addresses} of `{other}` in the ranges \
             of `{one}`"
        );
        let finding = Finding::new(&CONTRADICTED, message).at_each(places);
        findings.push(finding.help(part.help));
    }
}

/// Returns what makes both entries right if it is exchanged.
fn exchanged(one: &Member, other: &Member) -> Option<ExchangedPart> {
    let are_exchanged = |what| is_in_other(one, other, what) && is_in_other(other, one, what);
    let is_flat = [one, other].iter().any(|it| matches!(it.entry.networks, Networks::Flat { .. }));
    match (are_exchanged(Contradicted::PodRanges), are_exchanged(Contradicted::WireguardRange)) {
        (true, true) => Some(ExchangedPart {
            field: "name",
            addresses: "nodes",
            help: "exchange the two names, or restore the two snapshots if these were exchanged",
        }),
        (true, false) if !is_flat => Some(ExchangedPart {
            field: "podCIDRs",
            addresses: "pod CIDRs",
            help: "exchange the two `podCIDRs`",
        }),
        (false, true) if !is_flat => Some(ExchangedPart {
            field: "wireguardCIDR",
            addresses: "WireGuard addresses",
            help: "exchange the two `wireguardCIDR`",
        }),
        _ => None,
    }
}

/// Returns whether most nodes of a cluster contradict a line with addresses that another cluster declares for the same.
fn is_in_other(member: &Member, other: &Member, what: Contradicted) -> bool {
    let ranges = match (&other.entry.networks, what) {
        (Networks::Typed { wireguard, .. }, Contradicted::WireguardRange) => {
            std::slice::from_ref(wireguard)
        }
        (Networks::Typed { pods, .. }, _) => pods.as_slice(),
        (Networks::Flat { allowed }, _) => allowed.as_slice(),
    };
    let mut contradictions = member.membership.contradictions.iter();
    let address = contradictions.find(|it| it.what == what).and_then(|it| it.outside);
    address.is_some_and(|address| ranges.iter().any(|it| it.cidr.holds(address)))
}
