//! A cluster under one entry of a mesh: its nodes as they are read and checked, how it is cut into
//! segments, and which of its declared ranges belong to no node.
//!
//! Whatever asks for one of these takes it from here, so that a plan and its proof cannot differ in
//! them.

use super::check::{self, NodeChecks};
use super::node::KiloNode;
use super::segment::{self, Segment, Segments};
use crate::granularity::Granularity;
use crate::mesh::{Entry, Networks};
use crate::net::Cidr;
use crate::snapshot::{Node, Snapshot};

/// A cluster under one entry.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// What the mesh says of it.
    pub entry: &'a Entry,
    /// Its nodes, in order of name.
    pub nodes: Vec<ClusterNode<'a>>,
    /// The granularity that more than half of its nodes name.
    pub voted: Option<Granularity>,
    /// How it is cut: as the entry says, else as more than half of its nodes do, else as Kilo does
    /// by default.
    pub granularity: Granularity,
    /// What it is cut into.
    pub segments: Segments,
    /// The declared ranges of the cluster as a whole.
    pub shared: Vec<Cidr>,
}

/// A node, read once for all purposes.
#[derive(Debug)]
pub struct ClusterNode<'a> {
    /// As the snapshot has it.
    pub node: &'a Node,
    /// As Kilo reads it.
    pub kilo: KiloNode,
    /// What the node checks find.
    pub checked: NodeChecks,
}

impl<'a> Cluster<'a> {
    /// Reads `snapshot` as `entry` wants it read.
    pub fn new(entry: &'a Entry, snapshot: &'a Snapshot) -> Self {
        let nodes: Vec<ClusterNode> = snapshot
            .nodes
            .iter()
            .map(|node| ClusterNode {
                node,
                kilo: KiloNode::read(node, &entry.topology_label),
                checked: NodeChecks::of(entry, node),
            })
            .collect();
        let voted = vote(&nodes);
        let granularity = entry.granularity.or(voted).unwrap_or(Granularity::Location);
        let readings: Vec<(&str, &KiloNode)> = nodes
            .iter()
            .map(|it| (it.node.name.as_str(), &it.kilo))
            .collect();
        let segments = segment::segments(&readings, granularity);
        let mut cluster = Self {
            entry,
            nodes,
            voted,
            granularity,
            segments,
            shared: Vec::new(),
        };
        cluster.shared = cluster.shared();
        cluster
    }

    /// Returns the nodes that have a say in how their cluster is cut.
    pub fn voters(&self) -> impl Iterator<Item = &ClusterNode<'a>> {
        voters(&self.nodes)
    }

    /// Returns the ranges that belong to the cluster and not to a node.
    ///
    /// A flat list does not say which these are: an entry counts as the nodes' if more than half of
    /// the segments have an address in it. The operator asks for any segment, so that one node can
    /// withdraw a range. Nodes are not counted, as only the leader of a segment has a `WireGuard`
    /// address.
    fn shared(&self) -> Vec<Cidr> {
        let allowed = match &self.entry.networks {
            Networks::Typed {
                services,
                additional,
                ..
            } => {
                let ranges = services.iter().chain(additional);
                return ranges.map(|range| range.cidr).collect();
            }
            Networks::Flat { allowed } => allowed,
        };
        let segments: Vec<Vec<Cidr>> = self
            .segments
            .formed
            .iter()
            .filter_map(|segment| self.addresses(segment))
            .collect();
        allowed
            .iter()
            .map(|range| range.cidr)
            .filter(|range| {
                let inside = segments
                    .iter()
                    .filter(|addresses| addresses.iter().any(|it| range.contains(*it)))
                    .count();
                2 * inside <= segments.len()
            })
            .collect()
    }

    /// Returns what the selected nodes of a segment have of their own; nothing of a segment that
    /// cannot be given to others.
    fn addresses(&self, segment: &Segment) -> Option<Vec<Cidr>> {
        let leader = self.nodes.get(segment.leader)?;
        let speaker = check::speaker(self.entry, leader.node, &leader.checked).ok()?;
        let selected: Vec<&ClusterNode> = segment
            .members
            .iter()
            .filter_map(|&member| self.nodes.get(member))
            .filter(|it| self.entry.selector.matches(&it.node.labels))
            .collect();
        if selected.is_empty() {
            return None;
        }
        let mut addresses = vec![Cidr::host(speaker.wireguard)];
        for member in selected {
            // A member without a usable pod CIDR gives nothing at all.
            if let Ok(pods) = &member.checked.pods {
                addresses.extend(&pods.used);
                let hosts = check::internal_addresses(member.node, &member.kilo);
                addresses.extend(hosts.into_iter().map(Cidr::host));
            }
        }
        Some(addresses)
    }
}

/// Returns the granularity that more than half of the nodes name; those that say nothing count too.
///
/// Nodes that could be peered in no granularity have no say. Whether their ranges are the declared
/// ones does not matter here: a slip in these must not look like another granularity.
fn vote(nodes: &[ClusterNode]) -> Option<Granularity> {
    let mut voters: Vec<&ClusterNode> = voters(nodes).collect();
    if voters.is_empty() {
        // No node can be peered. The reasons shall at least fit what the nodes say.
        voters.extend(nodes.iter().filter(|it| it.kilo.granularity.is_some()));
    }
    let choices = [Granularity::Location, Granularity::Full, Granularity::Cross];
    choices.into_iter().find(|&choice| {
        let agreeing = voters
            .iter()
            .filter(|it| it.kilo.granularity == Some(choice));
        voters.len() < 2 * agreeing.count()
    })
}

fn voters<'n, 'a>(nodes: &'n [ClusterNode<'a>]) -> impl Iterator<Item = &'n ClusterNode<'a>> {
    nodes
        .iter()
        .filter(|it| !it.kilo.stale && it.checked.is_sound())
}
