//! Words for ranges of whole clusters that get another Peer.

use super::{MOVED_ANCHOR, members, within};
use crate::diagnostic::Severity;
use crate::fleet::{Fleet, Member};
use crate::granularity::Granularity;
use crate::kilo::cluster::ClusterNode;
use crate::mesh::Anchor;
use crate::name::peer_name;
use crate::net::Cidr;
use crate::place::Place;
use crate::rules::{Finding, bare};
use crate::tree_diff::{Case, Moved};
use crate::yaml;

/// The largest number of ranges in the line that keeps each on one node.
const PINNED: usize = 8;

/// The reason why a range of a whole cluster gets another Peer.
pub(super) enum MoveReason {
    /// The mesh names the new node here, as one of those that are to carry it.
    Named(Place),
    /// Kilo elected another leader of the only location that its cluster has.
    Elected,
    /// The node that carries it is left out, which is another finding.
    LeftOut,
    /// The node that carries it is not in the snapshot any more.
    Gone,
    /// A node that comes or claims another address may have moved it, or an edit that removed the old node's name: the tree
    /// does not record why a Peer carries a range.
    Unknown,
}

impl MoveReason {
    pub(super) fn of(moved: &Moved, fleet: &Fleet) -> Self {
        let is_elected =
            || members(fleet, &moved.source).all(|it| has_one_location(it, &moved.from));
        match named(moved, fleet) {
            Some(place) => Self::Named(place),
            None if is_elected() => Self::Elected,
            None if members(fleet, &moved.source).all(|it| is_gone(it, &moved.from)) => Self::Gone,
            None => Self::Unknown,
        }
    }
}

/// Returns whether a cluster is given as one location, in which the node of a Peer still is unless it is gone.
fn has_one_location(member: &Member, peer: &str) -> bool {
    let (mesh, cluster) = (member.mesh.name.as_str(), member.entry.name.as_str());
    let is_of_peer = |node: &ClusterNode| peer_name(mesh, cluster, &node.node.name) == peer;
    let (candidates, all) = (&member.membership.candidates, &member.cluster.nodes);
    let mut nodes = candidates.iter().flat_map(|it| &it.members);
    // In other granularities, a node that is gone was a segment of its own.
    let is_gone = || member.cluster.granularity == Granularity::Location && is_gone(member, peer);
    candidates.len() == 1 && (is_gone() || nodes.any(|it| is_of_peer(&all[*it])))
}

/// Returns whether a cluster has no node of a Peer.
fn is_gone(member: &Member, peer: &str) -> bool {
    let (mesh, cluster) = (member.mesh.name.as_str(), member.entry.name.as_str());
    let mut nodes = member.cluster.nodes.iter();
    nodes.all(|it| peer_name(mesh, cluster, &it.node.name) != peer)
}

/// Reports a range that gets another Peer, given why, and what keeps it on one node.
pub(super) fn moved(case: &Case<Moved>, reason: MoveReason, pin: &str) -> Finding {
    let Moved { source, range, from, to } = &case.what;
    let is_unrequested = matches!(reason, MoveReason::Unknown | MoveReason::Gone);
    let is_elected = matches!(reason, MoveReason::Elected);
    let is_left_out = matches!(reason, MoveReason::LeftOut);
    let (why, named) = match reason {
        MoveReason::Named(place) => (", as set in `anchors`", Some(place)),
        MoveReason::Elected => (", because its location has another leader", None),
        MoveReason::LeftOut => (", because the Peer that carries it now is left out", None),
        MoveReason::Gone => (", because its node is gone", None),
        MoveReason::Unknown => (", which the mesh does not request", None),
    };
    let (from, to) = (bare(from), bare(to));
    let message = format!("{range} would move from {from} to {to} {}{why}", within(&case.targets));
    let mut finding = Finding::on_named(&MOVED_ANCHOR, source, message)
        .at(case.place.clone(), "carries the range now")
        .at(named, "set here");
    if is_elected {
        finding.severity = Severity::Notice;
        return finding.help(
            "apply it soon: until then, packets go to the old leader, which does not deliver them",
        );
    }
    if is_left_out {
        return finding;
    }
    if is_unrequested {
        return finding.help(format!("{pin}connections to it break once whenever it moves"));
    }
    finding.severity = Severity::Notice;
    finding.help("apply it in a maintenance window: connections to this range will break once")
}

