//! Captured ranges: those that hold what the target's nodes reach by themselves (`kilo.md` §2.5, §2.6).
//!
//! No single node decides for its cluster, regardless of rank: an address removes only itself from
//! a range, and a LAN counts only if enough nodes are on it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::conflicts::{Conflict, Conflicting};
use super::decision::{Decisions, SourceDecision};
use super::target_view::{TargetSource, TargetView};
use super::withheld::{
    Captured, CapturedOutcome, LocalAddress, LocalNetwork, TargetReason, WithheldRanges,
};
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::id::NodeId;
use crate::kilo::node::{annotation, listening};
use crate::mesh::Range;
use crate::net::{Cidr, Family, family};
use crate::place::Place;
use crate::wireguard::Endpoint;

/// The number of prefixes by which a range may grow when hosts are cut out of it.
const MOST_ADDED: usize = 32;

/// A conflict, and which of the ranges that the target could get it is about.
type MetRanges<'m, 'f> = (&'m Conflict<'f>, Vec<Cidr>);

/// The networks and addresses of the target's nodes that overlap one range of a source.
#[derive(Default)]
struct Hit {
    /// The nodes on whose LAN the range lies.
    on_lan: BTreeSet<NodeId>,
    /// The LANs that are a part of it, with the nodes on them.
    lans: BTreeMap<Cidr, BTreeSet<NodeId>>,
    /// The addresses in it, with the nodes that have them.
    hosts: BTreeMap<IpAddr, BTreeSet<NodeId>>,
}

/// The decision about a range.
enum RangeOutcome {
    /// It is left out.
    Withheld,
    /// These are cut out of it, and not always everything that nodes have in it.
    Without(BTreeSet<Cidr>),
}

/// Ranges of one declared range that share a fate.
struct AlikeCaptures<'f> {
    declared: &'f Range,
    ranges: BTreeSet<Cidr>,
    local_nodes: BTreeSet<NodeId>,
    holes: BTreeSet<Cidr>,
    first: (NodeId, LocalAddress),
}

/// Settles what becomes of ranges of a source that hold what the target has of its own.
pub(super) fn settle(view: &TargetView, source: &TargetSource, decisions: &mut Decisions) {
    let meetings = view.local_nodes(source).iter();
    let met: Vec<MetRanges> = meetings
        .map(|it| (it, view.met(source, it)))
        .filter(|(_, ranges)| !ranges.is_empty())
        .collect();
    if met.is_empty() {
        return;
    }
    let decision = decisions.entry(source.id).or_default();
    local_networks(source, &met, decision);
    let outcomes: BTreeMap<Cidr, RangeOutcome> = hits(&met, decision)
        .into_iter()
        .map(|(range, hit)| (range, outcome(source.own, range, &hit)))
        .collect();
    for (alike, outcome) in alike(&met, &outcomes) {
        decision.reasons.push(Arc::new(reason(source, alike, outcome)));
    }
    for (range, outcome) in outcomes {
        match outcome {
            RangeOutcome::Withheld => drop(decision.withheld.insert(range)),
            RangeOutcome::Without(holes) if holes.is_empty() => {}
            RangeOutcome::Without(holes) => decision.holes.entry(range).or_default().extend(holes),
        }
    }
}

/// Leaves out what is in networks that people call the target's own, and cuts these out of wider
/// ranges.
fn local_networks(source: &TargetSource, met: &[MetRanges], decision: &mut SourceDecision) {
    for (conflict, ranges) in met {
        let Conflicting::Local(network, index) = conflict.what else {
            continue;
        };
        let Some(local) = source.own.entry.local_networks.get(index) else {
            continue;
        };
        for &range in ranges {
            if network.contains(range) {
                decision.withheld.insert(range);
            } else {
                decision.holes.entry(range).or_default().insert(network);
            }
        }
        decision.reasons.push(Arc::new(TargetReason::Local(LocalNetwork {
            ranges: WithheldRanges {
                cidrs: ranges.clone(),
                declared: Some(conflict.range.place.clone()),
            },
            network,
            place: local.place.clone(),
        })));
    }
}

