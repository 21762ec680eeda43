//! Location ranges: what nodes offer beside their own, by `allowed-location-ips`, and which of it is
//! ignored, dropped or contested.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::inspected_cluster::InspectedCluster;
use crate::agent::location_ranges::Outranked;
use crate::fleet::{Fleet, LinkedSource, Member};
use crate::kilo::id::SegmentId;
use crate::kilo::node::annotation;
use crate::mesh::Range;
use crate::net::{Cidr, Cover, Nest};
use crate::snapshot::Node;

/// The ranges that a node offers by its annotation.
struct Offer<'f> {
    node: &'f Node,
    /// The index of its segment.
    segment: usize,
    /// Its segment among those that Kilo counts.
    own: Option<SegmentId>,
    /// The ranges that Kilo reads, in order, each once.
    ranges: BTreeSet<Cidr>,
    /// The texts that Kilo ignores.
    ignored: Vec<&'f str>,
}

/// A problem of the location ranges that a node offers.
pub struct OfferProblem<'f> {
    /// The node.
    pub node: &'f Node,
    /// The problem.
    pub kind: OfferProblemKind<'f>,
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
    /// Another cluster that is seen declares an overlapping range, for which Kilo has a Peer.
    Foreign {
        /// The range.
        range: Cidr,
        /// The cluster.
        owner: &'f Member<'f>,
        /// The range that the cluster declares.
        declared: &'f Range,
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
    /// The node whose annotation should change: that of the wider range.
    pub changed: &'f Node,
    /// The ranges that this node can offer without an overlap with other segments; nothing if these are
    /// too many to write.
    pub left: Option<Vec<Cidr>>,
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

/// The number of ranges that a command names.
const NAMED_RANGES: usize = 16;

/// The number of ranges that are cut out of one for a command.
const CUT_OUT: usize = 256;

/// Ranges of other clusters that this one sees, each with its owner.
type ForeignRanges<'f> = Cover<(&'f Member<'f>, &'f Range)>;

/// The ranges that nodes offer, each with the segment that does; none where several do.
type Offered = Nest<Option<SegmentId>>;

/// Returns the problems of the location ranges of a cluster, in order of node.
pub fn problems<'f>(
    fleet: &'f Fleet<'f>,
    inspected: &InspectedCluster<'f>,
) -> Vec<OfferProblem<'f>> {
    let offers = offers(inspected);
    if offers.is_empty() {
        return Vec::new();
    }
    let own = OwnRanges::collect(inspected);
    let cluster = &inspected.member.entry.name;
    let foreign: ForeignRanges = fleet
        .sources(cluster)
        .flat_map(|LinkedSource { member, .. }| {
            let ranges = member.entry.networks.all().into_iter();
            ranges.map(move |range| (range.cidr, (member, range)))
        })
        .collect();
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
    let offered = offered(&offers);
    let mut problems = Vec::new();
    for offer in &offers {
        let found = [
            ignored(offer),
            self::outranked(inspected, &offers, offer, &outranked, &offered),
            owned_elsewhere(offer, &own),
            of_other_clusters(offer, &foreign),
            undeclared(offer, &declared, &foreign),
        ];
        problems.extend(found.into_iter().flatten().map(|kind| OfferProblem {
            node: offer.node,
            kind,
        }));
    }
    problems
}

fn offers<'f>(inspected: &InspectedCluster<'f>) -> Vec<Offer<'f>> {
    let segments = segment_of(inspected);
    let offers = inspected
        .all_nodes()
        .enumerate()
        .filter_map(|(index, (node, kilo))| {
            let text = node.annotations.get(annotation::ALLOWED_LOCATION_IPS)?;
            if !inspected.is_inspected(node, kilo) {
                return None;
            }
            let (mut ranges, mut ignored) = (BTreeSet::new(), Vec::new());
            for entry in text.split(',').filter(|entry| !entry.is_empty()) {
                match entry.parse() {
                    Ok(range) => drop(ranges.insert(range)),
                    Err(_) => ignored.push(entry),
                }
            }
            Some(Offer {
                node,
                segment: *segments.get(&index)?,
                own: inspected.cluster().topology.nodes.get(index)?.segment,
                ranges,
                ignored,
            })
        });
    offers.collect()
}

fn offered(offers: &[Offer]) -> Offered {
    let mut offered: BTreeMap<Cidr, Option<SegmentId>> = BTreeMap::new();
    for offer in offers {
        for range in &offer.ranges {
            let known = offered.entry(*range).or_insert(offer.own);
            *known = known.filter(|it| Some(*it) == offer.own);
        }
    }
    offered.into_iter().collect()
}

/// Returns which segment each node is in.
fn segment_of(inspected: &InspectedCluster) -> BTreeMap<usize, usize> {
    let formed = inspected.cluster().segments.formed.iter().enumerate();
    formed
        .flat_map(|(segment, formed)| formed.members.iter().map(move |it| (it.index(), segment)))
        .collect()
}

/// The ranges and addresses of nodes, for look-ups by address.
struct OwnRanges<'f> {
    /// By first address.
    sorted: Vec<OwnRange<'f>>,
    widest: Cover<OwnRange<'f>>,
}

