//! Contestants: everything that can contest a location range, and what to write so that nothing does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::fleet::{Fleet, Member};
use crate::kilo::id::SegmentId;
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::plan::Plan;
use crate::rules::kilo::inspected_cluster::InspectedCluster;
use crate::snapshot::Node;

/// The number of nodes for which there are commands.
const NAMED_NODES: usize = 3;

/// The number of ranges that a command names.
const NAMED_RANGES: usize = 16;

/// The number of ranges that are cut out of one for a command.
const CUT_OUT: usize = 256;

/// The ranges that a node offers by its annotation.
pub(super) struct Offer<'f> {
    pub(super) node: &'f Node,
    /// The index of its segment, counted by Kilo or not.
    formed: usize,
    /// Its segment among those that Kilo counts.
    pub(super) counted: Option<SegmentId>,
    /// The ranges that Kilo reads, in order, each once.
    pub(super) ranges: BTreeSet<Cidr>,
    /// The texts that Kilo ignores.
    pub(super) ignored: Vec<&'f str>,
}

/// A change of the location ranges of a node.
pub(super) struct OfferChange<'f> {
    pub(super) node: &'f Node,
    /// The ranges that nothing contests; nothing if they are too many to write.
    pub(super) left: Option<Vec<Cidr>>,
}

/// A range of a node's own.
#[derive(Clone, Copy)]
pub(super) struct OwnRange<'f> {
    pub(super) cidr: Cidr,
    /// Its use, in words.
    pub(super) usage: &'static str,
    pub(super) node: &'f str,
    segment: usize,
}

/// Everything that can contest a location range.
pub(super) struct Contestants<'f, 'o> {
    /// The ranges of nodes that Kilo counts, each with those that offer it, in order of segment.
    offered: Prefixes<Vec<&'o Offer<'f>>>,
    /// The ranges and addresses of nodes.
    own: Prefixes<OwnRange<'f>>,
    /// The ranges of the Peers that the cluster gets, each with the source.
    peers: Prefixes<&'f Member<'f>>,
}

impl<'f, 'o> Contestants<'f, 'o> {
    pub(super) fn new(
        fleet: &'f Fleet<'f>,
        plan: Option<&Plan>,
        inspected: &InspectedCluster<'f>,
        offers: &'o [Offer<'f>],
    ) -> Self {
        Self {
            offered: offered(offers),
            own: own_ranges(inspected),
            peers: peer_ranges(fleet, plan, &inspected.member.entry.name),
        }
    }

    /// Returns a range of a Peer that overlaps this one, and its source.
    pub(super) fn of_peers(&self, range: Cidr) -> Option<(Cidr, &'f Member<'f>)> {
        let (given, owner) = meeting(&self.peers, range).next()?;
        Some((given, *owner))
    }

    /// Returns whether a Peer has this range.
    pub(super) fn are_of_peer(&self, range: Cidr) -> bool {
        self.peers.contain(range)
    }

    /// Returns the change of an offer after which nothing contests it.
    pub(super) fn change(&self, offer: &Offer<'f>) -> OfferChange<'f> {
        OfferChange { node: offer.node, left: self.uncontested(offer) }
    }

    /// Returns the changes that end a contest between segments: of the wider offers of stronger ones, and of
    /// this one as far as it gives way. If these are too many to write, only this node is named.
    pub(super) fn concessions(
        &self,
        offer: &'o Offer<'f>,
        dropped: &[Cidr],
    ) -> Vec<OfferChange<'f>> {
        match self.contesting(offer, dropped) {
            Some(offers) => offers.into_iter().map(|it| self.change(it)).collect(),
            None => vec![OfferChange { node: offer.node, left: None }],
        }
    }

    /// Returns the offers that must change so that no range of one is dropped in favour of another
    /// segment, unless these are many.
    fn contesting(&self, offer: &'o Offer<'f>, dropped: &[Cidr]) -> Option<Vec<&'o Offer<'f>>> {
        if NAMED_RANGES < dropped.len() {
            return None;
        }
        let mut wider: BTreeMap<&str, &Offer> = BTreeMap::new();
        for &range in dropped {
            let around = self.offered.containing(range).filter(|it| it.0 != range);
            let offers = around.flat_map(|it| it.1.iter().rev());
            for other in offers.filter(|it| offer.counted < it.counted) {
                wider.insert(&other.node.name, other);
                if NAMED_NODES < wider.len() {
                    return None;
                }
            }
        }
        let mut dropped = dropped.iter();
        let gives_way = dropped.any(|it| self.stronger(offer, *it).next().is_some());
        let own = gives_way.then_some(offer);
        Some(own.into_iter().chain(wider.into_values()).collect())
    }

    /// Returns what other segments than that of an offer have of their own that meets a range.
    pub(super) fn own_of_others(
        &self,
        offer: &Offer<'f>,
        range: Cidr,
    ) -> impl Iterator<Item = (Cidr, &OwnRange<'f>)> {
        let formed = offer.formed;
        meeting(&self.own, range).filter(move |it| it.1.segment != formed)
    }

    /// Returns the ranges that a node can offer and that nothing contests, unless these are many. Of two
    /// offers, the wider one gives way; of equal ones, that of the segment which sorts first.
    fn uncontested(&self, offer: &Offer<'f>) -> Option<Vec<Cidr>> {
        let mut left: Vec<Cidr> = Vec::new();
        for &range in &offer.ranges {
            let contesting = self
                .stronger(offer, range)
                .chain(self.own_of_others(offer, range).map(|it| it.0))
                .chain(meeting(&self.peers, range).map(|it| it.0));
            // Every one that is cut out costs as much as all that were before it.
            let contesting: Vec<Cidr> = contesting.take(CUT_OUT + 1).collect();
            if contesting.iter().any(|it| it.contains(range)) {
                continue;
            }
            if contesting.len() <= CUT_OUT {
                left.extend(range.without(&contesting));
            }
            if CUT_OUT < contesting.len() || NAMED_RANGES < left.len() {
                return None;
            }
        }
        Some(left)
    }

    /// Returns the offers of other segments to which a range gives way.
    fn stronger(&self, offer: &Offer<'f>, range: Cidr) -> impl Iterator<Item = Cidr> {
        let own = offer.counted;
        let inside = self.offered.inside(range);
        let stronger = inside.filter(move |(other, offers)| {
            let [first, last] = [offers.first(), offers.last()].map(|it| it?.counted);
            if *other == range { own < last } else { first != own || last != own }
        });
        stronger.map(|it| it.0)
    }
}

