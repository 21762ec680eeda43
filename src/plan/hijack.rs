//! Hijacks: ranges that take away from the target's nodes what they reach by themselves
//! (`kilo.md` §2.5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cut::{Captured, CutOff, Own, Ranges};
use super::ground::What;
use super::seen::{Seen, Source, Verdicts};
use crate::kilo::node::annotation;
use crate::mesh::Range;
use crate::net::Cidr;
use crate::place::Place;

/// Ranges of one declared range that hit nodes of the target.
struct Hit<'f> {
    ranges: BTreeSet<Cidr>,
    homes: BTreeSet<usize>,
    first: (usize, Own),
    declared: &'f Range,
}

/// Settles what becomes of ranges of a source that hit nodes of the target: they go, unless the
/// source ranks first and fewer than most of the nodes are hit.
pub(super) fn settle(seen: &Seen, source: &Source, verdicts: &mut Verdicts) {
    let mut by_range: BTreeMap<Cidr, BTreeSet<usize>> = BTreeMap::new();
    let mut found: Vec<((usize, Own), &Range, Vec<Cidr>)> = Vec::new();
    for meeting in seen.homes(source) {
        if let (What::Own(own), Some(&home)) = (meeting.what, meeting.whose.first()) {
            let met = seen.met(source, meeting);
            for range in &met {
                by_range.entry(*range).or_default().extend(&meeting.whose);
            }
            found.push(((home, own), meeting.range, met));
        }
    }
    let outranks = source.member.rank < source.own.rank;
    let nodes = source.own.roster.homes.len();
    let is_kept = |homes: &BTreeSet<usize>| outranks && 2 * homes.len() <= nodes;
    for kept in [false, true] {
        let mut hits: BTreeMap<Cidr, Hit> = BTreeMap::new();
        for (first, declared, met) in &found {
            for range in met {
                let Some(homes) = by_range.get(range).filter(|it| is_kept(it) == kept) else {
                    continue;
                };
                let hit = hits.entry(declared.cidr).or_insert(Hit {
                    ranges: BTreeSet::new(),
                    homes: BTreeSet::new(),
                    first: *first,
                    declared,
                });
                if hit.ranges.insert(*range) {
                    hit.homes.extend(homes);
                }
            }
        }
        for hit in hits.into_values() {
            let verdict = verdicts.entry(source.index).or_default();
            if !kept {
                verdict.withheld.extend(&hit.ranges);
            }
            verdict.cuts.extend(told(source, hit, kept).map(Arc::new));
        }
    }
}

fn told(source: &Source, hit: Hit, kept: bool) -> Option<CutOff> {
    let (home, own) = hit.first;
    let member = source.own;
    let (node, place) = member.node_at(member.roster.homes.get(home)?.node)?;
    let has = |key: &&str| node.annotations.contains_key(*key);
    let place = match own {
        Own::Lan(_) | Own::Address(_) => {
            let keys = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
            annotated(&place, keys.iter().find(|it| has(it))).unwrap_or(place.key("addresses"))
        }
        Own::Pods(_) => place.key("podCIDRs"),
        Own::Wireguard(_) => place.key("annotations").key(annotation::WIREGUARD_IP),
    };
    Some(CutOff::Captured(Captured {
        ranges: Ranges {
            cidrs: hit.ranges.into_iter().collect(),
            declared: Some(hit.declared.place.clone()),
        },
        own,
        node: node.name.clone(),
        place,
        nodes: hit.homes.len(),
        kept,
    }))
}

fn annotated(place: &Place, key: Option<&&str>) -> Option<Place> {
    Some(place.key("annotations").key(key?))
}
