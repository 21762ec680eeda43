//! Loops: endpoints in ranges of other clusters, so that packets of a tunnel would have to go
//! through one (`kilo.md` §2.6).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::cut::{CutOff, Endpoint, LoopingPeer, LoopingRanges, Ranges};
use super::ground::{Meeting, What, declaration, is_typed};
use super::seen::{Seen, Source, Verdicts};
use crate::fleet::Member;
use crate::kilo::node;
use crate::net::Cidr;

/// Ranges of one declared range that hold endpoints of one cluster.
struct Held<'f> {
    ranges: BTreeSet<Cidr>,
    endpoints: BTreeSet<usize>,
    first: (usize, IpAddr),
    declared: &'f crate::mesh::Range,
}

/// Settles what becomes of endpoints of a source that lie in ranges of other sources.
///
/// Where a person says what a range is for, the node is wrong. Of a flat list nobody but the nodes
/// say whose an entry is, so that rank decides: no node's claim may cost a cluster anything that
/// ranks before its own.
pub(super) fn of_source(seen: &Seen, source: &Source, verdicts: &mut Verdicts) {
    for (cluster, meetings) in seen.ground.endpoints(source.index) {
        let Some(owner) = seen.source(cluster) else {
            continue;
        };
        let mut held: BTreeMap<Cidr, Held> = BTreeMap::new();
        for meeting in meetings {
            let (What::Endpoint(address), Some(&speaker)) = (meeting.what, meeting.whose.first())
            else {
                continue;
            };
            if !seen.could_reach(owner, address) {
                continue;
            }
            if is_typed(owner.member) {
                let found = (meeting.range.cidr, (speaker, address));
                drop_speaker(source, owner, found, verdicts);
                continue;
            }
            let met = seen.met(owner, meeting);
            let Some(&narrowest) = met.first() else {
                continue;
            };
            if owner.member.rank < source.member.rank {
                drop_speaker(source, owner, (narrowest, (speaker, address)), verdicts);
            } else {
                hold(&mut held, meeting, met, (speaker, address));
            }
        }
        for held in held.into_values() {
            withhold(owner, source.member, held, verdicts);
        }
    }
}

/// Settles what becomes of ranges of a source in which the target's own nodes are dialled: they go,
/// unless the source ranks first and fewer than most of the nodes say so.
pub(super) fn of_target(seen: &Seen, source: &Source, verdicts: &mut Verdicts) {
    let mut by_range: BTreeMap<Cidr, BTreeSet<usize>> = BTreeMap::new();
    let mut found: Vec<(&Meeting, IpAddr, Vec<Cidr>)> = Vec::new();
    for meeting in seen.homes(source) {
        if let What::Endpoint(address) = meeting.what {
            let met = seen.met(source, meeting);
            for range in &met {
                by_range.entry(*range).or_default().extend(&meeting.whose);
            }
            found.push((meeting, address, met));
        }
    }
    let homes = &source.own.roster.homes;
    let dialled = homes.iter().filter(|it| !it.endpoints.is_empty()).count();
    let outranks = source.member.rank < source.own.rank;
    let is_kept = |range: &Cidr| {
        let lying = by_range.get(range).map_or(0, BTreeSet::len);
        outranks && 2 * lying <= dialled
    };
    for kept in [false, true] {
        let mut held: BTreeMap<Cidr, Held> = BTreeMap::new();
        for (meeting, address, met) in &found {
            let met: Vec<Cidr> = met
                .iter()
                .copied()
                .filter(|it| is_kept(it) == kept)
                .collect();
            if let (false, Some(&home)) = (met.is_empty(), meeting.whose.first()) {
                hold(&mut held, meeting, met, (home, *address));
            }
        }
        for held in held.into_values() {
            let verdict = verdicts.entry(source.index).or_default();
            if !kept {
                verdict.withheld.extend(&held.ranges);
            }
            verdict
                .cuts
                .extend(of_own(source, held, kept).map(Arc::new));
        }
    }
}

fn hold<'f>(
    held: &mut BTreeMap<Cidr, Held<'f>>,
    meeting: &Meeting<'f>,
    met: Vec<Cidr>,
    first: (usize, IpAddr),
) {
    let held = held.entry(meeting.range.cidr).or_insert(Held {
        ranges: BTreeSet::new(),
        endpoints: BTreeSet::new(),
        first,
        declared: meeting.range,
    });
    held.ranges.extend(met);
    held.endpoints.insert(first.0);
}

fn drop_speaker(
    source: &Source,
    owner: &Source,
    (range, (index, address)): (Cidr, (usize, IpAddr)),
    verdicts: &mut Verdicts,
) {
    let verdict = verdicts.entry(source.index).or_default();
    let Some(speaker) = source.member.roster.speakers.get(index) else {
        return;
    };
    if verdict.dropped.insert(index) {
        verdict.cuts.push(Arc::new(CutOff::LoopingPeer(LoopingPeer {
            node: speaker.leader.clone(),
            nodes: speaker.nodes,
            endpoint: Endpoint {
                address,
                place: source.member.endpoint_place(speaker),
            },
            range,
            owner: owner.member.entry.name.clone(),
            range_place: declaration(owner.member, range).map(|it| it.place.clone()),
        })));
    }
}

/// Leaves out ranges of `owner` in which endpoints of `member` lie.
fn withhold(owner: &Source, member: &Member, held: Held, verdicts: &mut Verdicts) {
    let (index, address) = held.first;
    let Some(speaker) = member.roster.speakers.get(index) else {
        return;
    };
    let verdict = verdicts.entry(owner.index).or_default();
    verdict.withheld.extend(&held.ranges);
    verdict
        .cuts
        .push(Arc::new(CutOff::LoopingRanges(LoopingRanges {
            endpoints: held.endpoints.len(),
            cluster: member.entry.name.clone(),
            node: speaker.leader.to_string(),
            endpoint: Endpoint {
                address,
                place: member.endpoint_place(speaker),
            },
            ranges: held.ranges(),
            kept: false,
        })));
}

/// Tells of ranges of a source in which the target's own nodes are dialled.
fn of_own(source: &Source, held: Held, kept: bool) -> Option<CutOff> {
    let (home, address) = held.first;
    let own = source.own;
    let (node, place) = own.node_at(own.roster.homes.get(home)?.node)?;
    let speaker = own.roster.speakers.iter().find(|it| {
        let dialled = it
            .endpoint
            .as_ref()
            .and_then(crate::wireguard::Endpoint::address);
        it.leader.as_str() == node.name && dialled == Some(address)
    });
    let of_kilo = node::listening(node).filter(|(_, it)| it.address() == Some(address));
    let place = match (of_kilo, speaker) {
        (Some((key, _)), _) => place.key("annotations").key(key),
        (None, Some(speaker)) => own.endpoint_place(speaker),
        (None, None) => place,
    };
    Some(CutOff::LoopingRanges(LoopingRanges {
        endpoints: held.endpoints.len(),
        cluster: own.entry.name.clone(),
        node: node.name.clone(),
        endpoint: Endpoint { address, place },
        ranges: held.ranges(),
        kept,
    }))
}

impl Held<'_> {
    fn ranges(self) -> Ranges {
        Ranges {
            cidrs: self.ranges.into_iter().collect(),
            declared: Some(self.declared.place.clone()),
        }
    }
}
