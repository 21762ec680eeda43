//! What a target misses: sources that give it nothing although people let them.

use super::seen::{Seen, Source};
use crate::net::Cidr;
use crate::roster::{Reason, Roster};

/// What a target might get of a source that gives it nothing, were it not for what nodes claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missed {
    /// How many nodes the source has, of those that the mesh selects.
    pub nodes: usize,
    /// What the target may get of them, by what people wrote: the source declares it, the target accepts
    /// it, and the target's Kilo could route it. Never nothing.
    pub ranges: Vec<Cidr>,
    /// Whether anything is known to be left out for what a node claims.
    pub is_claimed: bool,
}

impl Missed {
    /// Returns what a target misses of a source that gives it nothing; nothing where a person had it so,
    /// or where the source has no node left that can give anything to anyone.
    pub(super) fn of(seen: &Seen, source: &Source, is_cut: bool) -> Option<Self> {
        let roster = &source.member.roster;
        if roster.speakers.is_empty() {
            return None;
        }
        let ranges = ranges(seen, source);
        let speaking: usize = roster.speakers.iter().map(|it| it.nodes).sum();
        (!ranges.is_empty()).then(|| Self {
            nodes: speaking + left_out(roster),
            ranges,
            is_claimed: is_cut || 0 < left_out(roster) || !roster.lost.is_empty(),
        })
    }

    /// Returns whether people let the target have a range.
    pub fn lets(&self, range: Cidr) -> bool {
        self.ranges.iter().any(|it| it.contains(range))
    }
}

fn ranges(seen: &Seen, source: &Source) -> Vec<Cidr> {
    let declared = source.member.entry.networks.all().into_iter();
    let routable = declared.filter(|it| seen.families.contains(&it.cidr.family()));
    let accepted = seen.accepted(source);
    routable
        .flat_map(|it| accepted.map_or_else(|| vec![it.cidr], |accepted| accepted.common(it.cidr)))
        .collect()
}

fn left_out(roster: &Roster) -> usize {
    let left_out = roster.left_out.iter();
    left_out
        .filter(|it| it.reason != Reason::NotSelected)
        .count()
}
