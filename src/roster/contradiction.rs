//! Contradictions: what a person wrote and more than half of the nodes deny.

use super::reason::Reason;
use super::survey::Candidate;
use super::{Contradiction, Declared};
use crate::granularity::Granularity;
use crate::mesh::{Entry, Networks};
use crate::place::Place;

/// Returns the granularity that more than half of the nodes name; those that say nothing count too.
///
/// Nodes that could be peered in no granularity have no say. Whether their ranges are the declared
/// ones does not matter here: a slip in these must not look like another granularity.
pub(super) fn vote(candidates: &[Candidate]) -> Option<Granularity> {
    let mut voters: Vec<&Candidate> = voters(candidates).collect();
    if voters.is_empty() {
        // Nobody can be peered; at least the reasons shall fit what the nodes say.
        voters.extend(candidates.iter().filter(|it| it.kilo.granularity.is_some()));
    }
    let choices = [Granularity::Location, Granularity::Full, Granularity::Cross];
    choices.into_iter().find(|&choice| {
        let agreeing = voters
            .iter()
            .filter(|it| it.kilo.granularity == Some(choice));
        voters.len() < 2 * agreeing.count()
    })
}

/// Returns the nodes that have a say in how their cluster is cut.
pub(super) fn voters<'a>(
    candidates: &'a [Candidate<'a>],
) -> impl Iterator<Item = &'a Candidate<'a>> {
    candidates
        .iter()
        .filter(|it| !it.kilo.stale && it.checked.is_sound())
}

/// Returns the lines of an entry that more than half of its nodes contradict.
pub(super) fn contradictions(
    entry: &Entry,
    candidates: &[Candidate],
    voted: Option<Granularity>,
) -> Vec<Contradiction> {
    let selected: Vec<&Candidate> = candidates
        .iter()
        .filter(|it| entry.selector.matches(&it.node.labels))
        .collect();
    let place = &entry.place;
    let (pods, wireguard) = match &entry.networks {
        Networks::Typed { .. } => (place.key("podCIDRs"), place.key("wireguardCIDR")),
        Networks::Flat { .. } => {
            let allowed = place.key("allowedNetworks");
            (allowed.clone(), allowed)
        }
    };
    let mut found = vec![pod_ranges(&selected, pods)];
    found.push(wireguard_range(&selected, wireguard));
    found.push(granularity(entry, candidates, voted));
    found.push(node_selector(entry, candidates, &selected));
    found.into_iter().flatten().collect()
}

fn pod_ranges(nodes: &[&Candidate], place: Place) -> Option<Contradiction> {
    let is_outside =
        |it: &&&Candidate| matches!(it.checked.pods, Err(Reason::PodCidrOutOfRange { .. }));
    let outside = nodes.iter().filter(is_outside).count();
    contradiction(Declared::PodRanges, place, outside, nodes.len())
}

/// Only leaders have a `WireGuard` address, so only those are counted that have.
fn wireguard_range(nodes: &[&Candidate], place: Place) -> Option<Contradiction> {
    let having = nodes.iter().filter(|it| it.kilo.has_wireguard_ip).count();
    let is_outside = |it: &&&Candidate| {
        matches!(
            it.checked.wireguard,
            Err(Reason::WireguardIpOutOfRange { .. })
        )
    };
    let outside = nodes.iter().filter(is_outside).count();
    contradiction(Declared::WireguardRange, place, outside, having)
}

fn granularity(
    entry: &Entry,
    nodes: &[Candidate],
    voted: Option<Granularity>,
) -> Option<Contradiction> {
    let declared = entry.granularity?;
    voted.filter(|voted| *voted != declared)?;
    let says: Vec<Granularity> = nodes.iter().filter_map(|it| it.kilo.granularity).collect();
    let against = says.iter().filter(|it| **it != declared).count();
    let place = entry.place.key("granularity");
    contradiction(Declared::Granularity(declared), place, against, says.len())
}

fn node_selector(
    entry: &Entry,
    nodes: &[Candidate],
    selected: &[&Candidate],
) -> Option<Contradiction> {
    if !selected.is_empty() {
        return None;
    }
    let place = entry.place.key("nodeSelector");
    contradiction(Declared::NodeSelector, place, nodes.len(), nodes.len())
}

fn contradiction(what: Declared, place: Place, against: usize, of: usize) -> Option<Contradiction> {
    (of < 2 * against).then_some(Contradiction {
        what,
        place,
        against,
        of,
    })
}
