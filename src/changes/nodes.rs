//! Causes in nodes: who takes part, and what nodes report about themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::Versions;
use super::cause::{Cause, NamedNode, NodeChange};
use super::clusters::Counterparts;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::Segments;
use crate::kilo::node::KiloNode;
use crate::kilo::reason::ExcludedReason;
use crate::kilo::topology::TopologySegment;
use crate::net::{Cidr, without};
use crate::wireguard::Endpoint;

/// Finds the causes in the nodes of every cluster that is in both versions.
pub(super) fn causes(fleets: Versions<&Fleet>, counterparts: &Counterparts) -> Vec<Cause> {
    counterparts.members(fleets).flat_map(|it| of_cluster(it.before, it.after)).collect()
}

fn of_cluster(old: &Member, new: &Member) -> Vec<Cause> {
    if old.file.snapshot.nodes == new.file.snapshot.nodes
        && old.membership.usable == new.membership.usable
    {
        return Vec::new();
    }
    let names = [old, new].map(|it| it.cluster.nodes.iter().map(|it| &*it.node.name));
    let [had, has] = names;
    let mut names: BTreeSet<&str> = had.chain(has).collect();
    let endpoints = [old, new].map(endpoints);
    let mut causes = Vec::new();
    for (from, to) in renamed(old, new) {
        names.retain(|it| ![from, to].contains(it));
        causes.push(Cause::NodeRenamed {
            cluster: new.entry.name.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
    }
    for name in names {
        let mut changes = Vec::new();
        let [was, is] = [old, new].map(|it| it.membership.usable.contains(name));
        match (was, is) {
            (false, false) => {}
            (true, false) => changes.extend(leaves(name, new)),
            (false, true) => changes.extend(comes(name, old)),
            (true, true) => {
                if let (Some(was), Some(is)) = (old.cluster.node(name), new.cluster.node(name)) {
                    let [from, to] = endpoints.each_ref().map(|it| it.get(name).copied());
                    // A node that does not lead has no endpoint of its own.
                    if let (Some(from), Some(to)) = (from, to)
                        && from != to
                    {
                        changes
                            .push(NodeChange::NewEndpoint { from: from.cloned(), to: to.cloned() });
                    }
                    changes.extend(stays(was, is, new.entry.name.is_external()));
                }
            }
        }
        let node = NamedNode { cluster: new.entry.name.clone(), node: name.to_owned() };
        causes.extend(changes.into_iter().map(|change| Cause::Node { node: node.clone(), change }));
    }
    let [from, to] = [old, new].map(|it| it.cluster.topology.granularity);
    let is_reported = !new.cluster.nodes.is_empty();
    // The entry is a setting.
    if is_reported && from != to && old.entry.granularity == new.entry.granularity {
        causes.push(Cause::OtherGranularity { cluster: new.entry.name.clone(), from, to });
    }
    causes.extend(leaders(old, new));
    causes
}

/// Returns the nodes that take part in both versions under different names, with the same key: the old name and the new one.
fn renamed<'m>(old: &'m Member, new: &'m Member) -> Vec<(&'m str, &'m str)> {
    let only_in = |one: &'m Member<'m>, other: &Member| {
        let nodes = one.cluster.nodes.iter().filter(|it| {
            let name = &*it.node.name;
            other.cluster.node(name).is_none() && one.membership.usable.contains(name)
        });
        nodes.filter_map(|it| Some((it.kilo.key?, &*it.node.name))).collect::<Vec<_>>()
    };
    let gone: BTreeMap<_, &str> = only_in(old, new).into_iter().collect();
    let come = only_in(new, old).into_iter();
    come.filter_map(|(key, to)| Some((*gone.get(&key)?, to))).collect()
}

/// Returns where each leader is dialled.
fn endpoints<'m>(member: &'m Member) -> BTreeMap<&'m str, Option<&'m Endpoint>> {
    let candidates = member.membership.candidates.iter();
    let endpoints = candidates.map(|it| (it.leader.as_str(), it.endpoint.as_ref()));
    endpoints.collect()
}

fn leaves(node: &str, new: &Member) -> Option<NodeChange> {
    if new.cluster.node(node).is_none() {
        return Some(NodeChange::Left);
    }
    Some(NodeChange::Excluded(reason(node, new)?))
}

fn comes(node: &str, old: &Member) -> Option<NodeChange> {
    if old.cluster.node(node).is_none() {
        return Some(NodeChange::Joined);
    }
    Some(NodeChange::Back(reason(node, old)?))
}

/// Returns why a node is excluded.
fn reason(node: &str, member: &Member) -> Option<ExcludedReason> {
    Some(member.membership.excluded.iter().find(|it| it.node == node)?.reason.clone())
}

/// Finds what a node that takes part in both versions reports differently.
fn stays(was: &ClusterNode, is: &ClusterNode, is_external: bool) -> Vec<NodeChange> {
    let (was, is) = (&*was.kilo, &*is.kilo);
    let mut changes = Vec::new();
    if was.key != is.key {
        changes.push(NodeChange::NewKey);
    }
    let (from, to) = (addresses(was), addresses(is));
    if from != to {
        changes.push(NodeChange::NewAddress { from, to });
    }
    if was.location != is.location {
        changes.push(NodeChange::OtherLocation {
            from: was.location.clone(),
            to: is.location.clone(),
        });
    }
    // The ranges of an external peer are settings already.
    if is_external {
        return changes;
    }
    let (had, has): (Vec<Cidr>, Vec<Cidr>) = (was.pods().collect(), is.pods().collect());
    let (gained, lost) = (without(&has, &had), without(&had, &has));
    if !gained.is_empty() {
        changes.push(NodeChange::RangesGained(gained));
    }
    if !lost.is_empty() {
        changes.push(NodeChange::RangesLost(lost));
    }
    changes
}

/// Returns the addresses of a node: on its network, and in Kilo's subnet.
fn addresses(kilo: &KiloNode) -> Vec<Cidr> {
    let wireguard = kilo.wireguard_ip().map(|it| it.address);
    kilo.internal_address().into_iter().chain(wireguard).map(Cidr::host).collect()
}

/// Finds the locations with another leader. A node that is a segment of its own always leads it.
fn leaders(old: &Member, new: &Member) -> Vec<Cause> {
    let had = leaders_by_location(&old.cluster.topology.segments, old);
    let has = leaders_by_location(&new.cluster.topology.segments, new);
    let changed = has.into_iter().filter_map(|(location, to)| {
        let from = *had.get(location)?;
        (from != to).then(|| Cause::LeaderChanged {
            cluster: new.entry.name.clone(),
            location: location.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    });
    changed.collect()
}

fn leaders_by_location<'m>(
    segments: &'m Segments<TopologySegment>,
    member: &'m Member,
) -> BTreeMap<&'m str, &'m str> {
    let leaders = segments.iter().filter_map(|segment| {
        let location = segment.key.strip_prefix("location:")?;
        let leader = &member.cluster.nodes[segment.leader.node()];
        Some((location, leader.node.name.as_str()))
    });
    leaders.collect()
}