/// Returns what nodes have in each range, without what local networks keep from the target already.
fn hits(met: &[MetRanges], decision: &SourceDecision) -> BTreeMap<Cidr, Hit> {
    let mut hits: BTreeMap<Cidr, Hit> = BTreeMap::new();
    for (conflict, ranges) in met {
        let Conflicting::Own(own) = conflict.what else {
            continue;
        };
        for &range in ranges {
            let holes = decision.holes.get(&range);
            let is_cut = holes.is_some_and(|it| it.iter().any(|it| it.contains(own.cidr())));
            if decision.withheld.contains(&range) || is_cut {
                continue;
            }
            let hit = hits.entry(range).or_default();
            let having = match own {
                LocalAddress::Endpoint(address) | LocalAddress::Address(address) => {
                    hit.hosts.entry(address).or_default()
                }
                LocalAddress::Lan(lan) if lan.contains(range) => &mut hit.on_lan,
                LocalAddress::Lan(lan) => hit.lans.entry(lan).or_default(),
            };
            having.extend(&conflict.nodes);
        }
    }
    hits
}

/// Decides what becomes of a range in which the nodes of `own` have something.
fn outcome(own: &Member, range: Cidr, hit: &Hit) -> RangeOutcome {
    if is_lan(own, &hit.on_lan) {
        return RangeOutcome::Withheld;
    }
    let is_affordable = |holes: &BTreeSet<Cidr>| range.without(holes).len() <= 1 + MOST_ADDED;
    // The prefixes around a host on a LAN would be on that LAN, so it is cut out as a whole.
    let mut wanted: Vec<Cidr> = hit.lans.keys().copied().collect();
    wanted.retain(|lan| is_lan(own, &hit.standing(*lan)));
    let hosts: Vec<Cidr> = densest_first(hit)
        .into_iter()
        .map(Cidr::host)
        .filter(|host| !wanted.iter().any(|it| it.contains(*host)))
        .collect();
    wanted.extend(hosts);
    if wanted.contains(&range) {
        return RangeOutcome::Withheld;
    }
    let all: BTreeSet<Cidr> = wanted.iter().copied().collect();
    if is_affordable(&all) {
        return RangeOutcome::Without(all);
    }
    let local_nodes: BTreeSet<NodeId> = hit.hosts.values().flatten().copied().collect();
    if own.membership.local_nodes.len() < 2 * local_nodes.len() {
        return RangeOutcome::Withheld;
    }
    // The location of most nodes comes first, so that one far away costs the others nothing.
    let mut affordable = BTreeSet::new();
    for hole in wanted {
        affordable.insert(hole);
        if !is_affordable(&affordable) {
            affordable.remove(&hole);
        }
    }
    RangeOutcome::Without(affordable)
}

impl Hit {
    /// Returns the nodes on a LAN, with its own prefix or a shorter one.
    fn standing(&self, lan: Cidr) -> BTreeSet<NodeId> {
        let wider = self
            .lans
            .iter()
            .filter(|(it, _)| it.contains(lan))
            .flat_map(|(_, local_nodes)| local_nodes);
        self.on_lan.iter().chain(wider).copied().collect()
    }
}

/// Returns whether the nodes on a LAN are enough for it to be their cluster's: at least two that are
/// more than half of a location, or any where there is only one.
fn is_lan(own: &Member, on_lan: &BTreeSet<NodeId>) -> bool {
    let local_nodes = &own.membership.local_nodes;
    if local_nodes.len() == 1 {
        return !on_lan.is_empty();
    }
    if own.cluster.granularity == Granularity::Full {
        return 2 <= on_lan.len();
    }
    let mut locations: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for home in local_nodes {
        let (standing, all) = locations.entry(&home.location).or_default();
        *standing += usize::from(on_lan.contains(&home.node));
        *all += 1;
    }
    let mut locations = locations.into_values();
    locations.any(|(standing, all)| 2 <= standing && all < 2 * standing)
}

/// Returns the addresses in a range, those first around which most nodes have one.
fn densest_first(hit: &Hit) -> Vec<IpAddr> {
    let around = |address: IpAddr| {
        let length = match family(address) {
            Family::V4 => 24,
            Family::V6 => 64,
        };
        Cidr::host(address).widened(length)
    };
    let mut neighbours: BTreeMap<Option<Cidr>, BTreeSet<NodeId>> = BTreeMap::new();
    for (&address, local_nodes) in &hit.hosts {
        neighbours.entry(around(address)).or_default().extend(local_nodes);
    }
    let mut addresses: Vec<IpAddr> = hit.hosts.keys().copied().collect();
    addresses.sort_by_key(|&address| {
        let nodes = neighbours.get(&around(address)).map(BTreeSet::len);
        (std::cmp::Reverse(nodes), address)
    });
    addresses
}

