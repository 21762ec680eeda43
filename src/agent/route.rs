//! Routes: how the Kilo of one node configures its kernel (`kilo.md` §2.5 and §2.11).

use std::net::IpAddr;

use super::model::Model;
use crate::kilo::id::{NodeId, SegmentId};
use crate::kilo::peer::translation::AllowedIp;
use crate::kilo::topology::{TopologyNode, TopologySegment};
use crate::net::family;

/// A route. Kilo replaces an existing route for the same range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    /// The range, as the agent holds it.
    pub destination: AllowedIp,
    /// The next hop, if it needs one.
    pub gateway: Option<IpAddr>,
    /// The device that it leads through.
    pub device: Device,
    /// The source address that it suggests for what the node itself sends.
    pub source: Option<IpAddr>,
    /// Its routing table.
    pub table: RouteTable,
}

/// The device of a route with Kilo's defaults: `--encapsulate always`, by IPIP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Device {
    /// WireGuard's.
    Kilo,
    /// The tunnel between the nodes of a location.
    Location,
}

/// A routing table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RouteTable {
    /// The table for all packets.
    Main,
    /// Kilo's own, for packets from pods, and from tunnels, to nodes of the location.
    Kilo,
}

/// The reason for which the kernel refuses a route. Kilo's pass ends there, so other routes may be
/// missing until a later pass sets them in a better order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Refused {
    /// Host bits are set.
    HostBits,
    /// A mask of 128 bits with an IPv4 address.
    Mapped,
    /// The source, or the gateway, is of the other family.
    Family,
}

/// There are no routes: the agent itself dies of this node's location (`kilo.md` §4.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Panics;

impl Route {
    /// Returns whether its source address, if it has one, is of the family of its range.
    pub fn suits_source(&self) -> bool {
        self.is_of_family_of(self.source)
    }

    fn is_of_family_of(&self, address: Option<IpAddr>) -> bool {
        let wanted = family(self.destination.interface.address);
        address.is_none_or(|it| family(it) == wanted)
    }

    /// Returns why the kernel refuses it, if it does.
    pub fn refused(&self) -> Option<Refused> {
        if self.destination.is_mapped {
            Some(Refused::Mapped)
        } else if !self.destination.interface.is_network() {
            Some(Refused::HostBits)
        } else if !self.suits_source() || !self.is_of_family_of(self.gateway) {
            Some(Refused::Family)
        } else {
            None
        }
    }
}

impl Model<'_> {
    /// Returns the routes of a node to the other nodes of its cluster, in the order of
    /// `Topology.Routes`; none for one that Kilo does not count. Those to Peers come after them.
    ///
    /// # Errors
    /// In `Cross`, a node without internal address in the location of one that has one.
    pub fn own_routes(&self, node: NodeId) -> Result<Vec<Route>, Panics> {
        let Some((node, own)) = self.with_segment(node) else {
            return Ok(Vec::new());
        };
        if self.leader(own).kilo.name == node.kilo.name {
            self.leader_routes(node, own)
        } else {
            Ok(self.member_routes(node, own))
        }
    }

    fn with_segment(&self, node: NodeId) -> Option<(&TopologyNode, SegmentId)> {
        let node = &self.topology.nodes[node];
        Some((node, node.segment?))
    }

    /// A leader reaches other segments through WireGuard.
    fn leader_routes(&self, node: &TopologyNode, own: SegmentId) -> Result<Vec<Route>, Panics> {
        let source = node.kilo.internal_address();
        let kilo = |destination, gateway| Route {
            destination,
            gateway,
            device: Device::Kilo,
            source,
            table: RouteTable::Main,
        };
        let mut routes = Vec::new();
        for (id, segment) in self.topology.segments.numbered() {
            if self.topology.are_one(own, id) {
                if source.is_some() {
                    self.location_routes(segment, node, &mut routes)?;
                }
                continue;
            }
            let gateway = segment.wireguard_ip.computed();
            let endpoint = self.leader(id).endpoint();
            let is_endpoint = |address| endpoint.is_some_and(|it| it.host.is(address));
            for member in self.members(segment) {
                let pods = member.kilo.pod_cidr.map(AllowedIp::new);
                let internal = member.kilo.internal_address().filter(|it| !is_endpoint(*it));
                let both = pods.into_iter().chain(internal.map(AllowedIp::host));
                routes.extend(both.map(|it| kilo(it, gateway)));
            }
            routes.extend(segment.location_ranges.iter().map(|it| kilo(*it, gateway)));
        }
        Ok(routes)
    }

    /// Other nodes reach everything through their leader.
    fn member_routes(&self, node: &TopologyNode, own: SegmentId) -> Vec<Route> {
        let leader = self.leader(own).kilo.internal_address();
        let by_leader = |destination| Route {
            destination,
            gateway: leader,
            device: Device::Location,
            source: node.kilo.internal_address(),
            table: RouteTable::Main,
        };
        let mut routes = Vec::new();
        for (id, segment) in self.topology.segments.numbered() {
            routes.extend(segment.wireguard_ip.computed().map(AllowedIp::host).map(by_leader));
            if id == own {
                // A location's members have internal addresses, or they were no members.
                let _ = self.location_routes(segment, node, &mut routes);
                continue;
            }
            let members = || self.members(segment).map(|it| &it.kilo);
            let pods = members().filter_map(|it| it.pod_cidr).map(AllowedIp::new);
            routes.extend(pods.map(by_leader));
            let internal = members().filter_map(|it| it.internal_address());
            routes.extend(internal.map(AllowedIp::host).map(by_leader));
            routes.extend(segment.location_ranges.iter().copied().map(by_leader));
        }
        routes
    }

    /// The nodes of a location reach one another without WireGuard.
    fn location_routes(
        &self,
        segment: &TopologySegment,
        node: &TopologyNode,
        routes: &mut Vec<Route>,
    ) -> Result<(), Panics> {
        let source = node.kilo.internal_address();
        for member in self.members(segment) {
            let gateway = member.kilo.internal_address();
            if gateway == source {
                continue;
            }
            let address = gateway.ok_or(Panics)?;
            let route = |destination, table| Route {
                destination,
                gateway,
                device: Device::Location,
                source,
                table,
            };
            let pods = member.kilo.pod_cidr.map(AllowedIp::new);
            routes.extend(pods.map(|pods| route(pods, RouteTable::Main)));
            routes.push(route(AllowedIp::host(address), RouteTable::Kilo));
        }
        Ok(())
    }

    fn members<'a>(
        &'a self,
        segment: &'a TopologySegment,
    ) -> impl Iterator<Item = &'a TopologyNode> {
        segment.members.iter().map(|&member| &self.topology.nodes[member])
    }
}
