//! The content of the box of a cluster.

use super::text_box::TextBox;
use super::{GraphCluster, GraphClusterKind, GraphNode, GraphRole, GraphSegment};
use crate::mesh::State;
use crate::text;

/// The most ranges of an anchor that are listed.
const ANCHORS: usize = 4;

impl GraphCluster {
    /// Returns what it is and how large.
    pub(super) fn facts(&self) -> String {
        let mut facts = Vec::new();
        if self.is_hub {
            facts.push("hub".to_owned());
        }
        match self.state {
            State::Joined => {}
            State::Joining => facts.push("joining".to_owned()),
            State::Leaving => facts.push("leaving".to_owned()),
        }
        match self.kind {
            GraphClusterKind::External => facts.push("external host".to_owned()),
            GraphClusterKind::Cluster if self.is_unread => facts.push("no snapshot".to_owned()),
            GraphClusterKind::Cluster if self.state != State::Joined && self.node_count == 0 => {}
            GraphClusterKind::Cluster => {
                facts.push(text::count(self.node_count, "node"));
                if self.segment_count != self.node_count {
                    facts.push(text::count(self.segment_count, "segment"));
                }
            }
        }
        if 0 < self.excluded_count {
            facts.push(format!("{} left out", self.excluded_count));
        }
        facts.join(", ")
    }

    fn class(&self) -> &'static str {
        match self.kind {
            GraphClusterKind::External => "cluster external",
            GraphClusterKind::Cluster if self.is_unread || self.state != State::Joined => {
                "cluster unread"
            }
            GraphClusterKind::Cluster if self.is_hub => "cluster hub",
            GraphClusterKind::Cluster => "cluster",
        }
    }

    /// Returns the nodes of a segment.
    fn nodes_of(&self, segment: &GraphSegment) -> impl Iterator<Item = &GraphNode> {
        let nodes = self.nodes.iter();
        nodes.filter(|it| segment.nodes.contains(&it.name))
    }

    /// Returns the nodes that other clusters do not get.
    pub(super) fn excluded(&self) -> impl Iterator<Item = &GraphNode> {
        self.nodes.iter().filter(|it| it.role == GraphRole::Excluded)
    }
}

impl GraphSegment {
    /// Returns how others reach it, and what it carries for its cluster.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if !self.location.is_empty() {
            facts.push(format!("location {}", self.location));
        }
        facts.push(match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => "behind NAT".to_owned(),
        });
        let more = self.anchors.len().saturating_sub(ANCHORS);
        let shown = self.anchors.iter().take(ANCHORS);
        facts.extend(shown.map(|it| format!("anchor of {it}")));
        if 0 < more {
            facts.push(format!("and {more} more"));
        }
        facts
    }
}

/// Returns the box of a cluster, with what the level of its graph shows.
pub(super) fn cluster_box(cluster: &GraphCluster) -> TextBox {
    let mut lines = vec![("title", cluster.name.clone()), ("note", cluster.facts())];
    let segments = cluster.segments.iter();
    let mut inside: Vec<TextBox> = Vec::new();
    match cluster.kind {
        // A host is its own only segment.
        GraphClusterKind::External => {
            lines.extend(segments.flat_map(GraphSegment::facts).map(|it| ("note", it)));
        }
        GraphClusterKind::Cluster => inside.extend(segments.map(|it| segment_box(cluster, it))),
    }
    let excluded = cluster.excluded().map(|it| match &it.reason {
        Some(reason) => ("note", format!("{}: {reason}", it.name)),
        None => ("note", it.name.clone()),
    });
    let mut left_out = vec![("name", "left out".to_owned())];
    left_out.extend(excluded);
    if 1 < left_out.len() {
        inside.push(TextBox { class: "segment excluded", lines: left_out, ..TextBox::default() });
    }
    TextBox { class: cluster.class(), cluster: Some(cluster.name.clone()), lines, inside }
}

fn segment_box(cluster: &GraphCluster, segment: &GraphSegment) -> TextBox {
    let mut lines = vec![("name", segment.leader.clone())];
    lines.extend(segment.facts().into_iter().map(|it| ("note", it)));
    let mut inside = Vec::new();
    if 1 < segment.node_count {
        inside.extend(cluster.nodes_of(segment).map(node_box));
        if inside.is_empty() {
            lines.push(("note", text::count(segment.node_count, "node")));
        }
    } else {
        let reasons = cluster.nodes_of(segment).filter_map(|it| it.reason.clone());
        lines.extend(reasons.map(|it| ("trouble", it)));
    }
    TextBox {
        class: if segment.is_behind_nat { "segment nat" } else { "segment" },
        cluster: None,
        lines,
        inside,
    }
}

fn node_box(node: &GraphNode) -> TextBox {
    let mut lines = vec![("name", node.name.clone())];
    lines.extend(node.pod_cidrs.first().map(|it| ("note", it.clone())));
    if node.role == GraphRole::Leader {
        lines.push(("note", "leader".to_owned()));
    }
    lines.extend(node.reason.clone().map(|it| ("trouble", it)));
    TextBox { class: "node", lines, ..TextBox::default() }
}
