//! Harmless losses: nodes whose loss ends no path of others. They are recognised without a proof, and most nodes of a
//! fleet are among them.
//!
//! A packet between other nodes depends on a node only if that node carries it, leads for one of its ends, or has a
//! claim on an address of its way. Every other case is proved, usual or not.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::lost_nodes::LostNodes;
use crate::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId, Sites};
use crate::agent::model::Tunnel;
use crate::kilo::id::{NodeId, SegmentId};
use crate::kilo::node::KiloNode;
use crate::kilo::topology::{Leader, WireguardIp};
use crate::net::prefixes::Span;
use crate::net::{Cidr, family};

/// The facts by which harmless losses are recognised.
pub(super) struct HarmlessLosses<'f, 'a> {
    fabric: &'f Fabric<'a>,
    clusters: Sites<ClusterFacts>,
    /// The nodes through which any Peer leads to a range that their cluster declares as a whole.
    carriers: BTreeSet<NodeRef>,
}

/// The facts about a cluster.
struct ClusterFacts {
    /// Whether nothing in it is decided by more than the nodes that a packet passes, also without some of its nodes.
    is_uniform: bool,
    /// Whether nothing depends on its WireGuard addresses.
    are_tunnel_addresses_alone: bool,
    /// Whether all nodes that show the Kilo subnet show the same one, so that any of them is enough.
    has_one_subnet: bool,
    /// The segments in which a node has a name as its endpoint: it is not known who leads them without some members.
    named: BTreeSet<SegmentId>,
}

impl<'f, 'a> HarmlessLosses<'f, 'a> {
    /// Finds the facts about all clusters.
    pub(super) fn new(fabric: &'f Fabric<'a>) -> Self {
        Self {
            fabric,
            clusters: fabric.sites.map_ids(|it| ClusterFacts {
                is_uniform: is_uniform(fabric.site(it)),
                are_tunnel_addresses_alone: are_tunnel_addresses_alone(fabric, it),
                has_one_subnet: has_one_subnet(fabric.site(it)),
                named: named(fabric.site(it)),
            }),
            carriers: carriers(fabric),
        }
    }

    /// Returns whether a loss is known to end no path of others.
    pub(super) fn have(&self, lost: &LostNodes) -> bool {
        lost.by_site().all(|(site, nodes)| self.is_harmless(site, nodes))
    }

    fn is_harmless(&self, number: SiteId, lost: &BTreeSet<NodeId>) -> bool {
        let facts = &self.clusters[number];
        let site = self.fabric.site(number);
        let is_passed = |node: NodeId| {
            let at = NodeRef { site: number, node };
            self.carriers.contains(&at) || !are_ranges_alone(site, node)
        };
        let mut counted = lost.iter().filter(|it| site.segment(**it).is_some());
        let segments = lost.iter().filter_map(|it| site.segment(*it));
        let segments: BTreeSet<SegmentId> = segments.collect();
        facts.is_uniform
            && !counted.any(|it| is_passed(*it))
            && segments.into_iter().all(|it| {
                if has_no_member_left(site, it, lost) {
                    // All later segments get other addresses.
                    facts.are_tunnel_addresses_alone
                } else {
                    self.keeps_leader(number, it, lost)
                }
            })
    }

    /// Returns whether the same node leads a segment, for certain, without some of its members. Many members can have a
    /// WireGuard address, of which Kilo elects one: without some of them it elects the same one, and if it is the only one
    /// that is left, too.
    fn keeps_leader(&self, number: SiteId, id: SegmentId, lost: &BTreeSet<NodeId>) -> bool {
        let (facts, site) = (&self.clusters[number], self.fabric.site(number));
        let Leader::Certain(leader) = site.model.topology.segments[id].leader else {
            return false;
        };
        let is_announced = site.node(leader).kilo.has_wireguard_ip() && facts.has_one_subnet;
        let mut own = lost.iter().filter(|it| site.segment(**it) == Some(id));
        !lost.contains(&leader)
            && !facts.named.contains(&id)
            && own.all(|it| match site.node(*it).kilo.wireguard_ip() {
                None => true,
                Some(announced) => {
                    is_announced && is_tunnel_address_alone(self.fabric, number, announced.address)
                }
            })
    }
}

fn has_no_member_left(site: &Site, segment: SegmentId, lost: &BTreeSet<NodeId>) -> bool {
    site.model.topology.segments[segment].members.iter().all(|it| lost.contains(it))
}

/// Returns the segments with a node whose endpoint is a name.
fn named(site: &Site) -> BTreeSet<SegmentId> {
    let segments = site.model.topology.segments.numbered();
    let has_name = |node: &NodeId| site.node(*node).kilo.has_name();
    segments.filter(|it| it.1.members.iter().any(has_name)).map(|it| it.0).collect()
}

