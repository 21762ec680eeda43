//! Leaks: what the Peers of a cluster let out that no cluster declares.

use std::collections::BTreeMap;

use by_address::ByAddress;

use super::linked_peers::{LinkedPeer, linked_peers};
use super::links::MeshLinks;
use crate::agent::fabric::{Fabric, Holding, NodeRef, Site, SiteId, SitePair, Sites};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::agent::peers::PeerId;
use crate::kilo::peer::Translation;
use crate::mesh::Refusals;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::packet::trace::Trace;
use crate::packet::{Goal, Packet, Session};
use crate::place::Place;
use crate::proof::bounded_list::APART;

/// Something that reaches what no link promises.
#[derive(Clone, Debug)]
pub struct Leak {
    /// A packet that does.
    pub trace: Trace,
    /// The range that lets it out, if the clusters are linked.
    pub range: Option<LeakedRange>,
    /// The ends whose policies refuse the link between the clusters.
    pub refusals: Refusals,
    /// The field of a mesh by which it does not link the clusters that it has.
    pub topology: Option<Place>,
}

/// A range of a Peer that the cluster behind it does not declare.
#[derive(Clone, Copy, Debug)]
pub struct LeakedRange {
    /// The cluster that gets the Peer.
    pub site: SiteId,
    /// The Peer.
    pub claim: TunnelClaim,
    /// The range.
    pub range: Cidr,
    /// The number of further ranges between the two clusters that have no entry of their own.
    pub others: u64,
}

/// A Peer whose key no node of the fleet has.
#[derive(Clone, Copy, Debug)]
pub struct Outsider {
    /// The cluster.
    pub site: SiteId,
    /// The Peer.
    pub peer: PeerId,
}

/// Peers that let nothing out but what the cluster they lead to declares, sorted: they are looked up for each
/// Peer of each cluster.
pub(super) type BoundedPeers<'a> = Vec<ByAddress<&'a Translation>>;

/// Finds the Peers of all clusters that do not lead to a node of the fleet.
pub(super) fn outsiders(fabric: &Fabric) -> Vec<Outsider> {
    let mut outsiders = Vec::new();
    for (site, it) in fabric.sites.numbered() {
        for (id, peer) in it.model.peers.numbered() {
            let is_nobody = fabric.holding(site, id) == Holding::Nobody;
            if is_nobody && peer.share().is_some() {
                outsiders.push(Outsider { site, peer: id });
            }
        }
    }
    outsiders
}

/// Returns the addresses that a cluster declares.
pub(super) fn declared(site: &Site) -> Prefixes<()> {
    Prefixes::union(site.entry.networks.all().into_iter().map(|it| it.cidr))
}

/// Finds the Peers whose ranges all are ranges that the cluster they lead to declares. Most clusters get the
/// same ones.
pub(super) fn bounded<'a>(fabric: &Fabric<'a>, declared: &Sites<Prefixes<()>>) -> BoundedPeers<'a> {
    let specs = fabric.contents().flat_map(|it| &it.peers).filter_map(|it| it.spec.as_ref().ok());
    let is_bounded = |spec: &&Translation| {
        let &[at] = fabric.holders(&spec.key) else {
            return false;
        };
        let mut allowed = spec.allowed_ips.iter();
        allowed.all(|it| is_declared(&declared[at.site], it.interface.network))
    };
    let mut bounded: BoundedPeers = specs.filter(is_bounded).map(ByAddress).collect();
    bounded.sort_unstable();
    bounded
}

fn include(bounded: &BoundedPeers, peer: &LinkedPeer) -> bool {
    let peer = ByAddress(peer.share.translation);
    bounded.binary_search(&peer).is_ok()
}

/// Returns whether a range is in one that is declared.
fn is_declared(declared: &Prefixes<()>, range: Cidr) -> bool {
    declared.around(Span::new(range)).next().is_some()
}

/// Finds ranges of a cluster's Peers that go beyond what the cluster they lead to declares, where a
/// packet for them arrives. Of many ranges of one cluster the last that is listed counts the rest.
pub(super) fn undeclared(
    fabric: &Fabric,
    number: SiteId,
    links: &MeshLinks,
    declared: &Sites<Prefixes<()>>,
    bounded: &BoundedPeers,
) -> Vec<Leak> {
    let mut leaks: BTreeMap<SiteId, Vec<Leak>> = BTreeMap::new();
    let linked = linked_peers(fabric, number, links);
    let open = linked.filter(|it| !include(bounded, it));
    for LinkedPeer { id, share, at } in open {
        let ranges = &declared[at.site];
        for kept in share.kept() {
            let range = kept.allowed.interface.network;
            if is_declared(ranges, range) {
                continue;
            }
            let pieces = ranges.pieces(Span::new(range)).into_iter();
            let outside = pieces.filter(|piece| piece.slot.is_none()).map(|it| it.span);
            let mut arriving = outside
                .filter_map(|it| arriving(fabric, SitePair { from: number, to: at.site }, it));
            let Some(trace) = arriving.next() else {
                continue;
            };
            let claim = TunnelClaim {
                tunnel: Tunnel::Peer(id),
                range: Some(kept.id),
                is_certain: kept.is_certain,
            };
            let of_source = leaks.entry(at.site).or_default();
            let is_full = APART <= of_source.len();
            match of_source.last_mut().and_then(|it| it.range.as_mut()) {
                Some(last) if is_full => last.others += 1,
                _ => of_source.push(Leak {
                    trace,
                    range: Some(LeakedRange { site: number, claim, range, others: 0 }),
                    refusals: Refusals::new(),
                    topology: None,
                }),
            }
        }
    }
    leaks.into_values().flatten().collect()
}

/// Returns the trace of a packet from a pod of a cluster to the first of these addresses, if it arrives.
fn arriving(fabric: &Fabric, SitePair { from, to }: SitePair, addresses: Span) -> Option<Trace> {
    let nodes = fabric.site(from).model.topology.nodes.numbered();
    let mut pods = nodes
        .filter(|(_, it)| it.segment.is_some())
        .flat_map(|(node, it)| it.kilo.pods().map(move |pods| (node, pods)));
    let (node, pods) = pods.find(|(_, pods)| pods.family() == addresses.family)?;
    let trace = fabric.exchange(Packet {
        from: NodeRef { site: from, node },
        source: pods.first(),
        to: Goal::Network(to),
        destination: addresses.first_address(),
        session: Session::New,
    });
    trace.there.ending.is_delivered().then_some(trace)
}
