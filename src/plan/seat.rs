//! Seats: which segments stand where a range lies.

use std::collections::{BTreeMap, BTreeSet};

use super::anchor::Carrier;
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::net::{Cidr, Nest};

/// Where the usable nodes of a cluster stand, and by whom each could carry a range.
pub(super) struct Seats {
    /// What Kilo or Kubernetes found, by place among the homes.
    found: Nest<usize>,
    /// The LANs that nodes say they are on, however they came to say so.
    lans: Nest<usize>,
    /// By home: its segment among those that are left and can be dialled.
    carriers: BTreeMap<usize, usize>,
}

/// Who stands where a range lies.
pub(super) enum Standing {
    /// These segments, in order of name: those with at least half as many nodes there as the one with
    /// most.
    Several(Vec<usize>),
    /// One node was found there, or some only say so, which is not enough to follow them: the first.
    One {
        /// Its place among the homes.
        home: usize,
        /// Its segment.
        carrier: usize,
    },
    /// None that could carry it.
    Nobody,
}

impl Seats {
    pub(super) fn new(source: &Member, left: &[Carrier]) -> Self {
        let speakers = source.roster.speakers.iter();
        let usable: BTreeSet<NodeId> = speakers.flat_map(|it| &it.members).copied().collect();
        let mut by_node = BTreeMap::new();
        for (index, carrier) in left.iter().enumerate() {
            let members = carrier.speaker.members.iter();
            if carrier.speaker.endpoint.is_some() {
                by_node.extend(members.map(|node| (*node, index)));
            }
        }
        let homes = source.roster.homes.iter().enumerate();
        let homes = homes.filter(|(_, home)| usable.contains(&home.node));
        let (mut found, mut lans) = (Vec::new(), Vec::new());
        let mut carriers = BTreeMap::new();
        for (index, home) in homes {
            found.extend(home.seats.iter().map(|seat| (*seat, index)));
            lans.extend(home.lan.map(|lan| (lan, index)));
            carriers.extend(by_node.get(&home.node).map(|carrier| (index, *carrier)));
        }
        Self {
            found: found.into_iter().collect(),
            lans: lans.into_iter().collect(),
            carriers,
        }
    }

    /// Returns who stands where a range lies.
    pub(super) fn standing(&self, range: Cidr) -> Standing {
        let found = self.found.around(range).chain(self.found.inside(range));
        let found: BTreeSet<usize> = found.map(|(_, home)| *home).collect();
        if 2 <= found.len() {
            let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
            for carrier in found.iter().filter_map(|home| self.carriers.get(home)) {
                *counts.entry(*carrier).or_default() += 1;
            }
            let most = counts.values().max().copied().unwrap_or_default();
            let segments = counts.into_iter().filter(|(_, count)| most <= 2 * count);
            return Standing::Several(segments.map(|it| it.0).collect());
        }
        let said = self.lans.around(range).map(|(_, home)| *home);
        let home = found.first().copied().or_else(|| said.min());
        let one = home.and_then(|home| Some((home, *self.carriers.get(&home)?)));
        one.map_or(Standing::Nobody, |(home, carrier)| Standing::One {
            home,
            carrier,
        })
    }
}
