//! Single points of failure.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use rayon::prelude::*;

use super::linked_peers::{LinkedPeer, linked_peers};
use super::links::MeshLinks;
use crate::agent::fabric::{Fabric, NodeRef, Owner, SiteId};
use crate::kilo::id::NodeId;
use crate::net::Cidr;

/// A node whose loss cuts paths until its cluster is rendered again.
#[derive(Clone, Debug)]
pub struct SinglePoint {
    /// The node.
    pub at: NodeRef,
    /// The clusters that lose something.
    pub viewers: BTreeSet<SiteId>,
    /// Declared ranges that it alone carries for them.
    pub ranges: BTreeSet<Cidr>,
    /// Nodes whose pods are reached only through this node.
    pub members: BTreeSet<NodeId>,
}

type Points = BTreeMap<NodeRef, SinglePoint>;

/// Finds the nodes without which clusters that are linked with theirs lose something.
pub(super) fn single_points(fabric: &Fabric, links: &MeshLinks) -> Vec<SinglePoint> {
    let sites: Vec<SiteId> = fabric.sites.ids().collect();
    let found = sites.into_par_iter().fold(Points::new, |mut points, site| {
        add_points(fabric, site, links, &mut points);
        points
    });
    let points = found.reduce(Points::new, |mut points, others| {
        for (at, point) in others {
            match points.entry(at) {
                Entry::Vacant(entry) => drop(entry.insert(point)),
                Entry::Occupied(mut entry) => entry.get_mut().add(point),
            }
        }
        points
    });
    points.into_values().collect()
}

/// Adds the nodes of others without which a cluster loses something.
fn add_points(fabric: &Fabric, viewer: SiteId, links: &MeshLinks, points: &mut Points) {
    for LinkedPeer { share, at, .. } in linked_peers(fabric, viewer, links) {
        let home = fabric.site(at.site);
        // An external peer always consists of one host.
        if home.cluster.is_external() {
            continue;
        }
        // Declared ranges, or parts of them, that it carries for all.
        let ranges = share.kept().map(|it| it.allowed.interface.network);
        let is_shared = |range: &Cidr| {
            let is_for_all = home.is_for_all(range.first());
            let owner = is_for_all.then(|| home.owner(range.first())).flatten();
            matches!(owner, Some(Owner::Services | Owner::Network))
        };
        let mut ranges = ranges.filter(is_shared).peekable();
        let segment = home.segment(at.node).map(|it| &home.model.topology.segments[it]);
        let members = segment.into_iter().flat_map(|it| &it.members).copied();
        let mut members = members.filter(|it| *it != at.node).peekable();
        if ranges.peek().is_none() && members.peek().is_none() {
            continue;
        }
        // Nodes that are not selected give nothing.
        let mut given: Vec<Cidr> = share.kept().map(|it| it.allowed.interface.network).collect();
        given.sort_unstable();
        let is_given = |node: &NodeId| {
            let pods = home.node(*node).kilo.pod_cidr;
            pods.is_some_and(|pods| {
                given.binary_search(&pods).is_ok() || given.iter().any(|it| it.contains(pods))
            })
        };
        let mut members = members.filter(is_given).peekable();
        if ranges.peek().is_none() && members.peek().is_none() {
            continue;
        }
        let point = points.entry(at).or_insert_with(|| SinglePoint {
            at,
            viewers: BTreeSet::new(),
            ranges: BTreeSet::new(),
            members: BTreeSet::new(),
        });
        point.viewers.insert(viewer);
        point.ranges.extend(ranges);
        point.members.extend(members);
    }
}

impl SinglePoint {
    /// Adds what others lose with the same node.
    fn add(&mut self, other: Self) {
        self.viewers.extend(other.viewers);
        self.ranges.extend(other.ranges);
        self.members.extend(other.members);
    }
}
