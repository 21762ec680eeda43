//! Folded graphs: clusters with the same links as one box, for forms that have room for few boxes.

use std::collections::BTreeMap;

use super::{
    GraphCluster, GraphClusterKind, GraphLevel, GraphLink, LinkState, MeshGraph, ProvedPaths,
};
use crate::mesh::State;

/// The results of a cluster's links in both directions, by the place of the other cluster.
type Neighbours = BTreeMap<usize, (LinkState, LinkState)>;

/// The kind of a cluster, and its links: the same for all clusters of a group.
type Signature = ((GraphClusterKind, State, bool, bool), Neighbours);

impl MeshGraph {
    /// Returns the graph without details, in which clusters of one kind with the same links to the same clusters are one.
    pub(super) fn folded(&self) -> Self {
        let group_of = self.groups();
        let mut groups: BTreeMap<usize, Vec<&GraphCluster>> = BTreeMap::new();
        for (cluster, group) in self.clusters.iter().zip(&group_of) {
            groups.entry(*group).or_default().push(cluster);
        }
        let mut links: BTreeMap<(usize, usize), (ProvedPaths, ProvedPaths)> = BTreeMap::new();
        for (link, [one, other]) in self.placed() {
            let (one, other) = (group_of[one], group_of[other]);
            let turned = other < one;
            let (there, back) = links.entry((one.min(other), one.max(other))).or_default();
            let (first, second) = if turned { (back, there) } else { (there, back) };
            first.add(link.there);
            second.add(link.back);
        }
        let names: BTreeMap<usize, String> =
            groups.iter().map(|(at, it)| (*at, group_name(it))).collect();
        let links = links.into_iter().map(|((one, other), (there, back))| GraphLink {
            clusters: [one, other].map(|it| names.get(&it).cloned().unwrap_or_default()),
            state: LinkState::of(there, back),
            there,
            back,
        });
        Self {
            origin: self.origin.clone(),
            level: GraphLevel::Clusters,
            clusters: groups.values().filter_map(|it| joined(it)).collect(),
            links: links.collect(),
        }
    }

    /// Returns the group of each cluster: the place of the first cluster in it.
    fn groups(&self) -> Vec<usize> {
        let mut neighbours = vec![Neighbours::new(); self.clusters.len()];
        for (link, [one, other]) in self.placed() {
            let there = LinkState::of(link.there, link.there);
            let back = LinkState::of(link.back, link.back);
            neighbours[one].insert(other, (there, back));
            neighbours[other].insert(one, (back, there));
        }
        let mut group_of: Vec<usize> = (0..self.clusters.len()).collect();
        // Clusters without a link between them, then those that all have the same link to each other.
        let own = LinkState::ALL.map(|it| Some((it, it)));
        for own in [None].into_iter().chain(own) {
            let mut sizes = vec![0_usize; group_of.len()];
            for group in &group_of {
                sizes[*group] += 1;
            }
            let mut firsts: BTreeMap<Signature, usize> = BTreeMap::new();
            for (place, cluster) in self.clusters.iter().enumerate() {
                if 1 < sizes[group_of[place]] {
                    continue;
                }
                let mut neighbours = neighbours[place].clone();
                if let Some(own) = own {
                    neighbours.insert(place, own);
                }
                let kind = (cluster.kind, cluster.state, cluster.is_hub, cluster.is_unread);
                group_of[place] = *firsts.entry((kind, neighbours)).or_insert(place);
            }
        }
        group_of
    }

    /// Returns the links with the places of their clusters.
    pub(super) fn placed(&self) -> impl Iterator<Item = (&GraphLink, [usize; 2])> {
        let places = self.clusters.iter().enumerate();
        let places: BTreeMap<&str, usize> = places.map(|(at, it)| (&*it.name, at)).collect();
        self.links.iter().filter_map(move |link| {
            let [one, other] = link.clusters.each_ref().map(|it| places.get(&**it).copied());
            Some((link, [one?, other?]))
        })
    }
}

impl ProvedPaths {
    fn add(&mut self, others: Self) {
        self.declared += others.declared;
        self.working += others.working;
        self.assumed += others.assumed;
    }
}

fn group_name(clusters: &[&GraphCluster]) -> String {
    match clusters {
        [] => String::new(),
        [only] => only.name.clone(),
        [first, others @ ..] => format!("{} and {} more", first.name, others.len()),
    }
}

fn joined(clusters: &[&GraphCluster]) -> Option<GraphCluster> {
    let first = *clusters.first()?;
    let sum = |count: fn(&GraphCluster) -> usize| clusters.iter().map(|it| count(it)).sum();
    Some(GraphCluster {
        name: group_name(clusters),
        node_count: sum(|it| it.node_count),
        excluded_count: sum(|it| it.excluded_count),
        segment_count: sum(|it| it.segment_count),
        segments: Vec::new(),
        nodes: Vec::new(),
        ..first.clone()
    })
}
