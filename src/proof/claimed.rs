//! Claimed failures: packets that fail only because of what a few nodes report of themselves. A single node must not make
//! a proof fail.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::agent::fabric::{Fabric, NodeRef, Site, SiteId, are_few};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::agent::peers::PeerId;
use crate::kilo::id::NodeId;
use crate::kilo::node::KiloNode;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::packet::trace::Trace;
use crate::packet::{Doubt, Ending};
use crate::wireguard::Endpoint;

/// Returns whether a packet fails only because of what a few nodes report.
pub(super) fn is_of_few(fabric: &Fabric, failing: &Trace) -> bool {
    let packet = &failing.packet;
    let site = |at: NodeRef| fabric.site(at.site);
    // The end of the packet in a cluster.
    let end = |in_site: SiteId| {
        if in_site == packet.to.site() { packet.destination } else { packet.source }
    };
    // The end of the packet in the other one.
    let beyond = |in_site: SiteId| {
        if in_site == packet.to.site() { packet.source } else { packet.destination }
    };
    match *failing.ending() {
        Ending::LocalShadow { at, .. } => have_few(fabric, at.site, beyond(at.site)),
        // Nodes of the cluster itself have an endpoint in their ranges.
        Ending::Loops { at, claim, range, address, .. } if claim.peer().is_none() => {
            if range.is_host() {
                site(at).is_captured_by_few()
            } else {
                site(at).are_claimants_few(address, 0)
            }
        }
        Ending::Loops { at, peer, address, .. } => {
            let endpoint = site(at).model.endpoint(Tunnel::Peer(peer));
            let is_dialled = endpoint.and_then(Endpoint::address) == Some(address);
            // Elsewhere than on the LAN the other side is seen at another address.
            let is_on_lan = site(at).connection(at.node, address).is_some();
            !is_dialled && is_on_lan && have_few(fabric, at.site, address)
        }
        Ending::NoInitiator { from, peer, to, back } => {
            is_misplaced(fabric, from, peer, to) || is_misplaced(fabric, to, back, from)
        }
        Ending::Flapping { at, peer, other } => is_misplaced(fabric, at, peer, other),
        // An election makes no declared path fail, to pods or to services. A key that two nodes have is a copy.
        Ending::NoHop { .. }
        | Ending::Ambiguous {
            doubt: Doubt::Nodes { .. } | Doubt::Leader | Doubt::Key { .. },
            ..
        } => true,
        Ending::NotReady { node } => site(node).has_few_unready(),
        Ending::Ambiguous { at, doubt: Doubt::Range { ref claims, range } } => {
            is_range_of_few(fabric, at.site, claims, range)
        }
        Ending::Ambiguous { at, doubt: Doubt::Refused(refusal) } => {
            site(at).is_refused_for_few(refusal)
        }
        Ending::SourceRejected { by, owner: Some((claim, _)), .. } if claim.peer().is_none() => {
            have_few(fabric, by.site, beyond(by.site))
        }
        // Nodes of several segments have the destination. One of them may be right.
        Ending::SourceRejected { by, owner: None, peer: None } => {
            site(by).are_claimants_few(end(by.site), 1)
        }
        // A silent leader without a successor keeps its Peer.
        Ending::StolenBy { thief: Some(thief), .. }
            if !site(thief).node(thief.node).kilo.is_ready() =>
        {
            site(thief).has_few_unready()
        }
        Ending::StolenBy { at, claim, .. } => {
            site(at).segment(at.node).map(Tunnel::Segment) == Some(claim.tunnel)
        }
        _ => false,
    }
}

/// The addresses and pods that the nodes of a cluster report as their own, to find those at which a packet fails only because
/// one node reports them.
pub(super) struct ReportedAddresses {
    /// Pods, and as hosts the internal and WireGuard addresses, by the nodes that report them.
    owners: Prefixes<NodeId>,
    /// The only node whose internal address is outside of what the entry declares for nodes, the only one whose WireGuard
    /// address is outside of the entry, and the only one with such pods.
    only_strangers: [Option<NodeId>; 3],
}

