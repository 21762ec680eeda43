//! Graphs: clusters with their segments and nodes, and the links between clusters by what is proved about them.
//!
//! All texts in a graph are escaped for a terminal; each form of output escapes them for its own syntax.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::mesh::{AddressClass, State};
use crate::report::origin::ResultOrigin;
use crate::schema::ExampleFile;
use crate::text;

pub mod dot;
pub mod mermaid;
pub mod svg;

mod collected;
mod folded;
mod layout;
mod matrix;
mod parts;
mod text_box;

pub use collected::GraphInputs;

/// The most boxes that a default level may have.
const BOXES: usize = 60;

/// The most links that are drawn as lines.
const LINES: usize = 30;

/// The most links that other programs draw: the limit of Mermaid, and what Graphviz takes long for.
const MOST_LINKS: usize = 500;

/// Clusters, and the links between them.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Graph", example = ExampleFile(include_str!("graph/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct MeshGraph {
    /// The meshes, the commit and the snapshots that the graph was made from. Only pictures show it, so that equal files give
    /// equal JSON.
    #[serde(skip)]
    pub origin: Option<ResultOrigin>,
    /// The level of detail.
    pub level: GraphLevel,
    /// The clusters and external peers, hubs first, then by name.
    pub clusters: Vec<GraphCluster>,
    /// Each linked pair of clusters once, in the order of the clusters.
    pub links: Vec<GraphLink>,
}

/// The level of detail of a graph.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphLevel {
    /// Clusters only.
    Clusters,
    /// The segments of each cluster.
    Segments,
    /// The nodes of each segment, and the excluded ones.
    Nodes,
}

/// A cluster or an external peer.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Cluster")]
#[serde(rename_all = "camelCase")]
pub struct GraphCluster {
    /// Its name.
    pub name: String,
    /// Whether it is a cluster or a host.
    pub kind: GraphClusterKind,
    /// Whether it exchanges Peers with the clusters that it is linked to, in at least one mesh.
    pub state: State,
    /// Whether it is a hub of a mesh.
    pub is_hub: bool,
    /// Whether its snapshot is missing or unusable, so that no node is known.
    pub is_unread: bool,
    /// The meshes with an entry for it.
    pub meshes: Vec<String>,
    /// The granularity with which it is rendered, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<String>,
    /// The number of its nodes.
    pub node_count: usize,
    /// The number of its nodes that are not given to other clusters.
    pub excluded_count: usize,
    /// The number of its segments, each of which is a Peer in other clusters.
    pub segment_count: usize,
    /// The ranges that it declares.
    pub ranges: Vec<GraphRange>,
    /// The Peers that it gets, by the cluster to which they lead: the one of the node with the key, else the one of their label.
    pub gets: Vec<GraphPeers>,
    /// Its segments; none on the level `clusters`, and none of a cluster that is shown only because of its links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<GraphSegment>,
    /// Its nodes by name, only on the level `nodes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<GraphNode>,
}

/// Whether a member of a mesh is a cluster or a host.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[schemars(rename = "ClusterKind")]
#[serde(rename_all = "lowercase")]
pub enum GraphClusterKind {
    /// A cluster.
    Cluster,
    /// A host outside of all clusters, from `spec.externalPeers`.
    External,
}

/// A range that a cluster declares.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Range")]
pub struct GraphRange {
    /// The range.
    pub range: String,
    /// The use of its addresses. Missing in `allowedNetworks`, which are for all uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<AddressClass>,
}

/// Peers that lead to one cluster.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Peers")]
pub struct GraphPeers {
    /// The cluster.
    pub from: String,
    /// Their number.
    pub peers: usize,
}

/// A segment: nodes behind one tunnel end, which is a Peer in other clusters.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Segment")]
#[serde(rename_all = "camelCase")]
pub struct GraphSegment {
    /// The node at the tunnel end.
    pub leader: String,
    /// The location of this node; empty if it has none.
    pub location: String,
    /// The endpoint at which others dial it; none behind NAT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whether other clusters cannot dial it, so that it must connect first.
    pub is_behind_nat: bool,
    /// The ranges of the whole cluster that it carries for other clusters, in at least one of them.
    pub anchors: Vec<String>,
    /// The ranges of its nodes.
    pub ranges: Vec<String>,
    /// The number of its nodes.
    pub node_count: usize,
    /// Its nodes by name, only on the level `nodes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

/// A node of a snapshot.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Node")]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Its part in the mesh.
    pub role: GraphRole,
    /// Its location; empty if it has none.
    pub location: String,
    /// Its pod CIDRs, as it reports them.
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    /// Its internal address, as Kilo uses it.
    #[serde(rename = "internalIP", skip_serializing_if = "Option::is_none")]
    pub internal_ip: Option<String>,
    /// The reason why other clusters do not get it, or why no path of it can be proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The part of a node in a mesh.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(rename = "Role")]
#[serde(rename_all = "lowercase")]
pub enum GraphRole {
    /// It is the tunnel end of its segment.
    Leader,
    /// The leader of its segment passes packets on to it.
    Member,
    /// Other clusters do not get it.
    Excluded,
}

/// A link between two clusters.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Link")]
pub struct GraphLink {
    /// Both clusters.
    pub clusters: [String; 2],
    /// The result of the proof.
    pub state: LinkState,
    /// The paths from the first cluster to the second.
    pub there: ProvedPaths,
    /// The paths from the second cluster to the first.
    pub back: ProvedPaths,
}

/// The result of the proof of all declared paths of a link.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LinkState {
    /// Paths of both directions fail.
    Fails,
    /// Paths of only one direction fail.
    OneWay,
    /// Unknown: no path is declared, because a cluster has no snapshot or no node that takes part.
    Unproved,
    /// All paths work, some of them under a condition that no snapshot shows.
    Assumed,
    /// All paths work.
    Works,
}

