//! Folded graphs: clusters with the same links as one box, for forms that have room for few boxes.

use std::collections::BTreeMap;

use super::{
    GraphCluster, GraphClusterKind, GraphLevel, GraphLink, LINES, LinkState, MeshGraph, ProvedPaths,
};
use crate::mesh::State;
use crate::report::alike::{self, Arrow};

/// A common property of the clusters of a group: their kind, or the result of their links to a cluster.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum AlikeLabel {
    Kind(GraphClusterKind, State, bool, bool),
    Link(LinkState),
}

/// A folded graph, and the names of the clusters in each of its boxes.
pub(super) struct ListedGroups<'g> {
    pub(super) graph: MeshGraph,
    pub(super) names: Vec<Vec<&'g str>>,
}

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

    /// Returns the groups of alike clusters if lines can show their links, and a matrix would be nearly empty, as of a hub.
    pub(super) fn listed_groups(&self) -> Option<ListedGroups<'_>> {
        if 2 * self.clusters.len() < self.links.len() {
            return None;
        }
        let graph = self.folded();
        let is_drawn = graph.links.len() <= LINES
            && graph.links.iter().all(|it| it.clusters[0] != it.clusters[1]);
        let mut names: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (group, cluster) in self.groups().into_iter().zip(&self.clusters) {
            names.entry(group).or_default().push(&cluster.name);
        }
        is_drawn.then(|| ListedGroups { graph, names: names.into_values().collect() })
    }

    /// Returns the group of each cluster: the place of the first cluster in it.
    fn groups(&self) -> Vec<usize> {
        let kinds = self.clusters.iter().map(|it| Arrow {
            from: &it.name,
            to: &it.name,
            label: AlikeLabel::Kind(it.kind, it.state, it.is_hub, it.is_unread),
        });
        let links = self.links.iter().flat_map(|it| {
            let [one, other] = &it.clusters;
            let there = AlikeLabel::Link(LinkState::of(it.there, it.there));
            let back = AlikeLabel::Link(LinkState::of(it.back, it.back));
            [
                Arrow { from: one.as_str(), to: other.as_str(), label: there },
                Arrow { from: other, to: one, label: back },
            ]
        });
        let arrows: Vec<Arrow<AlikeLabel>> = kinds.chain(links).collect();
        let groups = alike::groups(&arrows);
        let places = self.places();
        let clusters = self.clusters.iter().enumerate();
        let first = clusters.map(|(place, it)| {
            let group = groups.get(&*it.name).into_iter().flatten();
            group.filter_map(|it| places.get(it).copied()).min().unwrap_or(place)
        });
        first.collect()
    }

    /// Returns the places of clusters, by name.
    fn places(&self) -> BTreeMap<&str, usize> {
        self.clusters.iter().enumerate().map(|(at, it)| (&*it.name, at)).collect()
    }

    /// Returns the links with the places of their clusters.
    pub(super) fn placed(&self) -> impl Iterator<Item = (&GraphLink, [usize; 2])> {
        let places = self.places();
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
