//! Loops within a cluster: endpoints that are in its own ranges. They are the same in every target.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::withheld::{LoopingPeer, LoopingRanges, TargetReason, WithheldEndpoint, WithheldRanges};
use crate::fleet::Member;
use crate::kilo::node::annotation;
use crate::membership::{CandidateId, Origin, PeerCandidate};
use crate::mesh::{EndpointSource, Entry, Networks};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::place::Place;

/// The ranges that a member leaves out for all targets.
#[derive(Debug, Default)]
pub(super) struct OwnLoops {
    pub(super) excluded: BTreeSet<CandidateId>,
    /// The ranges.
    pub(super) withheld: BTreeSet<Cidr>,
    /// The findings about both.
    pub(super) reasons: Vec<Arc<TargetReason>>,
}

/// A candidate whose endpoint is in a range of its own cluster.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    pub(super) candidate: CandidateId,
    pub(super) address: IpAddr,
}

/// Settles what becomes of the candidates whose endpoints are in ranges of their own cluster.
///
/// A range for nodes stays, and the node that is dialled in it is excluded. A cluster-wide range
/// stays if most of the endpoints are outside. Host routes to the endpoints are never needed.
pub(super) fn own_loops(member: &Member, mut inside: Vec<Inside>) -> OwnLoops {
    let mut own_loops = OwnLoops::default();
    if inside.is_empty() {
        return own_loops;
    }
    let candidates = &member.membership.candidates;
    let of_nodes = of_nodes(member);
    inside.retain(|it| {
        let found = of_nodes.holders(it.address).next();
        let Some((range, place)) = found else {
            return true;
        };
        own_loops.exclude_candidate(member, *it, range, place.clone());
        false
    });
    let is_sent_to = |it: &&PeerCandidate| it.endpoint.is_some() || it.outer_address().is_some();
    let sent_to = candidates.iter().filter(is_sent_to).count();
    for range in for_all(member) {
        let is_in = |it: &Inside| range.holds(it.address);
        let lying: Vec<Inside> = inside.iter().copied().filter(is_in).collect();
        if sent_to < 2 * lying.len() {
            own_loops.withhold(member, vec![range], &lying);
        } else if !lying.is_empty() {
            let place = member.declaration(range).map(|it| it.place.clone());
            for &it in &lying {
                own_loops.exclude_candidate(member, it, range, place.clone());
            }
            inside.retain(|it| !is_in(it));
        }
    }
    let addresses: BTreeMap<IpAddr, CandidateId> =
        inside.iter().map(|it| (it.address, it.candidate)).collect();
    let claims = candidates.iter().flat_map(PeerCandidate::claims);
    let routes = claims.filter(|it| it.is_host() && addresses.contains_key(&it.first()));
    let mut by_range: BTreeMap<Option<Cidr>, Vec<Cidr>> = BTreeMap::new();
    for route in routes {
        let range = member.declaration(route).map(|it| it.cidr);
        by_range.entry(range).or_default().push(route);
    }
    for (range, routes) in by_range {
        // The finding about the whole range is enough.
        if range.is_some_and(|it| own_loops.withheld.contains(&it)) {
            own_loops.withheld.extend(routes);
            continue;
        }
        let lying: Vec<Inside> = routes
            .iter()
            .filter_map(|it| {
                let address = it.first();
                Some(Inside { candidate: *addresses.get(&address)?, address })
            })
            .collect();
        own_loops.withhold(member, routes, &lying);
    }
    own_loops
}

/// Returns the ranges of the cluster as a whole. Those of a flat list that anchors name may be for pods, but the addresses
/// of one node must not decide that.
fn for_all(member: &Member) -> impl Iterator<Item = Cidr> {
    let cluster = &member.cluster;
    let is_flat = matches!(member.entry.networks, Networks::Flat { .. });
    let named = cluster.anchored.pods.iter().filter(move |_| is_flat);
    cluster.shared.iter().chain(named).copied()
}

/// Returns the ranges that are there for nodes: those of these uses, or else the pod CIDRs.
fn of_nodes(member: &Member) -> Prefixes<Option<Place>> {
    match &member.entry.networks {
        Networks::Typed { pods, wireguard, .. } => {
            pods.iter().chain([wireguard]).map(|it| (it.cidr, Some(it.place.clone()))).collect()
        }
        Networks::Flat { .. } => {
            let claims = |candidate: &'_ PeerCandidate| -> Vec<(Cidr, Option<Place>)> {
                candidate.pods.iter().map(|it| (*it, Some(candidate.place.clone()))).collect()
            };
            let carried = member.cluster.anchored.subnet.into_iter();
            let carried = carried.map(|it| (it, member.declaration(it).map(|it| it.place.clone())));
            member.membership.candidates.iter().flat_map(claims).chain(carried).collect()
        }
    }
}

/// Returns the item of `endpointFrom` by which nodes are dialled at addresses that they report by themselves.
fn guess(candidate: &PeerCandidate, entry: &Entry) -> Option<(EndpointSource, Place)> {
    let source = match candidate.origin? {
        Origin::InternalIP => EndpointSource::InternalIP,
        Origin::Annotation(annotation::ENDPOINT) => EndpointSource::Kilo,
        _ => return None,
    };
    Some((source, entry.field("endpointFrom")))
}

impl OwnLoops {
    fn exclude_candidate(
        &mut self,
        member: &Member,
        inside: Inside,
        range: Cidr,
        range_place: Option<Place>,
    ) {
        let candidate = &member.membership.candidates[inside.candidate];
        if self.excluded.insert(inside.candidate) {
            self.reasons.push(Arc::new(TargetReason::LoopingPeer(LoopingPeer {
                node: candidate.leader.clone(),
                endpoint: WithheldEndpoint {
                    address: inside.address,
                    place: member.endpoint_place(candidate),
                },
                range,
                owner: member.entry.name.clone(),
                range_place,
            })));
        }
    }

    fn withhold(&mut self, member: &Member, cidrs: Vec<Cidr>, lying: &[Inside]) {
        let (Some(first), Some(cidr)) = (lying.first(), cidrs.first()) else {
            return;
        };
        let candidate = &member.membership.candidates[first.candidate];
        self.withheld.extend(&cidrs);
        self.reasons.push(Arc::new(TargetReason::LoopingRanges(LoopingRanges {
            ranges: WithheldRanges {
                declared: member.declaration(*cidr).map(|it| it.place.clone()),
                cidrs,
            },
            cluster: member.entry.name.clone(),
            node: candidate.leader.to_string(),
            endpoint: WithheldEndpoint {
                address: first.address,
                place: member.endpoint_place(candidate),
            },
            endpoints: lying.len(),
            guessed: guess(candidate, member.entry),
        })));
    }
}
