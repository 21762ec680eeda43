//! Messages: the steps and endings of paths as text. Texts from nodes and files in them are safe to
//! print.

use std::net::IpAddr;

use super::trace::Trace;
use super::{Goal, rule};
use crate::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId};
use crate::agent::model::{AgentStopper, Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, PeerId};
use crate::diagnostic::{Finding, Quoted, Severity, escaped};
use crate::mesh::{Mesh, Topology, acceptance, are_linked, refusals, separating, unjoined};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Span;
use crate::place::Place;

pub use ending::ending;
pub use remedy::{delivery, wrong_dump};
pub use step::{premises, selected, step};
pub use unsent::unsent;

mod doubt;
mod ending;
mod hop;
mod remedy;
mod step;
mod unopened;
mod unsent;

/// A range of a Peer on a node that sends to it.
struct ChosenRange {
    at: NodeRef,
    claim: TunnelClaim,
    range: Cidr,
}

/// The longest part of a name that is shown, in characters.
const SHOWN: usize = 120;

/// The result for a packet without a finding.
pub const DELIVERED: &str = "delivered in both directions";

/// Returns what a node is called, such as `east/worker-1`, harmless to print.
pub fn called(fabric: &Fabric, at: NodeRef) -> String {
    escaped(&fabric.name(at), SHOWN)
}

/// Returns a node, or the declared range around addresses of no node, with its cluster.
pub fn end(fabric: &Fabric, site: SiteId, owner: Owner, span: Span) -> String {
    if let Some(node) = owner.node() {
        return called(fabric, NodeRef { site, node });
    }
    let ranges = fabric.site(site).owned();
    let range = ranges.around(span).next().map(|it| ranges.at(it).0);
    let range = range.map_or_else(|| span.first_address().to_string(), |it| it.to_string());
    format!("{}/{range}", fabric.site(site).cluster)
}

/// Returns how a trace ends, there or back, unless both are delivered.
pub fn verdict(fabric: &Fabric, trace: &Trace) -> Option<Finding> {
    let mut failure = match &trace.back {
        Some((answer, back)) => {
            let ending = ending(fabric, answer, &back.ending)?;
            let message = format!(
                "the packet arrives, but the reply does not ({}): {}",
                back.ending.name(),
                ending.message
            );
            Finding {
                labels: ending.labels,
                help: ending.help,
                ..Finding::new(&rule::RETURN_FAILS, message)
            }
        }
        None => ending(fabric, &trace.packet, &trace.there.ending)?,
    };
    // To a packet it is final what is only a warning to a plan.
    failure.severity = Severity::Error;
    Some(failure)
}

/// Returns the remedy for a trace that the mesh excludes: its clusters are not linked, or a node is
/// not selected. The manifests do not contain either.
pub fn unprovided(fabric: &Fabric, meshes: &[Mesh], trace: &Trace) -> Option<String> {
    let (from, to) = (trace.packet.from, trace.packet.to);
    let [one, other] = [from.site, to.site()].map(|it| fabric.site(it));
    if let Some(entry) = unjoined(meshes, one.cluster, other.cluster) {
        let (state, cluster) = (entry.state, &entry.name);
        return Some(format!("remove `state: {state:?}` of `{cluster}` in the mesh"));
    }
    if !are_linked(meshes, one.cluster, other.cluster) {
        let refusals = refusals(meshes, one.cluster, other.cluster);
        if !refusals.is_empty() {
            return Some(acceptance(&refusals));
        }
        return linking(meshes, one.cluster, other.cluster);
    }
    let packet = &trace.packet;
    let ends = [(one, packet.destination, other), (other, packet.source, one)];
    let mut refused = ends.into_iter().filter_map(|(taker, address, giver)| {
        let list = refusing_list(meshes, taker.cluster, giver.cluster, address)?;
        let file = Quoted(&list.source);
        // A pod CIDR is one range: without all of it, none of it is accepted.
        let mut pods = giver.reading.nodes.iter().filter_map(|it| it.kilo.pod_cidr);
        let added = match pods.find(|it| it.holds(address)) {
            Some(range) => range.to_string(),
            None => format!("a range with {address}"),
        };
        Some(format!("add {added} to `acceptedNetworks` of `{}` in {file}", taker.cluster))
    });
    if let Some(help) = refused.next() {
        return Some(help);
    }
    let goal = match to {
        Goal::Node(at) => Some(at),
        Goal::Services(_) | Goal::Network(_) => None,
    };
    let unselected = [Some(from), goal].into_iter().flatten().find(|at| {
        let site = fabric.site(at.site);
        let node = site.snapshot_of(at.node);
        !site.entry.selector.matches(&node.labels)
    })?;
    let cluster = fabric.site(unselected.site).cluster;
    Some(format!(
        "change the `nodeSelector` of `{cluster}`, which does not select {}, or label the node and \
         take a new snapshot",
        called(fabric, unselected)
    ))
}

