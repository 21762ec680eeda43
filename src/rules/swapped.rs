//! Words for two entries whose names were exchanged: the nodes of each are in the ranges of the other.

use std::net::IpAddr;

use super::nodes::CONTRADICTED;
use super::ranges::OVERLAPPING_SUBNET;
use super::{Finding, Rule};
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::membership::Contradicted;

/// The rules about one of two such clusters.
static RULES: [&Rule; 2] = [&CONTRADICTED, &OVERLAPPING_SUBNET];

/// Adds the findings about such entries, and makes those about the clusters follow from them.
pub(super) fn add(fleet: &Fleet, findings: &mut Vec<Finding>) {
    let outside: Vec<(&Member, IpAddr)> =
        fleet.members().iter().filter_map(|it| Some((it, outside(it)?))).collect();
    for (index, (one, of_one)) in outside.iter().enumerate() {
        let mut others = outside.iter().skip(index + 1);
        let is_swapped = |(other, of_other): &&(&Member, IpAddr)| {
            one.mesh.place == other.mesh.place
                && declares(other, *of_one)
                && declares(one, *of_other)
        };
        let Some((other, _)) = others.find(is_swapped) else {
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
        let places = [one, other].map(|it| (it.entry.place.key("name"), ""));
        let [one, other] = names;
        let message = format!(
            "the nodes of `{one}` are in the ranges of `{other}`, and the nodes of `{other}` in the ranges of `{one}`"
        );
        let finding = Finding::new(&CONTRADICTED, message).at_each(places);
        findings.push(finding.help("exchange the two names"));
    }
}

/// Returns a pod address of a cluster that its entry does not declare, if most nodes have such addresses.
fn outside(member: &Member) -> Option<IpAddr> {
    let mut contradictions = member.membership.contradictions.iter();
    contradictions.find(|it| it.what == Contradicted::PodRanges)?.outside
}

fn declares(member: &Member, address: IpAddr) -> bool {
    member.entry.networks.all().iter().any(|it| it.cidr.holds(address))
}