impl<'f> OwnRanges<'f> {
    fn collect(inspected: &InspectedCluster<'f>) -> Self {
        let segments = segment_of(inspected);
        let nodes = inspected
            .all_nodes()
            .enumerate()
            .filter_map(|(index, it)| Some((*segments.get(&index)?, it)));
        let mut sorted: Vec<OwnRange> = Vec::new();
        for (segment, (node, kilo)) in nodes {
            let wireguard = kilo.wireguard_ip();
            let host = |address: IpAddr| Cidr::host(address);
            let own = [
                (kilo.pod_cidr, OwnRangeUse::Pods),
                (
                    kilo.internal_address().map(host),
                    OwnRangeUse::InternalAddress,
                ),
                (
                    wireguard.map(|it| host(it.address)),
                    OwnRangeUse::WireguardAddress,
                ),
            ];
            sorted.extend(own.into_iter().filter_map(|(cidr, usage)| {
                Some(OwnRange {
                    cidr: cidr?,
                    usage,
                    node: &node.name,
                    segment,
                })
            }));
        }
        sorted.sort_by_key(|it| (it.cidr.first(), it.cidr.prefix_length()));
        let widest = sorted.iter().map(|it| (it.cidr, *it)).collect();
        Self { sorted, widest }
    }

    /// Returns something of another segment that shares an address with `range`.
    ///
    /// An address is in at most as many distinct ranges as it has bits, so skipping a segment's own
    /// ranges is cheap for any annotation.
    fn of_others(&self, range: Cidr, segment: usize) -> Option<&OwnRange<'f>> {
        let is_foreign = |it: &&OwnRange| it.segment != segment;
        let around = || self.widest.holder(range.first()).map(|(_, it)| it);
        let start = self
            .sorted
            .partition_point(|it| it.cidr.first() < range.first());
        let inside = self.sorted.get(start..).unwrap_or_default().iter();
        inside
            .take_while(|it| it.cidr.first() <= range.last())
            .find(is_foreign)
            .or_else(|| around().filter(is_foreign))
    }
}

fn ignored<'f>(offer: &Offer<'f>) -> Option<OfferProblemKind<'f>> {
    let is_range = |entry: &&str| entry.trim().parse::<Cidr>().is_ok();
    (!offer.ignored.is_empty()).then(|| OfferProblemKind::Ignored {
        entries: offer.ignored.clone(),
        is_spaced: offer.ignored.iter().any(is_range),
    })
}

fn owned_elsewhere<'f>(offer: &Offer<'f>, own: &OwnRanges<'f>) -> Option<OfferProblemKind<'f>> {
    let mut contested = offer.ranges.iter().filter_map(|range| {
        let claim = own.of_others(*range, offer.segment)?;
        Some((*range, *claim))
    });
    let (range, claim) = contested.next()?;
    Some(OfferProblemKind::OwnedElsewhere {
        range,
        claim,
        more: contested.count(),
    })
}

fn outranked<'f>(
    inspected: &InspectedCluster<'f>,
    offers: &[Offer<'f>],
    offer: &Offer<'f>,
    outranked: &BTreeMap<(SegmentId, Cidr), Outranked>,
    offered: &Offered,
) -> Option<OfferProblemKind<'f>> {
    let topology = &inspected.cluster().topology;
    let segment = offer.own?;
    let ranges = offer.ranges.iter();
    let mut mine = ranges.filter_map(|range| outranked.get(&(segment, *range)));
    let first = mine.next()?;
    let mut others = offers.iter();
    let other =
        others.find(|it| it.own == Some(first.by) && it.ranges.contains(&first.stronger))?;
    let key = |segment: SegmentId| topology.segments[segment].key.as_str();
    let is_wider = first.stronger.contains(first.range) && first.stronger != first.range;
    let changed = if is_wider { other } else { offer };
    Some(OfferProblemKind::Outranked(OutrankedOffer {
        range: first.range,
        stronger: first.stronger,
        holder: other.node,
        segment: key(first.segment),
        by: key(first.by),
        more: mine.count(),
        changed: changed.node,
        left: disjoint(offered, changed),
    }))
}

/// Returns what a node offers without the ranges of other segments, unless these are many ranges.
fn disjoint(offered: &Offered, changed: &Offer) -> Option<Vec<Cidr>> {
    let is_others = |known: &Option<SegmentId>| known.is_none() || *known != changed.own;
    let mut left: Vec<Cidr> = Vec::new();
    for range in &changed.ranges {
        if offered.around(*range).any(|(_, known)| is_others(known)) {
            continue;
        }
        let inside = offered.inside(*range).filter(|(_, known)| is_others(known));
        // Every one that is cut out costs as much as all that were before it.
        let inside: Vec<Cidr> = inside.map(|it| it.0).take(CUT_OUT + 1).collect();
        if inside.len() <= CUT_OUT {
            left.extend(range.without(&inside));
        }
        if CUT_OUT < inside.len() || NAMED_RANGES < left.len() {
            return None;
        }
    }
    Some(left)
}

fn of_other_clusters<'f>(
    offer: &Offer<'f>,
    foreign: &ForeignRanges<'f>,
) -> Option<OfferProblemKind<'f>> {
    let mut contested = offer.ranges.iter().filter_map(|range| {
        let (_, &(owner, declared)) = foreign.meeting(*range)?;
        Some((*range, owner, declared))
    });
    let (range, owner, declared) = contested.next()?;
    Some(OfferProblemKind::Foreign {
        range,
        owner,
        declared,
        more: contested.count(),
    })
}

fn undeclared<'f>(
    offer: &Offer<'f>,
    declared: &[Cidr],
    foreign: &ForeignRanges<'f>,
) -> Option<OfferProblemKind<'f>> {
    let is_undeclared = |range: &Cidr| {
        !declared.iter().any(|it| it.contains(*range)) && foreign.meeting(*range).is_none()
    };
    let ranges: Vec<Cidr> = offer.ranges.iter().copied().filter(is_undeclared).collect();
    (!ranges.is_empty()).then_some(OfferProblemKind::Undeclared(ranges))
}
