//! Segments: which nodes share a tunnel end (`kilo.md` §4, `NewTopology` in `pkg/mesh/topology.go`).

use std::collections::BTreeMap;

use crate::granularity::Granularity;
use crate::kilo::id::{NodeId, Nodes};
use crate::kilo::node::KiloNode;

/// Nodes behind one tunnel end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Kilo's key for it: `location:NAME` or `node:NAME`.
    pub key: String,
    /// Its nodes, in order of name. A node that has lost the lead stays, because it may be back at any time, and so does a
    /// stale leader without a successor.
    pub members: Vec<NodeId>,
    /// The node that runs WireGuard: the only one with a WireGuard address, stale or not, else the elected one.
    pub leader: NodeId,
    /// The node that Kilo elects, as far as that does not depend on names; the leader if Kilo counts no node.
    pub elected: NodeId,
}

/// A cluster cut into segments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cut {
    /// The granularity.
    pub granularity: Granularity,
    /// The segments, sorted by key, bytewise.
    pub formed: Vec<Segment>,
    /// Nodes that belong to a location but are not ready, so that Kilo leaves them out.
    pub unready: Vec<NodeId>,
}

/// Cuts a cluster into segments.
///
/// A node that is its own segment is formed whether Kilo counts it now or not: its Peer is right
/// as soon as it is back.
pub fn segments(nodes: &Nodes<&KiloNode>, granularity: Granularity) -> Cut {
    let mut alone = Vec::new();
    let mut unready = Vec::new();
    let mut locations: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in nodes.numbered() {
        if granularity != Granularity::Location || node.internal_address().is_none() {
            alone.push(id);
        } else if node.is_complete() {
            locations.entry(&node.location).or_default().push(id);
        } else {
            unready.push(id);
        }
    }
    let own = alone.into_iter().map(|id| Segment {
        key: format!("node:{}", nodes[id].name),
        members: vec![id],
        leader: id,
        elected: id,
    });
    let mut formed: Vec<Segment> = own.collect();
    for (location, members) in locations {
        let last_leader = last_leader(nodes, &members);
        let is_member = |id: &NodeId| !nodes[*id].stale || last_leader == Some(*id);
        let (members, stale): (Vec<NodeId>, Vec<NodeId>) = members.into_iter().partition(is_member);
        unready.extend(stale);
        let electable = electable(nodes, &members);
        let Some(elected) = elected(nodes, &electable).or(last_leader) else {
            unready.extend(members);
            continue;
        };
        formed.push(Segment {
            key: format!("location:{location}"),
            leader: last_leader.or_else(|| only_holder(nodes, &electable)).unwrap_or(elected),
            elected,
            members,
        });
    }
    unready.sort_unstable();
    formed.sort_by(|a, b| a.key.cmp(&b.key));
    Cut { granularity, formed, unready }
}

/// Returns the members that may lead: those that Kilo counts, without holders of an address that have stopped (their
/// values are those of an earlier snapshot) while another member has one.
fn electable(nodes: &Nodes<&KiloNode>, members: &[NodeId]) -> Vec<NodeId> {
    let counted = || members.iter().copied().filter(|it| nodes[*it].is_ready());
    let has_live_holder =
        counted().any(|it| nodes[it].has_wireguard_ip() && !nodes[it].carried_over);
    let is_former = |it: &KiloNode| it.carried_over && it.has_wireguard_ip() && has_live_holder;
    counted().filter(|it| !is_former(nodes[*it])).collect()
}

/// Returns the stale node that led a location, if no other node shows the lead. Kilo elects another leader within a minute,
/// so its agent may only be late, and its tunnels are still up.
fn last_leader(nodes: &Nodes<&KiloNode>, members: &[NodeId]) -> Option<NodeId> {
    let (stale, counted): (Vec<NodeId>, Vec<NodeId>) =
        members.iter().partition(|it| nodes[**it].is_silent());
    let is_led = counted.iter().any(|it| nodes[*it].has_wireguard_ip());
    only_holder(nodes, &stale).filter(|it| !is_led && !nodes[*it].lost_lead)
}

/// Returns the only member with a WireGuard address: only a leader has one, so that Kilo has decided.
fn only_holder(nodes: &Nodes<&KiloNode>, members: &[NodeId]) -> Option<NodeId> {
    let is_holder = |id: &&NodeId| nodes[**id].has_wireguard_ip();
    let mut holders = members.iter().filter(is_holder);
    match (holders.next(), holders.next()) {
        (Some(&only), None) => Some(only),
        _ => None,
    }
}

