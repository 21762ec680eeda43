//! Pods: declared pod ranges that one segment carries as a whole.

use super::carrier::Carrier;
use super::named;
use super::withheld::{AnchorProblem, PerNodePods, TargetReason};
use crate::fleet::Member;
use crate::mesh::Anchor;
use crate::net::Cidr;

/// Gives each range to the segment of the first node that its anchor names and that Kilo counts, instead of the pod
/// CIDRs of that segment, and returns those that are given.
///
/// If no named node is left, the pod CIDRs of all nodes stay: no location gets the range that people have not
/// chosen. Within a location, Kilo's election decides who leads, and so who carries it.
pub(super) fn carry(
    source: &Member,
    left: &mut [Carrier],
    ranges: Vec<Cidr>,
    reasons: &mut Vec<TargetReason>,
) -> Vec<Cidr> {
    if left.is_empty() {
        return Vec::new();
    }
    let mut given = Vec::new();
    let mut per_node: Vec<(&Anchor, Vec<Cidr>)> = Vec::new();
    for range in ranges {
        let Some(anchor) = Anchor::of(&source.entry.anchors, range) else {
            continue;
        };
        let mut first = None;
        for node in &anchor.nodes {
            let at = named::position(source, left, &node.name);
            let unready = at.and_then(|it| left.get(it)?.candidate.unready);
            let problem = match (at, unready) {
                (_, Some(why)) => Some(AnchorProblem::NotReady(why)),
                (Some(_), None) => None,
                (None, None) => named::problem(source, node, None),
            };
            let at = at.filter(|_| problem.is_none());
            named::report(source, node, problem, reasons);
            first = first.or(at);
        }
        // A pod CIDR that is the whole range stays with its node: a target must not get one range twice.
        let is_whole = |it: &Carrier| it.pods.contains(&range);
        if first.is_some() && left.iter().any(is_whole) {
            continue;
        }
        match first.and_then(|it| left.get_mut(it)) {
            Some(carrier) => {
                carrier.pods.retain(|it| !range.contains(*it));
                carrier.pods.insert(0, range);
                given.push(range);
            }
            None => match per_node.last_mut().filter(|it| it.0 == anchor) {
                Some((_, ranges)) => ranges.push(range),
                None => per_node.push((anchor, vec![range])),
            },
        }
    }
    reasons.extend(per_node.into_iter().map(|(anchor, ranges)| {
        TargetReason::PerNodePods(PerNodePods { ranges, place: anchor.place.clone() })
    }));
    given
}
