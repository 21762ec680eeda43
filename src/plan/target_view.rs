//! The view of one target: its sources, what it can route, what it takes, and what becomes of each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::accepted::Accepted;
use super::conflicts::{Conflict, Conflicts};
use crate::fleet::{Member, MemberId};
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
    by_cluster: BTreeMap<&'f ClusterName, TargetSource<'f>>,
    /// The ranges that it accepts, by its own membership; nothing means everything.
    accepted: BTreeMap<Option<MemberId>, Accepted<'f>>,
}

/// A source of a target.
#[derive(Clone, Copy)]
pub(super) struct TargetSource<'f> {
    /// Its number.
    pub(super) id: MemberId,
    pub(super) member: &'f Member<'f>,
    /// The target's own membership in the mesh that links the two.
    pub(super) own: &'f Member<'f>,
    /// The number of that.
    pub(super) own_id: Option<MemberId>,
}

impl<'g, 'f> TargetView<'g, 'f> {
    pub(super) fn new(conflicts: &'g Conflicts<'f>, target: &'f ClusterName) -> Self {
        let fleet = conflicts.fleet;
        let mut accepted = BTreeMap::new();
        let mut own_ids = BTreeMap::new();
        for own in fleet.memberships(target) {
            let id = fleet.id(own);
            own_ids.insert(own.rank, id);
            let lists = Accepted::new(own.entry.accepted_lists());
            accepted.extend(lists.map(|lists| (id, lists)));
        }
        let sources: Vec<TargetSource> = fleet
            .sources(target)
            .map(|source| TargetSource {
                id: source.id,
                member: source.member,
                own: source.own,
                own_id: own_ids.get(&source.own.rank).copied().flatten(),
            })
            .collect();
        let by_cluster = sources.iter().map(|it| (&it.member.entry.name, *it));
        let by_cluster = by_cluster.collect();
        Self {
            conflicts,
            family: fleet.family(target),
            families: fleet.families(target),
            sources,
            by_cluster,
            accepted,
        }
    }

    /// Returns the source that is a cluster, if the target sees it.
    pub(super) fn source(&self, cluster: &ClusterName) -> Option<&TargetSource<'f>> {
        self.by_cluster.get(cluster)
    }

    /// Returns what the target takes of a source, unless that is everything.
    pub(super) fn accepted(&self, source: &TargetSource) -> Option<&Accepted<'f>> {
        self.accepted.get(&source.own_id)
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
        let mut met = conflict.what.met(self.conflicts.given(source.id));
        met.retain(|it| conflict.range.cidr.contains(*it) && self.could_get(source, *it));
        met
    }

    /// Returns what the target's own nodes have that meets ranges of a source.
    pub(super) fn local_nodes(&self, source: &TargetSource<'f>) -> &'g [Conflict<'f>] {
        let Some(own) = source.own_id else {
            return &[];
        };
        self.conflicts.local_nodes(own, &source.member.entry.name)
    }
}
