//! Words for a default of a mesh that the nodes of most of its clusters contradict: one wrong line is one finding, from
//! which those about the clusters follow.

use std::collections::{BTreeMap, BTreeSet};

use super::endpoints::{NO_ENDPOINT, UNANSWERED_PORT};
use super::nodes::CONTRADICTED;
use super::{Finding, Rule};
use crate::diagnostic::FindingCause;
use crate::fleet::Fleet;
use crate::granularity::Granularity;
use crate::name::ClusterName;
use crate::place::Place;
use crate::text::listed;

/// The rules about fields that nodes contradict.
static RULES: [&Rule; 3] = [&CONTRADICTED, &UNANSWERED_PORT, &NO_ENDPOINT];

/// The findings about clusters whose nodes contradict a default.
#[derive(Default)]
struct Contradicting {
    clusters: BTreeSet<ClusterName>,
    helps: BTreeSet<Option<String>>,
}

/// Adds the findings about defaults, and makes those about clusters follow from them.
pub(super) fn add(fleet: &Fleet, findings: &mut Vec<Finding>) {
    let mut defaults: BTreeMap<Place, Contradicting> = BTreeMap::new();
    for finding in findings.iter() {
        if let Some((cluster, place)) = contradicted(fleet, finding) {
            let of_default = defaults.entry(place).or_default();
            of_default.clusters.insert(cluster);
            of_default.helps.insert(finding.help.clone());
        }
    }
    defaults.retain(|place, Contradicting { clusters, .. }| {
        1 < clusters.len() && heirs(fleet, place).count() < 2 * clusters.len()
    });
    for finding in findings.iter_mut().filter(|it| it.cause.is_none()) {
        let place = contradicted(fleet, finding).map(|it| it.1);
        if place.is_some_and(|it| defaults.contains_key(&it)) {
            finding.cause = Some(FindingCause { rule: &CONTRADICTED, cluster: None, node: None });
        }
    }
    findings.extend(defaults.into_iter().map(|(place, by)| wrong(fleet, place, by)));
}

/// Returns the cluster of a finding, and the default that it contradicts as a whole.
fn contradicted(fleet: &Fleet, finding: &Finding) -> Option<(ClusterName, Place)> {
    let cluster: ClusterName = finding.cluster.as_ref()?.parse().ok()?;
    let has_peers = || fleet.memberships(&cluster).any(|it| !it.membership.candidates.is_empty());
    if !RULES.contains(&finding.rule) || finding.rule == &NO_ENDPOINT && has_peers() {
        return None;
    }
    let mut places = finding.labels.iter().map(|it| &it.place);
    let place = places.find(|it| it.pointer.steps().nth(1).is_some_and(|it| it == "defaults"))?;
    Some((cluster, place.clone()))
}

/// Returns the clusters that get a value from a default.
fn heirs<'f>(fleet: &'f Fleet, place: &'f Place) -> impl Iterator<Item = &'f ClusterName> {
    let field = place.pointer.steps().last().unwrap_or_default();
    let members = fleet.members().iter().filter(move |it| it.entry.field(&field) == *place);
    members.map(|it| &it.entry.name)
}

fn wrong(fleet: &Fleet, place: Place, Contradicting { clusters, helps }: Contradicting) -> Finding {
    let field = place.pointer.steps().last().unwrap_or_default();
    let message = format!(
        "the nodes of {} of {} clusters contradict the default `{field}` ({})",
        clusters.len(),
        heirs(fleet, &place).count(),
        listed(&clusters)
    );
    let members = clusters.iter().flat_map(|it| fleet.memberships(it));
    let voted: BTreeSet<Option<Granularity>> = members.map(|it| it.cluster.voted).collect();
    let help = match (&Vec::from_iter(voted)[..], helps.len(), helps.into_iter().next()) {
        (_, 1, Some(Some(help))) => help,
        ([Some(voted)], ..) if field == "granularity" => {
            format!("write `granularity: {voted}` in `spec.defaults` of the mesh")
        }
        _ => format!("correct `{field}` in `spec.defaults` of the mesh"),
    };
    Finding::new(&CONTRADICTED, message).at(place, "").help(help)
}