/// Returns what links two of them. No mesh joins two external peers.
fn linking(meshes: &[Mesh], one: &ClusterName, other: &ClusterName) -> Option<String> {
    let separating = separating(meshes, one, other);
    match (one.external(), other.external()) {
        (Some(_), Some(_)) => None,
        (Some(peer), None) => Some(format!("add `{other}` to the `clusters` of `{peer}`")),
        (None, Some(peer)) => Some(format!("add `{one}` to the `clusters` of `{peer}`")),
        (None, None) => Some(match separating.map(|it| &it.topology) {
            // A hub is linked to all clusters, which is more than this link.
            Some(Topology::Hub(_)) => return None,
            Some(_) => format!("add `[{one}, {other}]` to `links` of the mesh"),
            None => format!("add a mesh with `{one}` and `{other}`"),
        }),
    }
}

/// Returns the list of accepted ranges by which a cluster takes no address of this one from another, in each mesh that
/// links the two.
fn refusing_list<'m>(
    meshes: &'m [Mesh],
    taker: &ClusterName,
    giver: &ClusterName,
    address: IpAddr,
) -> Option<&'m Place> {
    let linking = meshes.iter().filter(|it| it.links(taker, giver));
    let entries = linking.filter_map(|it| it.entries.iter().find(|it| it.name == *taker));
    let refusing = entries.map(|entry| {
        let mut lists = entry.accepted_lists();
        let list = lists.find(|list| !list.iter().any(|it| it.cidr.holds(address)))?;
        Some(&list.first()?.place)
    });
    let refusing: Option<Vec<&Place>> = refusing.collect();
    refusing?.first().copied()
}

/// Returns what leaves nothing certain on a cluster's nodes.
fn stopper(fabric: &Fabric, at: NodeRef) -> Option<Finding> {
    let site = fabric.site(at.site);
    let name = |peer: PeerId| peer_of(fabric, at.site, peer);
    let object = |peer: PeerId| &site.model.peers[peer];
    let (what, place, help) = match *site.model.stoppers.first()? {
        AgentStopper::Undecodable(peer) => (
            format!(
                "the invalid Peer {} prevents restarted agents from reading any Peer",
                name(peer)
            ),
            Some(object(peer).place()),
            "correct or delete this Peer",
        ),
        AgentStopper::Mapped { peer, index } => (
            format!(
                "the Peer {} has an IPv4 range written as IPv6, which kernels refuse together with \
                 everything after it",
                name(peer)
            ),
            Some(object(peer).allowed_ip(index)),
            "write the range as IPv4",
        ),
        AgentStopper::Exhausted => (
            "the Kilo subnet has too few addresses".to_owned(),
            None,
            "run all Kilo pods of the cluster with a wider `--subnet`",
        ),
    };
    let here = called(fabric, at);
    let message = format!("the state of {here} is uncertain: {what}");
    let finding = Finding::new(&rule::AMBIGUOUS, message);
    Some(finding.at(place, "the cause").help(help))
}

/// Returns the node that has the tunnels of another's segment.
fn speaker(fabric: &Fabric, at: NodeRef) -> Option<NodeRef> {
    let site: &Site = fabric.site(at.site);
    let leader = site.leader(site.segment(at.node)?).node();
    Some(NodeRef { node: leader, ..at })
}

fn peer<'f>(fabric: &'f Fabric, site: SiteId, tunnel: Tunnel) -> Option<&'f ClusterPeer<'f>> {
    match tunnel {
        Tunnel::Peer(peer) => Some(&fabric.site(site).model.peers[peer]),
        Tunnel::Segment(_) => None,
    }
}

fn peer_of<'f>(fabric: &'f Fabric, site: SiteId, peer: PeerId) -> &'f str {
    &fabric.site(site).model.peers[peer].applied.name
}

/// Returns what a far end is called.
pub(crate) fn tunnel(fabric: &Fabric, site: SiteId, tunnel: Tunnel) -> String {
    match tunnel {
        Tunnel::Peer(peer) => format!("the Peer {}", peer_of(fabric, site, peer)),
        Tunnel::Segment(segment) => {
            let segment = &fabric.site(site).model.topology.segments[segment];
            let node = segment.leader.node();
            let leader = called(fabric, NodeRef { site, node });
            if 1 < segment.members.len() {
                format!("the location that {leader} leads")
            } else {
                format!("its own node {leader}")
            }
        }
    }
}

fn place(fabric: &Fabric, at: NodeRef, claim: TunnelClaim) -> Option<Place> {
    fabric.site(at.site).model.place(claim)
}

/// Returns the address of a packet's other end if its owner is known.
pub fn whose(fabric: &Fabric, site: SiteId, address: IpAddr) -> String {
    let owner = fabric.site(site).owner(address);
    let of = |node| called(fabric, NodeRef { site, node });
    let is_host = fabric.site(site).cluster.is_external();
    let cluster = fabric.site(site).cluster.as_str();
    match owner {
        Some(Owner::Pods(node)) if !is_host => format!("a pod on {}", of(node)),
        Some(Owner::Node(node) | Owner::Pods(node)) => of(node),
        Some(Owner::Tunnel(node)) => format!("{} in the Kilo subnet", of(node)),
        Some(Owner::Services) => format!("a service of {cluster}"),
        Some(Owner::Network) => format!("a network of {cluster}"),
        Some(Owner::Pool) | None => cluster.to_owned(),
    }
}