/// The declared paths of a link in one direction.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(rename = "Paths")]
pub struct ProvedPaths {
    /// The number of declared paths.
    pub declared: u64,
    /// Those that work.
    pub working: u64,
    /// Those that work under a condition that no snapshot shows.
    pub assumed: u64,
}

impl GraphLevel {
    /// All levels, the most detailed first.
    const ALL: [Self; 3] = [Self::Nodes, Self::Segments, Self::Clusters];
}

impl LinkState {
    /// All results, the worst first.
    pub const ALL: [Self; 5] =
        [Self::Fails, Self::OneWay, Self::Unproved, Self::Assumed, Self::Works];

    /// Returns the result of the paths of both directions.
    fn of(there: ProvedPaths, back: ProvedPaths) -> Self {
        match (there.failing(), back.failing()) {
            (0, 0) if there.declared + back.declared == 0 => Self::Unproved,
            (0, 0) if 0 < there.assumed + back.assumed => Self::Assumed,
            (0, 0) => Self::Works,
            (0, _) | (_, 0) => Self::OneWay,
            _ => Self::Fails,
        }
    }

    /// Returns its name, as a class of styles.
    fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::OneWay => "one-way",
            Self::Unproved => "unproved",
            Self::Assumed => "assumed",
            Self::Works => "works",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::OneWay => "fails in one direction",
            Self::Unproved => "unknown",
            Self::Assumed => "depends on an assumption",
            Self::Works => "works",
        }
    }
}

impl ProvedPaths {
    /// Returns the number of paths that fail.
    fn failing(self) -> u64 {
        self.declared.saturating_sub(self.working + self.assumed)
    }
}

impl GraphLink {
    /// Returns its paths in one line.
    fn label(&self) -> String {
        let (there, back) = (self.there, self.back);
        let declared = there.declared + back.declared;
        match self.state {
            LinkState::Unproved => "unknown".to_owned(),
            LinkState::Works if declared == 1 => "1 path works".to_owned(),
            LinkState::Works => format!("{declared} paths work"),
            LinkState::Assumed => format!("{} of {declared} assumed", there.assumed + back.assumed),
            LinkState::Fails | LinkState::OneWay => {
                format!("{} of {declared} fail", there.failing() + back.failing())
            }
        }
    }

    /// Returns it with the ends in an order in which its failing direction comes first, if only one fails.
    fn directed(&self) -> [&str; 2] {
        let [one, other] = &self.clusters;
        if self.there.failing() == 0 && 0 < self.back.failing() {
            [other, one]
        } else {
            [one, other]
        }
    }
}

impl MeshGraph {
    /// Returns the graph of some clusters, on a level or on the most detailed that has few boxes: these clusters, and
    /// without details those that are linked to them.
    #[must_use]
    pub fn shown(mut self, focus: &BTreeSet<String>, level: Option<GraphLevel>) -> Self {
        if !focus.is_empty() {
            self.links.retain(|it| it.clusters.iter().any(|it| focus.contains(it)));
            let linked = self.links.iter().flat_map(|it| &it.clusters);
            let kept: BTreeSet<String> = linked.chain(focus).cloned().collect();
            self.clusters.retain(|it| kept.contains(&it.name));
            for cluster in &mut self.clusters {
                if !focus.contains(&cluster.name) {
                    cluster.segments.clear();
                    cluster.nodes.clear();
                }
            }
        }
        let mut levels = GraphLevel::ALL.into_iter();
        let few = levels.find(|it| self.boxes(*it) <= BOXES);
        self.at(level.or(few).unwrap_or(GraphLevel::Clusters))
    }

    /// Returns the same without what a level does not show.
    #[must_use]
    fn at(mut self, level: GraphLevel) -> Self {
        for cluster in &mut self.clusters {
            if level < GraphLevel::Nodes {
                cluster.nodes.clear();
                cluster.segments.iter_mut().for_each(|it| it.nodes.clear());
            }
            if level < GraphLevel::Segments {
                cluster.segments.clear();
            }
        }
        Self { level, ..self }
    }

    /// Returns the number of boxes on a level.
    fn boxes(&self, level: GraphLevel) -> usize {
        let boxes = self.clusters.iter().map(|it| match level {
            GraphLevel::Clusters => 1,
            GraphLevel::Segments => it.segments.len().max(1),
            GraphLevel::Nodes => it.nodes.len().max(1),
        });
        boxes.sum()
    }

    /// Returns the results of links that occur, the worst first.
    fn states(&self) -> impl Iterator<Item = LinkState> {
        let states = LinkState::ALL.into_iter();
        states.filter(|state| self.links.iter().any(|it| it.state == *state))
    }

    /// Returns it in one sentence.
    fn summary(&self) -> String {
        let states = self.states().map(|state| {
            let links = self.links.iter().filter(|it| it.state == state).count();
            format!("{links}: {}", state.words())
        });
        let states: Vec<String> = states.collect();
        let clusters = text::count(self.clusters.len(), "cluster");
        let links = text::count(self.links.len(), "link");
        if states.is_empty() {
            return format!("{clusters}, {links}");
        }
        format!("{clusters}, {links} ({})", states.join(", "))
    }
}

#[cfg(test)]
mod tests;