/// Returns the member that Kilo elects (`findLeader`).
pub(super) fn elected(nodes: &Nodes<&KiloNode>, members: &[NodeId]) -> Option<NodeId> {
    let is = |test: fn(&KiloNode) -> bool| move |id: &&NodeId| test(nodes[**id]);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Node;

    /// A node: name, and its annotations as `key=value` without Kilo's prefix.
    fn node(name: &'static str, annotations: &[&str]) -> (&'static str, KiloNode) {
        let basics = [
            "key=vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
            "internal-ip=192.168.0.1/24",
            "endpoint=10.0.0.1:51820",
        ];
        let node = Node {
            name: name.to_owned(),
            pod_cidrs: vec!["10.42.0.0/24".to_owned()],
            stale: annotations.contains(&"stale"),
            lost_lead: annotations.contains(&"lost-lead"),
            carried_over: annotations.contains(&"carried-over"),
            annotations: basics
                .iter()
                .chain(annotations)
                .filter_map(|text| text.split_once('='))
                .map(|(key, value)| (format!("kilo.squat.ai/{key}"), value.to_owned()))
                .collect(),
            ..Node::default()
        };
        (name, KiloNode::read(&node, "region"))
    }

    fn borrowed<'a>(nodes: &'a [(&'a str, KiloNode)]) -> Nodes<&'a KiloNode> {
        Nodes::new(nodes.iter().map(|(_, node)| node).collect())
    }

    fn formed(nodes: &[(&str, KiloNode)], granularity: Granularity) -> Vec<String> {
        let names = |members: &[NodeId]| -> Vec<&str> {
            members.iter().map(|it| nodes[it.index()].0).collect()
        };
        segments(&borrowed(nodes), granularity)
            .formed
            .iter()
            .map(|it| {
                format!("{} {} of {:?}", it.key, nodes[it.leader.index()].0, names(&it.members))
            })
            .collect()
    }

    fn leader(nodes: &[(&'static str, KiloNode)]) -> &'static str {
        let segments = segments(&borrowed(nodes), Granularity::Location);
        nodes[segments.formed[0].leader.index()].0
    }

    #[test]
    fn nodes_of_a_location_are_one_unless_they_have_no_internal_address() {
        let nodes = [
            node("a", &["location=x"]),
            node("b", &[]),
            node("c", &["internal-ip="]),
            node("d", &["location=x"]),
        ];
        insta::assert_debug_snapshot!(formed(&nodes, Granularity::Location), @r#"
        [
            "location: b of [\"b\"]",
            "location:x a of [\"a\", \"d\"]",
            "node:c c of [\"c\"]",
        ]
        "#);
        assert_eq!(formed(&nodes, Granularity::Full).len(), 4);
    }

    #[test]
    fn what_kilo_does_not_count_has_no_share_in_a_location() {
        let nodes = [
            node("a", &["stale"]),
            node("b", &["key="]),
            node("c", &["endpoint="]),
            node("d", &[]),
            node("e", &["stale", "internal-ip="]),
        ];
        let segments = segments(&borrowed(&nodes), Granularity::Location);
        let unready: Vec<usize> = segments.unready.iter().map(|it| it.index()).collect();
        assert_eq!(unready, [0, 1, 2]);
        assert_eq!(segments.formed.len(), 2, "d for all of them, and e by itself");
    }

    #[test]
    fn the_first_volunteer_with_a_public_endpoint_leads() {
        let public = "endpoint=203.0.113.1:1";
        let plain = node("a", &[public]);
        let private = node("b", &["leader="]);
        let volunteer = node("c", &["leader=false", public]);
        assert_eq!(leader(&[plain.clone(), private.clone(), volunteer]), "c");
        assert_eq!(leader(&[plain.clone(), private]), "b");
        assert_eq!(leader(&[node("0", &[]), plain]), "a");
        assert_eq!(leader(&[node("0", &[]), node("1", &[])]), "0");
    }

    #[test]
    fn a_lone_wireguard_address_shows_who_leads() {
        let holder = |name| node(name, &["wireguard-ip=10.4.0.1/16"]);
        let volunteer = node("a", &["leader="]);
        assert_eq!(leader(&[volunteer.clone(), holder("b")]), "b");
        assert_eq!(leader(&[volunteer, holder("b"), holder("c")]), "a");
    }

    #[test]
    fn a_former_leader_stays_in_its_location_and_leads_only_without_a_successor() {
        let holder = "wireguard-ip=10.4.0.1/16";
        for mark in ["lost-lead", "carried-over"] {
            let nodes = [node("a", &[holder, mark]), node("b", &[]), node("c", &[holder])];
            let formed = formed(&nodes, Granularity::Location);
            assert_eq!(formed, ["location: c of [\"a\", \"b\", \"c\"]"], "{mark}");
        }
        // No other node announces an address, so a restart changes nothing.
        assert_eq!(leader(&[node("a", &["carried-over"]), node("b", &[])]), "a");
        assert_eq!(leader(&[node("a", &[]), node("b", &[holder, "carried-over"])]), "b");
        // Its agent may only be late.
        let stale = node("a", &[holder, "stale"]);
        for (others, names) in [(vec![], "[\"a\"]"), (vec![node("b", &[])], "[\"a\", \"b\"]")] {
            let nodes: Vec<_> = [stale.clone()].into_iter().chain(others).collect();
            let formed = formed(&nodes, Granularity::Location);
            assert_eq!(formed, [format!("location: a of {names}")]);
        }
        let formed_beside = |other| formed(&[stale.clone(), other], Granularity::Location);
        assert_eq!(formed_beside(node("b", &[holder])), ["location: b of [\"b\"]"]);
        assert!(formed_beside(node("b", &[holder, "stale"])).is_empty());
        let all = [node("a", &[holder, "lost-lead"])];
        let segments = segments(&borrowed(&all), Granularity::Location);
        assert!(segments.formed.is_empty() && segments.unready.len() == 1);
    }
}
