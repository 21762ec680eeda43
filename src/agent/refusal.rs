//! Refused routes: what of a cluster's Kilo the kernels of its nodes do not take (`kilo.md` §2.4 and
//! §2.5), and the Peers with the key of a node.

use std::collections::BTreeMap;

use super::model::Model;
use super::peers::PeerId;
use super::route::Route;
use crate::kilo::id::{NodeId, SegmentId};
use crate::kilo::peer::translation::AllowedIp;
use crate::net::{Family, Interface, family};

/// The largest number of nodes of a cluster of which each one's routes to all others are compared. In a larger one, a
/// refused route on any node counts for all.
const MOST_COMPARED: usize = 1_000;

/// A route that a kernel refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KernelRefusal {
    /// To a range of a Peer.
    Range {
        /// The Peer.
        peer: PeerId,
        /// The index of the allowed IP in its spec.
        index: usize,
    },
    /// To another node of the cluster itself.
    Segment {
        /// The node on which the route is refused.
        node: NodeId,
        /// The route.
        route: Route,
    },
}

impl Model<'_> {
    /// Finds the first route that the kernels of each segment refuse, where a pass of Kilo's ends: to a range of a Peer,
    /// or else to another node of the cluster itself. Nodes of other segments are not concerned.
    pub fn refused(&self) -> BTreeMap<SegmentId, KernelRefusal> {
        let mut refused = self.refused_routes();
        refused.extend(self.refused_ranges());
        refused
    }

    /// Finds the first range of a Peer with host bits, or of the other family than the internal address of a node.
    fn refused_ranges(&self) -> BTreeMap<SegmentId, KernelRefusal> {
        let missing = self.without_route();
        let kind = |it: Interface| it.is_network().then(|| it.network.family());
        let is_refused =
            |it: &AllowedIp| kind(it.interface).is_none_or(|family| missing(family).is_some());
        let shares = self.peers.numbered().filter_map(|(peer, it)| Some((peer, it.share()?)));
        // Hardly any Peer has one, and no other has to be looked at.
        let ranges = shares
            .filter(|(_, it)| it.translation.allowed_ips.iter().any(is_refused))
            .flat_map(|(peer, it)| it.kept().map(move |it| (peer, it)))
            .filter(|(_, it)| is_refused(&it.allowed));
        // The first range of each kind decides for all nodes.
        let mut kinds: Vec<(Option<Family>, KernelRefusal)> = Vec::new();
        for (peer, it) in ranges {
            let (masked, index) = (kind(it.allowed.interface), it.id.index());
            if kinds.iter().all(|it| it.0 != masked) {
                kinds.push((masked, KernelRefusal::Range { peer, index }));
            }
        }
        if kinds.is_empty() {
            return BTreeMap::new();
        }
        let mut refused = BTreeMap::new();
        for node in &self.topology.nodes {
            let own = node.kilo.internal_address().map(family);
            let is_refused =
                |of: Option<Family>| of.is_none_or(|of| own.is_some_and(|it| it != of));
            let first = kinds.iter().find(|it| is_refused(it.0));
            if let Some((segment, (_, refusal))) = node.segment.zip(first) {
                refused.entry(segment).or_insert(*refusal);
            }
        }
        refused
    }

    /// Finds the first route between the cluster's own nodes whose families differ, also where only a
    /// first pod CIDR is of the other family: of N nodes, N − 1 such routes compete with all others, and
    /// after each later change other routes are missing (`kilo.md` §2.5).
    fn refused_routes(&self) -> BTreeMap<SegmentId, KernelRefusal> {
        // Without an announced address, Kilo's subnet is unknown.
        let is_known = self.topology.nodes.iter().any(|it| it.kilo.wireguard_ip().is_some());
        let mut refused = BTreeMap::new();
        if !is_known || self.has_one_family() {
            return refused;
        }
        let is_large = MOST_COMPARED < self.topology.nodes.len();
        for (node, own) in self.topology.nodes.numbered() {
            let routes = self.own_routes(node).unwrap_or_default();
            let route = routes.into_iter().find(|it| it.refused().is_some());
            let Some((segment, route)) = own.segment.zip(route) else {
                continue;
            };
            let refusal = KernelRefusal::Segment { node, route };
            if is_large {
                return self.topology.segments.ids().map(|it| (it, refusal)).collect();
            }
            refused.entry(segment).or_insert(refusal);
        }
        refused
    }

    /// Returns whether everything that the cluster's own routes are made of is of one family and masked,
    /// so that no kernel refuses any.
    fn has_one_family(&self) -> bool {
        let mut ranges = self.topology.segments.iter().flat_map(|segment| {
            let address = segment.wireguard_ip.computed().map(AllowedIp::host);
            segment.allowed_ips.iter().chain(&segment.location_ranges).copied().chain(address)
        });
        let Some(first) = ranges.next() else {
            return true;
        };
        let wanted = first.interface.network.family();
        std::iter::once(first).chain(ranges).all(|it| {
            let is_plain = !it.is_mapped && it.interface.is_network();
            is_plain && it.interface.network.family() == wanted
        })
    }

    /// Returns which node, the first of them, gets no route to a range of a family.
    fn without_route(&self) -> impl Fn(Family) -> Option<NodeId> {
        let [v4, v6] = [Family::V4, Family::V6].map(|wanted| {
            let nodes = &self.topology.nodes;
            nodes.position(|it| it.kilo.internal_address().map(family) == Some(wanted))
        });
        move |family| match family {
            Family::V4 => v6,
            Family::V6 => v4,
        }
    }

    /// Finds the Peers that have the key of a node of the cluster, with the node.
    ///
    /// If the node leads its segment, its own WireGuard ignores the Peer and the routes lead nowhere.
    /// On other nodes, the order decides which of the two is configured (`kilo.md` §2.7). If it does
    /// not lead its segment yet, this begins when it does.
    pub fn peers_with_own_keys(&self) -> Vec<(PeerId, NodeId)> {
        let mut found = BTreeMap::new();
        for (node, own) in self.topology.nodes.numbered() {
            found.extend(
                own.kilo.key.iter().flat_map(|key| self.peers_with(key)).map(|peer| (*peer, node)),
            );
        }
        found.into_iter().collect()
    }
}