impl ReportedAddresses {
    pub(super) fn new(site: &Site) -> Self {
        let nodes = &site.model.topology.nodes;
        let owners = nodes.numbered().flat_map(|(node, it)| {
            let hosts = own_addresses(&it.kilo).into_iter().flatten().map(Cidr::host);
            let claims: BTreeSet<Cidr> = hosts.chain(it.kilo.pods()).collect();
            claims.into_iter().map(move |it| (it, node))
        });
        let networks = &site.entry.networks;
        let [all, exclusive] = [networks.all(), networks.exclusive()]
            .map(|it| Prefixes::union(it.into_iter().map(|it| it.cidr)));
        let is_in = |ranges: &Prefixes<()>, it| ranges.contain(Cidr::host(it));
        let is_for_nodes = |it| is_in(&all, it) && !is_in(&exclusive, it);
        let only = |is_stranger: &dyn Fn(&KiloNode) -> bool| {
            let mut strangers = nodes.numbered().filter(|it| is_stranger(&it.1.kilo));
            let only = strangers.next().filter(|_| 1 < nodes.len())?;
            strangers.next().is_none().then_some(only.0)
        };
        let only_strangers = [
            only(&|it| own_addresses(it)[0].is_some_and(|it| !is_for_nodes(it))),
            only(&|it| own_addresses(it)[1].is_some_and(|it| !is_in(&all, it))),
            only(&|it| it.pods().any(|it| !all.contain(it))),
        ];
        Self { owners: Prefixes::new(owners), only_strangers }
    }

    /// Returns whether an address of a node may be wrong: a few other nodes report it too, or only this node has such an
    /// address outside of the entry.
    pub(super) fn is_doubtful(&self, site: &Site, node: NodeId, address: IpAddr) -> bool {
        let kilo = &site.node(node).kilo;
        let [internal, wireguard] = own_addresses(kilo).map(|it| it == Some(address));
        let nodes = site.model.topology.nodes.len();
        let has = [internal, wireguard, kilo.pods().any(|it| it.holds(address))];
        let mut strangers = has.iter().zip(self.only_strangers);
        if strangers.any(|(has, only)| *has && only == Some(node)) {
            return true;
        }
        if !internal && !wireguard {
            return false;
        }
        let mut others = BTreeSet::new();
        for (_, other) in self.owners.holders(address).filter(|it| *it.1 != node) {
            others.insert(other);
            if !are_few(others.len(), nodes) {
                return false;
            }
        }
        !others.is_empty()
    }
}

/// Returns the internal address and the WireGuard address of a node.
fn own_addresses(node: &KiloNode) -> [Option<IpAddr>; 2] {
    [node.internal_address(), node.wireguard_ip().map(|it| it.address)]
}

/// Returns whether nodes of the cluster itself have a contested range, as their own pods or addresses, and only a few of
/// them can be wrong: one of several may be right, and none whose range only others declare.
fn is_range_of_few(fabric: &Fabric, number: SiteId, claims: &[TunnelClaim], range: Cidr) -> bool {
    let site = fabric.site(number);
    // One node may claim a range twice.
    let own = claims.iter().filter(|it| it.peer().is_none()).map(|it| it.tunnel);
    let own = own.collect::<BTreeSet<Tunnel>>().len();
    let nodes = site.model.topology.nodes.len();
    if claims.iter().all(|it| it.peer().is_none()) {
        return are_few(own.saturating_sub(1), nodes);
    }
    let mut declared = site.entry.networks.all().into_iter();
    0 < own && are_few(own, nodes) && !declared.any(|it| it.cidr.overlaps(range))
}

/// Returns whether a node dials another one where the other one claims to be: at an address of the node that dials, or where
/// the Kilo of the other one reports another port than that of most nodes.
fn is_misplaced(fabric: &Fabric, at: NodeRef, peer: PeerId, other: NodeRef) -> bool {
    let endpoint = fabric.site(at.site).model.endpoint(Tunnel::Peer(peer));
    endpoint.is_some_and(|it| {
        let is_claimed = it.address().is_some_and(|it| fabric.has_endpoint_at(it, other));
        is_claimed && fabric.is_at(at, other, it)
            || fabric.site(other.site).has_port_of_few(other.node, it.port.get())
    })
}

/// Returns whether only a few nodes of a cluster report that an address is theirs or on their LAN.
fn have_few(fabric: &Fabric, number: SiteId, address: IpAddr) -> bool {
    let site = fabric.site(number);
    let nodes = site.model.topology.nodes.ids();
    let all = nodes.len();
    let having = nodes.filter(|node| {
        site.connection(*node, address).is_some() || site.has_address(*node, address)
    });
    are_few(having.count(), all)
}
