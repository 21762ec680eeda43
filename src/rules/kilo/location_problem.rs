//! Locations: do nodes share one by mistake, and which node leads it?

use std::collections::{BTreeMap, BTreeSet};

use super::inspected_cluster::InspectedCluster;
use crate::granularity::Granularity;
use crate::kilo::id::NodeId;
use crate::kilo::location_label::LOCATION_LABELS;
use crate::kilo::node::{InternalIp, KiloNode, annotation};
use crate::snapshot::Node;

/// A problem of the locations of one cluster.
pub(super) enum LocationProblem<'f> {
    /// A node without an internal address.
    NoInternalAddress(AddresslessNode<'f>),
    /// A node whose empty annotation hides its label.
    HiddenLabel {
        /// The node.
        node: &'f Node,
        /// The value of the label.
        value: &'f str,
    },
    /// A node without annotation and label, unlike others.
    Unnamed(&'f Node),
    /// All nodes are one location, and another label would tell them apart.
    OtherLabel(OtherLabel<'f>),
    /// A location in which more than one node volunteers to lead.
    SeveralLeaders(SeveralLeaders<'f>),
    /// A location whose only WireGuard address is not on the node that Kilo probably elects.
    UncertainLeader(UncertainLeader<'f>),
}

/// A node without an internal address in a location in which another has one.
pub(super) struct AddresslessNode<'f> {
    /// The node.
    pub(super) node: &'f Node,
    /// The other one.
    pub(super) other: &'f Node,
    /// Whether that makes the agents of the location crash; else it is a segment of its own.
    pub(super) agents_crash: bool,
}

/// A label that distinguishes nodes of one location.
pub(super) struct OtherLabel<'f> {
    /// The label.
    pub(super) label: &'static str,
    /// Its values; at least two.
    pub(super) values: BTreeSet<&'f str>,
    /// The first node with it.
    pub(super) first: &'f Node,
    /// The number of nodes in the location.
    pub(super) nodes: usize,
}

/// A location in which more than one node volunteers to lead.
pub(super) struct SeveralLeaders<'f> {
    /// The location.
    pub(super) location: &'f str,
    /// The node that leads.
    pub(super) leader: &'f Node,
    /// All that volunteer; at least two.
    pub(super) volunteers: Vec<&'f Node>,
}

/// A location whose only WireGuard address is not on the node that Kilo probably elects.
pub(super) struct UncertainLeader<'f> {
    /// The location.
    pub(super) location: &'f str,
    /// The node with the address.
    pub(super) holder: &'f Node,
    /// The node that Kilo elects.
    pub(super) elected: &'f Node,
}

/// Finds the problems of the locations of a cluster.
pub(super) fn problems<'f>(inspected: &InspectedCluster<'f>) -> Vec<LocationProblem<'f>> {
    let mut problems: Vec<LocationProblem> = addressless(inspected)
        .into_iter()
        .map(LocationProblem::NoInternalAddress)
        .collect();
    if inspected.granularity() == Granularity::Location {
        problems.extend(hidden_labels(inspected));
        problems.extend(unnamed(inspected));
        problems.extend(several_leaders(inspected));
        problems.extend(uncertain_leaders(inspected));
    }
    problems
}

fn addressless<'f>(inspected: &InspectedCluster<'f>) -> Vec<AddresslessNode<'f>> {
    let granularity = inspected.granularity();
    let having: BTreeMap<&str, &Node> = inspected
        .all_nodes()
        .filter(|it| it.1.internal_address().is_some())
        .map(|(node, kilo)| (kilo.location.as_str(), node))
        .collect();
    inspected
        .nodes()
        .filter(|(_, kilo)| kilo.internal_address().is_none())
        .filter_map(|(node, kilo)| {
            let agents_crash = match granularity {
                Granularity::Full => return None,
                // A person wants that segment.
                Granularity::Location if kilo.internal_ip == InternalIp::Disabled => return None,
                Granularity::Location => false,
                Granularity::Cross => true,
            };
            Some(AddresslessNode {
                node,
                other: having.get(kilo.location.as_str())?,
                agents_crash,
            })
        })
        .collect()
}