/// Returns whether all nodes that show the Kilo subnet show the same one.
fn has_one_subnet(site: &Site) -> bool {
    let announced = site.model.topology.nodes.iter().filter_map(|it| it.kilo.wireguard_ip());
    let networks: BTreeSet<Cidr> = announced.map(|it| it.network).collect();
    networks.len() <= 1 && networks.iter().all(|it| !it.is_host())
}

/// Returns whether a cluster is regular, also without some of its nodes: all of them are of one kind.
fn is_uniform(site: &Site) -> bool {
    let nodes = || site.model.topology.nodes.iter();
    let kind = |kilo: &KiloNode| {
        let internal = kilo.internal_address().map(family);
        (internal, kilo.pod_cidr.map(Cidr::family))
    };
    let kinds: BTreeSet<_> =
        nodes().filter(|it| it.segment.is_some()).map(|it| kind(&it.kilo)).collect();
    let mut reported: Vec<_> = nodes().map(|it| it.kilo.granularity).collect();
    reported.dedup();
    reported.len() <= 1 && kinds.len() <= 1 && site.is_regular()
}

/// Returns whether no packet has a WireGuard address of a cluster as its source, its destination or the address of a
/// tunnel, and no other range lies around one: then it makes no difference which segment has which of them.
pub(super) fn are_tunnel_addresses_alone(fabric: &Fabric, number: SiteId) -> bool {
    let site = fabric.site(number);
    let topology = &site.model.topology;
    let mut nodes = topology.nodes.iter();
    let is_alone = |address: IpAddr| is_tunnel_address_alone(fabric, number, address);
    nodes.all(|it| it.segment.is_none() || it.kilo.internal_address().is_some())
        && topology.segments.iter().all(|it| match it.wireguard_ip {
            WireguardIp::Certain(address) => is_alone(address),
            WireguardIp::Ambiguous { computed, announced } => {
                is_alone(computed) && is_alone(announced)
            }
            WireguardIp::None => true,
        })
}

/// Returns the same for one WireGuard address of a cluster.
fn is_tunnel_address_alone(fabric: &Fabric, number: SiteId, address: IpAddr) -> bool {
    let tunnels = &fabric.site(number).model.tunnels;
    let host = Cidr::host(address);
    let mut around = tunnels.around(Span::host(address));
    let mut owners = fabric.owners(address).into_iter();
    around.all(|slot| {
        let (range, claims) = tunnels.at(slot);
        range == host && claims.iter().all(|it| matches!(it.tunnel, Tunnel::Segment(_)))
    }) && owners.all(|it| matches!(it.1, Owner::Tunnel(_) | Owner::Pool))
        && fabric.dialled(host).next().is_none()
}

/// Returns whether a node shares the ranges that Kilo routes to it with nothing else in its cluster.
fn are_ranges_alone(site: &Site, node: NodeId) -> bool {
    let kilo = &site.node(node).kilo;
    let internal = kilo.internal_address().map(Cidr::host);
    let own: Vec<Cidr> = kilo.pod_cidr.into_iter().chain(internal).collect();
    let segment = site.segment(node).map(Tunnel::Segment);
    let is_own = |slot| {
        let (range, claims) = site.model.tunnels.at(slot);
        own.contains(&range) && claims.iter().all(|it| Some(it.tunnel) == segment)
    };
    own.iter().all(|range| {
        let span = Span::new(*range);
        let mut meeting = site.model.tunnels.around(span);
        let mut inside = site.model.tunnels.within(span);
        let owned = site.owned();
        let mut owners = owned.within(span).flat_map(|it| owned.at(it).1);
        meeting.all(is_own)
            && inside.all(is_own)
            && owners.all(|it| *it == Owner::Pool || it.node() == Some(node))
    })
}

/// Returns the nodes that have the key of a Peer with addresses of a range that their cluster declares as a whole.
fn carriers(fabric: &Fabric) -> BTreeSet<NodeRef> {
    let specs = fabric.contents().flat_map(|it| &it.peers).filter_map(|it| it.spec.as_ref().ok());
    let mut carriers = BTreeSet::new();
    for spec in specs {
        let is_carrier = |at: &&NodeRef| {
            let site = fabric.site(at.site);
            spec.allowed_ips.iter().any(|it| has_part_of_all(site, it.interface.network))
        };
        carriers.extend(fabric.holders(&spec.key).iter().filter(is_carrier));
    }
    carriers
}

/// Returns whether any address of a range belongs to a range that a cluster declares as a whole, and to no node.
fn has_part_of_all(site: &Site, range: Cidr) -> bool {
    let (owned, span) = (site.owned(), Span::new(range));
    let is_for_all = |slot| {
        let (_, owners) = owned.at(slot);
        matches!(owners.first(), Some(Owner::Services | Owner::Network))
    };
    owned.within(span).any(is_for_all) || owned.around(span).next().is_some_and(is_for_all)
}
