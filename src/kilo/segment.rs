//! Segments: which nodes share a tunnel end (`kilo.md` §4, `NewTopology` in `pkg/mesh/topology.go`).

use std::collections::BTreeMap;

use crate::granularity::Granularity;
use crate::kilo::node::KiloNode;

/// Nodes behind one tunnel end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Kilo's key for it: `location:NAME` or `node:NAME`.
    pub key: String,
    /// Its nodes by index, in order of name.
    pub members: Vec<usize>,
    /// The one that speaks WireGuard.
    pub leader: usize,
    /// Whether it was formed by location, so that its members need not speak.
    pub shared: bool,
}

/// A cluster cut into segments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segments {
    /// The segments, sorted by key, bytewise.
    pub formed: Vec<Segment>,
    /// Nodes that belong to a location but are not ready, so that Kilo leaves them out.
    pub unready: Vec<usize>,
}

/// Cuts a cluster into segments; `nodes` are in order of name.
///
/// A node that is its own segment is formed whether Kilo counts it now or not: its Peer is right
/// as soon as it is back.
pub fn segments(nodes: &[(&str, KiloNode)], granularity: Granularity) -> Segments {
    let mut alone = Vec::new();
    let mut unready = Vec::new();
    let mut locations: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, (_, node)) in nodes.iter().enumerate() {
        if granularity != Granularity::Location || node.internal_address().is_none() {
            alone.push(index);
        } else if node.is_ready() {
            locations.entry(&node.location).or_default().push(index);
        } else {
            unready.push(index);
        }
    }
    let shared = locations.into_iter().map(|(location, members)| Segment {
        key: format!("location:{location}"),
        leader: leader(nodes, &members),
        members,
        shared: true,
    });
    let own = alone.into_iter().filter_map(|index| {
        let (name, _) = nodes.get(index)?;
        Some(Segment {
            key: format!("node:{name}"),
            members: vec![index],
            leader: index,
            shared: false,
        })
    });
    let mut formed: Vec<Segment> = shared.chain(own).collect();
    formed.sort_by(|a, b| a.key.cmp(&b.key));
    Segments { formed, unready }
}

/// Returns the member that leads.
///
/// Only a leader has a WireGuard address; where exactly one member has, Kilo has decided and we
/// see it. Else this is its election (`findLeader`).
fn leader(nodes: &[(&str, KiloNode)], members: &[usize]) -> usize {
    let is = |test: fn(&KiloNode) -> bool| {
        move |index: &&usize| nodes.get(**index).is_some_and(|(_, node)| test(node))
    };
    let mut holders = members.iter().filter(is(|node| node.has_wireguard_ip));
    if let (Some(&only), None) = (holders.next(), holders.next()) {
        return only;
    }
    let volunteer: fn(&KiloNode) -> bool = |node| node.volunteers;
    let public: fn(&KiloNode) -> bool = KiloNode::has_public_endpoint;
    members
        .iter()
        .filter(is(volunteer))
        .find(is(public))
        .or_else(|| members.iter().find(is(volunteer)))
        .or_else(|| members.iter().find(is(public)))
        .or_else(|| members.first())
        .copied()
        .unwrap_or_default()
}
