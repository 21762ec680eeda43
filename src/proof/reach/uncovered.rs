//! Uncovered addresses: those that no Peer of a cluster has a range for.
//!
//! A packet to such an address leaves the cluster on no node, and packets from it are accepted on
//! no node. If all sites use the same private LAN, this applies to most addresses of nodes, so it
//! is decided once for the cluster and not for every packet.

use std::collections::BTreeMap;

use crate::agent::fabric::{NodeRef, Owner, Site, SiteId};
use crate::agent::model::{RangeHolder, Tunnel, TunnelClaim};
use crate::kilo::id::{NodeId, Nodes};
use crate::net::prefixes::{PrefixLook, SlotId, Span};
use crate::packet::{Ending, keeps, stays};

/// The endings of packets to addresses without a Peer, for one cluster, computed on demand.
#[derive(Debug, Default)]
pub(super) struct Uncovered(BTreeMap<Slots, NodeEndings>);

/// The ending of packets to some addresses on each node of the cluster, by [`Ending::name`]; none on
/// a node that sends nothing.
pub(super) type NodeEndings = Nodes<Option<&'static str>>;

/// The longest ranges around some addresses: who has them, who is connected to them, which tunnels they
/// belong to. Nothing else decides how packets to them end.
type Slots = [Option<SlotId>; 3];

/// The entries for some addresses in the tables of the viewing cluster.
#[derive(Clone, Copy)]
pub(super) struct Lookup {
    pub(super) owned: PrefixLook,
    pub(super) connected: PrefixLook,
    pub(super) tunnels: PrefixLook,
}

/// The nodes of a cluster that are connected to some addresses.
pub(super) enum Connected {
    Nobody,
    Some,
    /// All of them alike; one of them.
    All(NodeId),
}

impl Lookup {
    pub(super) fn new(site: &Site, span: Span) -> Self {
        Self {
            owned: site.owned().look(span),
            connected: site.connections().look(span),
            tunnels: site.model.tunnels.look(span),
        }
    }

    pub(super) fn is_whole(self) -> bool {
        self.owned.is_whole && self.connected.is_whole && self.tunnels.is_whole
    }

    /// Returns who has the addresses in the cluster that looks.
    pub(super) fn owner(self, site: &Site) -> Option<Owner> {
        let (_, owners) = site.owned().at(self.owned.longest?);
        owners.first().copied()
    }

    /// Returns which nodes have the addresses beside them.
    pub(super) fn connected(self, site: &Site) -> Connected {
        let connections = site.connections();
        let Some(slot) = self.connected.longest else {
            return Connected::Nobody;
        };
        let (_, nodes) = connections.at(slot);
        match nodes.first() {
            Some(first) if nodes.len() == site.model.topology.nodes.len() => Connected::All(*first),
            _ => Connected::Some,
        }
    }

    /// Returns whether a Peer has a range around the addresses.
    pub(super) fn are_claimed(self, site: &Site) -> bool {
        let mut claims = self.claims(site);
        claims.any(|claims| claims.iter().any(is_of_peer))
    }

    /// Returns whether no node takes a packet from these addresses, which no Peer has, out of a tunnel:
    /// every range around them belongs for certain to one segment.
    pub(super) fn are_rejected(self, site: &Site) -> bool {
        let mut claims = self.claims(site);
        !site.model.has_shared_keys() && claims.all(are_of_one_segment)
    }

    /// Returns the claims to each range around the addresses.
    fn claims<'s>(self, site: &'s Site) -> impl Iterator<Item = &'s [TunnelClaim]> {
        let tunnels = &site.model.tunnels;
        let slots = std::iter::successors(self.tunnels.longest, |slot| tunnels.parent(*slot));
        slots.map(|slot| tunnels.at(slot).1)
    }
}

impl Uncovered {
    /// Returns how packets end that nodes of a cluster send to addresses which no Peer has.
    pub(super) fn endings(&mut self, viewer: SiteId, site: &Site, span: Span) -> &NodeEndings {
        let lookup = Lookup::new(site, span);
        let slots = [lookup.owned, lookup.connected, lookup.tunnels].map(|it| it.longest);
        self.0.entry(slots).or_insert_with(|| {
            let nodes = &site.model.topology.nodes;
            nodes.map_ids(|node| ending(site, NodeRef { site: viewer, node }, span))
        })
    }
}

/// Returns how a packet ends that a node sends to addresses which no Peer has.
fn ending(site: &Site, from: NodeRef, span: Span) -> Option<&'static str> {
    let segment = site.segment(from.node)?;
    let sender = NodeRef { node: site.leader(segment).node(), ..from };
    let destination = span.first_address();
    let kept = stays(site, from, destination)
        .and_then(|()| stays(site, sender, destination))
        .and_then(|()| keeps(site, sender, segment, destination));
    let name = match kept {
        Err(ending) => ending.name(),
        Ok(()) => match site.model.select(segment, destination) {
            None => Ending::NoRoute { at: sender }.name(),
            Some((_, RangeHolder::Certain(_))) => {
                let range = None;
                Ending::LocalShadow { at: sender, range }.name()
            }
            Some((_, RangeHolder::Ambiguous(_))) => "ambiguous",
        },
    };
    Some(name)
}

/// Returns whether a claim is that of a Peer.
pub(super) fn is_of_peer(claim: &TunnelClaim) -> bool {
    matches!(claim.tunnel, Tunnel::Peer(_))
}

/// Returns whether all claims to a range are those of one segment, for certain.
pub(super) fn are_of_one_segment(claims: &[TunnelClaim]) -> bool {
    claims.first().is_none_or(|first| {
        !is_of_peer(first)
            && claims.iter().all(|it| it.tunnel == first.tunnel)
            && claims.iter().any(|it| it.is_certain)
    })
}