/// Returns the ranges of each declared range that share a fate, with that.
fn alike<'f>(
    met: &[MetRanges<'_, 'f>],
    outcomes: &BTreeMap<Cidr, RangeOutcome>,
) -> Vec<(AlikeCaptures<'f>, CapturedOutcome)> {
    let mut found: BTreeMap<(Cidr, CapturedOutcome, bool), AlikeCaptures> = BTreeMap::new();
    for (conflict, ranges) in met {
        let (Conflicting::Own(own), Some(&home)) = (conflict.what, conflict.nodes.first()) else {
            continue;
        };
        for range in ranges {
            let Some(outcome) = outcomes.get(range) else {
                continue;
            };
            let cut_out = match outcome {
                RangeOutcome::Withheld => None,
                RangeOutcome::Without(holes) => holes.iter().find(|it| it.contains(own.cidr())),
            };
            let outcome = match (outcome, cut_out) {
                (RangeOutcome::Withheld, _) => CapturedOutcome::Withheld,
                (RangeOutcome::Without(_), Some(_)) => CapturedOutcome::Without(Vec::new()),
                (RangeOutcome::Without(holes), None) => {
                    // A part of a range takes a LAN over only if it is not wider.
                    let is_left_whole = !holes.iter().any(|it| own.cidr().contains(*it));
                    if own.address().is_none() && !own.cidr().contains(*range) && is_left_whole {
                        continue;
                    }
                    CapturedOutcome::Kept
                }
            };
            // A range that stays concerns a LAN or addresses, and the advice differs.
            let is_lan = outcome == CapturedOutcome::Kept && own.address().is_none();
            let key = (conflict.range.cidr, outcome, is_lan);
            let alike = found.entry(key).or_insert(AlikeCaptures {
                declared: conflict.range,
                ranges: BTreeSet::new(),
                local_nodes: BTreeSet::new(),
                holes: BTreeSet::new(),
                first: (home, own),
            });
            alike.ranges.insert(*range);
            alike.local_nodes.extend(&conflict.nodes);
            alike.holes.extend(cut_out);
        }
    }
    let found = found.into_iter().map(|((_, outcome, _), alike)| {
        let outcome = match outcome {
            CapturedOutcome::Without(_) => {
                CapturedOutcome::Without(alike.holes.iter().copied().collect())
            }
            other => other,
        };
        (alike, outcome)
    });
    found.collect()
}

fn reason(source: &TargetSource, alike: AlikeCaptures, outcome: CapturedOutcome) -> TargetReason {
    let (home, own) = alike.first;
    let member = source.own;
    let (node, place) = member.node_at(home);
    let has = |key: &&str| node.annotations.contains_key(*key);
    let place = match own {
        LocalAddress::Lan(_) | LocalAddress::Address(_) => {
            let keys = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
            let key = keys.into_iter().find(has);
            key.map_or(place.key("addresses"), |key| annotated(&place, key))
        }
        LocalAddress::Endpoint(address) => {
            let of_kilo = listening(node).filter(|(_, it)| it.address() == Some(address));
            let dialled = |it: &Endpoint| it.address() == Some(address);
            let candidate = member.membership.candidates.iter().find(|it| {
                it.leader.as_str() == node.name && it.endpoint.as_ref().is_some_and(dialled)
            });
            match (of_kilo, candidate) {
                (Some((key, _)), _) => annotated(&place, key),
                (None, Some(candidate)) => member.endpoint_place(candidate),
                (None, None) => place,
            }
        }
    };
    TargetReason::Captured(Captured {
        ranges: WithheldRanges {
            cidrs: alike.ranges.into_iter().collect(),
            declared: Some(alike.declared.place.clone()),
        },
        own,
        node: node.name.clone(),
        place,
        nodes: alike.local_nodes.len(),
        outcome,
    })
}

fn annotated(place: &Place, key: &str) -> Place {
    place.key("annotations").key(key)
}