fn hidden_labels<'f>(
    inspected: &InspectedCluster<'f>,
) -> impl Iterator<Item = LocationProblem<'f>> {
    let label = &inspected.member.entry.topology_label;
    inspected.nodes().filter_map(move |(node, _)| {
        let value = node.labels.get(label).filter(|it| !it.is_empty())?;
        let annotation = node.annotations.get(annotation::LOCATION)?;
        annotation
            .is_empty()
            .then_some(LocationProblem::HiddenLabel { node, value })
    })
}

/// Finds nodes in the location without a name because they have neither annotation nor label.
fn unnamed<'f>(inspected: &InspectedCluster<'f>) -> Vec<LocationProblem<'f>> {
    let located: Vec<(&Node, &KiloNode)> = inspected
        .nodes()
        .filter(|(_, kilo)| kilo.is_ready() && kilo.internal_address().is_some())
        .collect();
    let is_unnamed = |node: &Node| {
        !node.annotations.contains_key(annotation::LOCATION)
            && !node
                .labels
                .contains_key(&inspected.member.entry.topology_label)
    };
    let unnamed: Vec<&Node> = located
        .iter()
        .map(|it| it.0)
        .filter(|node| is_unnamed(node))
        .collect();
    if unnamed.len() == located.len() {
        let other = other_label(inspected, &unnamed).map(LocationProblem::OtherLabel);
        return other.into_iter().collect();
    }
    unnamed
        .into_iter()
        // `annotation-as-label` names the cause.
        .filter(|node| !node.labels.contains_key(annotation::LOCATION))
        .map(LocationProblem::Unnamed)
        .collect()
}

fn other_label<'f>(inspected: &InspectedCluster<'f>, nodes: &[&'f Node]) -> Option<OtherLabel<'f>> {
    let (label, values) = LOCATION_LABELS
        .iter()
        .filter(|it| **it != inspected.member.entry.topology_label)
        .map(|label| {
            let values = nodes.iter().filter_map(|node| node.labels.get(*label));
            (*label, values.collect::<BTreeSet<_>>())
        })
        .find(|(_, values)| 1 < values.len())?;
    let first = nodes.iter().find(|node| node.labels.contains_key(label))?;
    Some(OtherLabel {
        label,
        values,
        first,
        nodes: nodes.len(),
    })
}

fn several_leaders<'f>(
    inspected: &InspectedCluster<'f>,
) -> impl Iterator<Item = LocationProblem<'f>> {
    let nodes = &inspected.cluster().nodes;
    let formed = inspected.cluster().segments.formed.iter();
    formed.filter_map(|segment| {
        let volunteers: Vec<&Node> = segment
            .members
            .iter()
            .map(|it| &nodes[*it])
            .filter(|it| it.kilo.volunteers)
            .map(|it| it.node)
            .collect();
        let leader = &nodes[segment.leader];
        let is_contested = 1 < volunteers.len();
        is_contested.then_some(LocationProblem::SeveralLeaders(SeveralLeaders {
            location: &leader.kilo.location,
            leader: leader.node,
            volunteers,
        }))
    })
}

fn uncertain_leaders<'f>(
    inspected: &InspectedCluster<'f>,
) -> impl Iterator<Item = LocationProblem<'f>> {
    let nodes = &inspected.cluster().nodes;
    let formed = inspected.cluster().segments.formed.iter();
    formed
        .filter(|segment| {
            let has_name = |it: &NodeId| nodes[*it].kilo.has_name();
            segment.leader != segment.elected && !segment.members.iter().any(has_name)
        })
        .map(|segment| {
            let holder = &nodes[segment.leader];
            LocationProblem::UncertainLeader(UncertainLeader {
                location: &holder.kilo.location,
                holder: holder.node,
                elected: nodes[segment.elected].node,
            })
        })
}
