//! Location ranges: what nodes offer beside their own, by `allowed-location-ips`, and which of it is
//! ignored, dropped or contested.

use std::collections::BTreeMap;

use super::inspected_cluster::InspectedCluster;
use crate::agent::location_ranges::Outranked;
use crate::fleet::{Fleet, Member};
use crate::kilo::id::SegmentId;
use crate::net::Cidr;
use crate::plan::Plan;
use crate::snapshot::Node;
use contestants::{Contestants, Offer, offers};

mod contestants;

/// A problem of the location ranges that a node offers.
pub struct OfferProblem<'f> {
    /// The node.
    pub node: &'f Node,
    /// The problem.
    pub kind: OfferProblemKind<'f>,
    /// The changes that end a contest; none for other problems.
    pub changes: Vec<OfferChange<'f>>,
}

/// A change of the location ranges of a node.
pub struct OfferChange<'f> {
    /// The node.
    pub node: &'f Node,
    /// The ranges that nothing contests; nothing if they are too many to write.
    pub left: Option<Vec<Cidr>>,
}

/// A kind of problem of location ranges. `more` counts further ranges with the same problem.
pub enum OfferProblemKind<'f> {
    /// Kilo ignores entries that are not ranges.
    Ignored {
        /// The entries.
        entries: Vec<&'f str>,
        /// Whether any would be a range without spaces.
        is_spaced: bool,
    },
    /// Kilo drops a range because nodes of a later segment offer an overlapping one.
    Outranked(OutrankedOffer<'f>),
    /// Nodes of another location have an overlapping range of their own.
    OwnedElsewhere {
        /// The range.
        range: Cidr,
        /// The range that it overlaps.
        claim: OwnRange<'f>,
        /// Further ranges.
        more: usize,
    },
    /// Kilo drops a range because a Peer has an overlapping one.
    Foreign {
        /// The range.
        range: Cidr,
        /// The cluster of the Peer.
        owner: &'f Member<'f>,
        /// The range of the Peer.
        given: Cidr,
        /// Further ranges.
        more: usize,
    },
    /// No entry of the cluster declares the ranges.
    Undeclared(Vec<Cidr>),
}

/// A location range that Kilo drops in favour of another segment's.
pub struct OutrankedOffer<'f> {
    /// The range.
    pub range: Cidr,
    /// The overlapping range that Kilo keeps.
    pub stronger: Cidr,
    /// A node that offers it.
    pub holder: &'f Node,
    /// The key of the segment whose range is dropped.
    pub segment: &'f str,
    /// The key of the other segment.
    pub by: &'f str,
    /// Further ranges.
    pub more: usize,
    /// All ranges of the node that are dropped.
    dropped: Vec<Cidr>,
}

/// A range of a node's own.
#[derive(Clone, Copy)]
pub struct OwnRange<'f> {
    /// The range.
    pub cidr: Cidr,
    /// Its use.
    pub usage: OwnRangeUse,
    /// The node.
    pub node: &'f str,
    segment: usize,
}

/// A use of a node's own range.
#[derive(Clone, Copy)]
pub enum OwnRangeUse {
    /// Its pods.
    Pods,
    /// Its internal address.
    InternalAddress,
    /// Its WireGuard address.
    WireguardAddress,
}

/// Returns the problems of the location ranges of a cluster, in order of node. Without a plan its Peers
/// are not known.
pub fn problems<'f>(
    fleet: &'f Fleet<'f>,
    plan: Option<&Plan>,
    inspected: &InspectedCluster<'f>,
) -> Vec<OfferProblem<'f>> {
    let offers = offers(inspected);
    if offers.is_empty() {
        return Vec::new();
    }
    let cluster = &inspected.member.entry.name;
    let declared: Vec<Cidr> = fleet
        .memberships(cluster)
        .flat_map(|it| it.entry.networks.all())
        .map(|range| range.cidr)
        .collect();
    let outranked = inspected
        .cluster()
        .topology
        .outranked_location_ranges()
        .into_iter()
        .map(|it| ((it.segment, it.range), it))
        .collect();
    let contestants = Contestants::new(fleet, plan, inspected, &offers);
    let mut problems = Vec::new();
    for offer in &offers {
        let found = [
            ignored(offer),
            self::outranked(inspected, &offers, offer, &outranked),
            contestants.owned_elsewhere(offer),
            contestants.of_other_clusters(offer),
            contestants.undeclared(offer, &declared),
        ];
        problems.extend(found.into_iter().flatten().map(|kind| OfferProblem {
            node: offer.node,
            changes: contestants.changes(offer, &kind),
            kind,
        }));
    }
    problems
}

fn ignored<'f>(offer: &Offer<'f>) -> Option<OfferProblemKind<'f>> {
    let is_range = |entry: &&str| entry.trim().parse::<Cidr>().is_ok();
    (!offer.ignored.is_empty()).then(|| OfferProblemKind::Ignored {
        entries: offer.ignored.clone(),
        is_spaced: offer.ignored.iter().any(is_range),
    })
}

fn outranked<'f>(
    inspected: &InspectedCluster<'f>,
    offers: &[Offer<'f>],
    offer: &Offer<'f>,
    outranked: &BTreeMap<(SegmentId, Cidr), Outranked>,
) -> Option<OfferProblemKind<'f>> {
    let topology = &inspected.cluster().topology;
    let segment = offer.counted?;
    let ranges = offer.ranges.iter();
    let mine = ranges.filter_map(|range| outranked.get(&(segment, *range)));
    let mine: Vec<&Outranked> = mine.collect();
    let first = *mine.first()?;
    let mut offers = offers.iter();
    let holder =
        offers.find(|it| it.counted == Some(first.by) && it.ranges.contains(&first.stronger))?;
    let key = |segment: SegmentId| topology.segments[segment].key.as_str();
    Some(OfferProblemKind::Outranked(OutrankedOffer {
        range: first.range,
        stronger: first.stronger,
        holder: holder.node,
        segment: key(first.segment),
        by: key(first.by),
        more: mine.len() - 1,
        dropped: mine.iter().map(|it| it.range).collect(),
    }))
}
