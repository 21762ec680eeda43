//! The view of one target: its sources, what it can route, what it takes, and what becomes of each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::accepted::Accepted;
use super::conflicts::{Conflict, Conflicts};
use super::peer_set::Holes;
use super::withheld::TargetReason;
use super::{accepted, captured, loops};
use crate::fleet::Member;
use crate::membership::PeerCandidate;
use crate::name::ClusterName;
use crate::net::{Cidr, Family, family};

/// A target before anything is settled.
pub(super) struct TargetView<'g, 'f> {
    pub(super) conflicts: &'g Conflicts<'f>,
    /// The address family that its Kilo can route.
    pub(super) family: Option<Family>,
    /// The families that its Kilo could route if its nodes reported them.
    pub(super) families: BTreeSet<Family>,
    /// The sources that it sees, in order of rank.
    pub(super) sources: Vec<TargetSource<'f>>,
    /// The index of each cluster in these.
    by_cluster: BTreeMap<usize, usize>,
    /// The ranges that it accepts, by the index of its own membership; nothing means everything.
    accepted: BTreeMap<Option<usize>, Accepted<'f>>,
}

/// A source of a target.
#[derive(Clone, Copy)]
pub(super) struct TargetSource<'f> {
    /// Its place in the fleet.
    pub(super) index: usize,
    pub(super) member: &'f Member<'f>,
    /// The target's own membership in the mesh that links the two.
    pub(super) own: &'f Member<'f>,
    /// The place of that in the fleet.
    pub(super) own_index: Option<usize>,
}

/// The Peers and ranges of a source that are withheld from a target.
#[derive(Default)]
pub(super) struct SourceDecision {
    /// The candidates.
    pub(super) excluded: BTreeSet<usize>,
    /// The ranges.
    pub(super) withheld: BTreeSet<Cidr>,
    /// The parts that are cut out of the other ranges.
    pub(super) holes: Holes,
    /// The findings about both.
    pub(super) reasons: Vec<Arc<TargetReason>>,
}

/// The decisions for a target, by the index of the source; most sources have none.
pub(super) type Decisions = BTreeMap<usize, SourceDecision>;

impl<'g, 'f> TargetView<'g, 'f> {
    pub(super) fn new(conflicts: &'g Conflicts<'f>, target: &'f ClusterName) -> Self {
        let fleet = conflicts.fleet;
        let mut accepted = BTreeMap::new();
        let mut own_indices = BTreeMap::new();
        for own in fleet.memberships(target) {
            let index = fleet.position(own);
            own_indices.insert(own.rank, index);
            let lists = Accepted::new(fleet.accepted(own));
            accepted.extend(lists.map(|lists| (index, lists)));
        }
        let sources: Vec<TargetSource> = fleet
            .sources(target)
            .map(|(index, member, own)| TargetSource {
                index,
                member,
                own,
                own_index: own_indices.get(&own.rank).copied().flatten(),
            })
            .collect();
        let by_cluster = sources
            .iter()
            .enumerate()
            .filter_map(|(position, it)| Some((conflicts.cluster(it.member)?, position)))
            .collect();
        Self {
            conflicts,
            family: fleet.family(target),
            families: fleet.families(target),
            sources,
            by_cluster,
            accepted,
        }
    }

    /// Returns what is left out, and why, except what follows from keys.
    ///
    /// Each check sees everything that the sources offer, not the rest of another check, so no
    /// result depends on another one.
    pub(super) fn decisions(&self) -> Decisions {
        let mut decisions = Decisions::new();
        for source in &self.sources {
            loops::of_source(self, source, &mut decisions);
            captured::settle(self, source, &mut decisions);
        }
        for source in &self.sources {
            self.count_rangeless(source, &mut decisions);
        }
        for source in &self.sources {
            accepted::settle(self, source, &mut decisions);
        }
        decisions
    }

    /// Returns the source that is a cluster, if the target sees it.
    pub(super) fn source(&self, cluster: usize) -> Option<&TargetSource<'f>> {
        self.sources.get(*self.by_cluster.get(&cluster)?)
    }

    /// Returns what the target takes of a source, unless that is everything.
    pub(super) fn accepted(&self, source: &TargetSource) -> Option<&Accepted<'f>> {
        self.accepted.get(&source.own_index)
    }

    /// Returns whether the target's Kilo can route a range.
    pub(super) fn can_route(&self, range: Cidr) -> bool {
        self.family.is_none_or(|family| range.family() == family)
    }

    /// Returns whether the target could get a range that holds an address.
    pub(super) fn could_reach(&self, source: &TargetSource, address: IpAddr) -> bool {
        self.family.is_none_or(|it| it == family(address))
            && self.could_get(source, Cidr::host(address))
    }

    /// Returns whether the target takes a range of a source, and can route it.
    pub(super) fn could_get(&self, source: &TargetSource, range: Cidr) -> bool {
        let accepted = self.accepted(source);
        self.can_route(range) && accepted.is_none_or(|it| it.takes(range))
    }

    /// Returns what something meets of the ranges that the target could get of a source: those that
    /// are in the declared range of the conflict, as there is a conflict for each.
    pub(super) fn met(&self, source: &TargetSource, conflict: &Conflict) -> Vec<Cidr> {
        let given = self.conflicts.given(source.index);
        let mut met = given
            .map(|given| conflict.what.met(given))
            .unwrap_or_default();
        met.retain(|it| conflict.range.cidr.contains(*it) && self.could_get(source, *it));
        met
    }

    /// Returns what the target's own nodes have that meets ranges of a source.
    pub(super) fn local_nodes(&self, source: &TargetSource<'f>) -> &'g [Conflict<'f>] {
        let Some(own) = source.own_index else {
            return &[];
        };
        self.conflicts
            .local_nodes(own, self.conflicts.cluster(source.member))
    }

    /// Counts the Peers that have no ranges left because of claims of nodes, of the source or of
    /// the target. The nodes of the target also determine which families its Kilo can route.
    fn count_rangeless(&self, source: &TargetSource, decisions: &mut Decisions) {
        let own_loops = self.conflicts.own_loops(source.index);
        let decision = decisions.get(&source.index);
        if decision.is_none() && own_loops.withheld.is_empty() && self.families.len() < 2 {
            return;
        }
        let is_withheld = |it: &Cidr| {
            let of_target = decision.is_some_and(|decision| decision.withheld.contains(it));
            of_target || own_loops.withheld.contains(it)
        };
        let is_bare = |candidate: &PeerCandidate| {
            // `localNetworks` are not claims of nodes.
            let is_local = |it: &&Cidr| {
                let mut local = source.own.entry.local_networks.iter();
                local.any(|network| network.cidr.contains(**it))
            };
            let mut claims = candidate
                .claims
                .iter()
                .filter(|it| !is_local(it))
                .filter(|it| self.families.contains(&it.family()))
                .peekable();
            claims.peek().is_some() && claims.all(|it| !self.can_route(*it) || is_withheld(it))
        };
        let candidates = source.member.membership.candidates.iter().enumerate();
        let (mut peers, mut nodes) = (0, 0);
        for (index, candidate) in candidates {
            let is_dropped = decision.is_some_and(|decision| decision.excluded.contains(&index));
            if !is_dropped && !own_loops.excluded.contains(&index) && is_bare(candidate) {
                peers += 1;
                nodes += candidate.nodes;
            }
        }
        if 0 < peers {
            let decision = decisions.entry(source.index).or_default();
            let reason = TargetReason::Rangeless { peers, nodes };
            decision.reasons.push(Arc::new(reason));
        }
    }
}