/// Returns what keeps a range on one node, given the items of all ranges of its cluster that move: they need one list.
pub(super) fn pin<'p>(
    moved: &Moved,
    items: impl Iterator<Item = &'p String>,
    fleet: &Fleet,
) -> String {
    let source_name = bare(&moved.source);
    if let Some(anchor) = uneven_anchor(moved, fleet) {
        let (count, item) =
            (1_u32 << anchor.spread, format!("`nodes` of its item in `anchors` of {source_name}"));
        let node = anchor_node(moved, fleet);
        if anchor.nodes.iter().all(|it| it.name != node) {
            return format!(
                "if it should stay on one node, add {node} to {item}: `count: {count}` needs {count} nodes; "
            );
        }
        return format!("name {count} nodes in {item}, as many as its `count`; ");
    }
    if members(fleet, &moved.source).any(|it| !it.entry.anchors.is_empty()) {
        return format!(
            "if it should stay on one node, name {} first in `nodes` of its item in `anchors` of {source_name}; ",
            anchor_node(moved, fleet)
        );
    }
    let mut items: Vec<String> = items.take(PINNED + 1).cloned().collect();
    if PINNED < items.len() {
        items = vec![anchor_item(moved, fleet)];
    }
    let what = if items.len() == 1 { "it" } else { "each range" };
    format!(
        "if {what} should stay on one node, write `anchors: [{}]` in the entry of {source_name}; ",
        items.join(", ")
    )
}

/// Returns the anchor of a range if it names fewer nodes than it spreads the range over.
fn uneven_anchor<'f>(moved: &Moved, fleet: &'f Fleet) -> Option<&'f Anchor> {
    members(fleet, &moved.source).flat_map(|it| &it.entry.anchors).find(|anchor| {
        let is_of = |it: &Vec<Cidr>| it.iter().any(|range| range.contains(moved.range));
        anchor.nodes.len() < 1 << anchor.spread && anchor.ranges.as_ref().is_none_or(is_of)
    })
}

/// Returns the item of `anchors` that keeps a range on one node.
pub(super) fn anchor_item(moved: &Moved, fleet: &Fleet) -> String {
    let node = anchor_node(moved, fleet);
    format!("{{ ranges: [{}], nodes: [{node}] }}", moved.range)
}

/// Returns the node that should keep a range. One that is left out now cannot carry it.
fn anchor_node(moved: &Moved, fleet: &Fleet) -> String {
    let of = |peer: &str| node_of(peer, &moved.source, fleet);
    let node = of(&moved.from).or_else(|| of(&moved.to));
    yaml::scalar(node.unwrap_or("NODE")).into_owned()
}

/// Returns the node of a Peer, if it takes part.
fn node_of<'f>(peer: &str, source: &str, fleet: &'f Fleet) -> Option<&'f str> {
    members(fleet, source).find_map(|member| {
        let (mesh, cluster) = (member.mesh.name.as_str(), member.entry.name.as_str());
        let mut candidates = member.membership.candidates.iter().map(|it| it.leader.as_str());
        candidates.find(|it| peer_name(mesh, cluster, it) == peer)
    })
}

/// Returns where the mesh names the node that a range moves to, as one of those that are to carry it;
/// nothing if it names the node that carried it before that one.
fn named(moved: &Moved, fleet: &Fleet) -> Option<Place> {
    members(fleet, &moved.source).find_map(|member| {
        let (mesh, cluster) = (&member.mesh.name, &member.entry.name);
        let is = |name: &str, peer: &str| peer_name(mesh.as_str(), cluster.as_str(), name) == peer;
        let mut meant = member.entry.anchors.iter().filter(|anchor| {
            let ranges = anchor.ranges.as_ref();
            // One that is spread moves in parts.
            ranges.is_none_or(|it| it.iter().any(|range| range.contains(moved.range)))
        });
        meant.find_map(|anchor| {
            let mut nodes = anchor.nodes.iter();
            let first = nodes.find(|it| is(&it.name, &moved.to) || is(&it.name, &moved.from))?;
            is(&first.name, &moved.to).then(|| first.place.clone())
        })
    })
}