/// Returns what the nodes offer that have no worse finding.
pub(super) fn offers<'f>(inspected: &InspectedCluster<'f>) -> Vec<Offer<'f>> {
    let segments = segment_of(inspected);
    let offers = inspected.all_nodes().enumerate().filter_map(|(index, (node, kilo))| {
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
            formed: *segments.get(&index)?,
            counted: inspected.cluster().topology.nodes.get(index)?.segment,
            ranges,
            ignored,
        })
    });
    offers.collect()
}

fn offered<'f, 'o>(offers: &'o [Offer<'f>]) -> Prefixes<Vec<&'o Offer<'f>>> {
    let mut counted: Vec<&Offer> = offers.iter().filter(|it| it.counted.is_some()).collect();
    counted.sort_by_key(|it| it.counted);
    let mut offered: BTreeMap<Cidr, Vec<&Offer>> = BTreeMap::new();
    for offer in counted {
        for range in &offer.ranges {
            offered.entry(*range).or_default().push(offer);
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

/// Returns the ranges and addresses of nodes.
fn own_ranges<'f>(inspected: &InspectedCluster<'f>) -> Prefixes<OwnRange<'f>> {
    let segments = segment_of(inspected);
    inspected
        .all_nodes()
        .enumerate()
        .filter_map(|(index, it)| Some((*segments.get(&index)?, it)))
        .flat_map(|(segment, (node, kilo))| {
            let wireguard = kilo.wireguard_ip().map(|it| it.address);
            let host = |address: Option<IpAddr>| address.map(Cidr::host);
            let own = [
                (kilo.pod_cidr, "pod CIDR"),
                (host(kilo.internal_address()), "internal address"),
                (host(wireguard), "WireGuard address"),
            ];
            own.into_iter().filter_map(move |(cidr, usage)| {
                let own = OwnRange { cidr: cidr?, usage, node: &node.name, segment };
                Some((own.cidr, own))
            })
        })
        .collect()
}

/// Returns what of a table shares addresses with a range: what is inside it, then what is around it.
fn meeting<T>(ranges: &Prefixes<T>, range: Cidr) -> impl Iterator<Item = (Cidr, &T)> {
    let around = ranges.containing(range).filter(move |it| it.0 != range);
    ranges.inside(range).chain(around)
}

/// Returns the ranges of the Peers of a cluster.
fn peer_ranges<'f>(
    fleet: &'f Fleet<'f>,
    plan: Option<&Plan>,
    cluster: &'f ClusterName,
) -> Prefixes<&'f Member<'f>> {
    let sources: BTreeMap<&ClusterName, &Member> =
        fleet.sources(cluster).map(|it| (&it.member.entry.name, it.member)).collect();
    let targets = plan.into_iter().flat_map(|plan| plan.targets.iter().map(move |it| (plan, it)));
    targets
        .filter(|(_, it)| it.cluster == *cluster)
        .flat_map(|(plan, it)| plan.sets_of(it))
        .filter_map(|it| Some((*sources.get(&it.source)?, &it.peers)))
        .flat_map(|(source, peers)| {
            let ranges = peers.iter().flat_map(|it| &it.allowed_ips);
            ranges.map(move |it| (*it, source))
        })
        .collect()
}
