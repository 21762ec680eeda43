//! Carrier moves and lost ranges: addresses that a target reaches through another node than before, and those of a source
//! that it does not reach any more.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::blocks::PresentEnds;
use super::cause::{Cause, NamedNode};
use super::cluster_transition::ClusterTransition;
use super::clusters::Counterparts;
use super::peer_change::{Difference, PeerChange, PeerChangeKind, named_node};
use super::{Version, Versions};
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, Owner, Site, SiteId};
use crate::agent::model::{RangeHolder, Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, PeerId, has_same_routes};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{SlotId, Span};

/// Addresses that a target reaches through another node than before. Connections to them break once.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CarrierMove {
    /// The range of the Peer that has them now.
    pub range: Cidr,
    /// The node that carried them.
    pub from: NamedNode,
    /// The node that carries them now.
    pub to: NamedNode,
    /// True if the range belongs to a cluster as a whole, so that an anchor has moved.
    pub is_shared: bool,
    /// True if the old node was in the network of the range, and the new one is not. No snapshot shows that it has a route.
    pub leaves_network: bool,
}

impl CarrierMove {
    /// Finds those of a target.
    pub(super) fn find(
        transition: &ClusterTransition,
        Versions { before, after }: Versions<&Fabric, &Fabric>,
        counterparts: &Counterparts,
    ) -> Vec<Self> {
        if transition.peers.have_same_routes() {
            return Vec::new();
        }
        let (old, new) = (&*transition.peers.now, &*transition.peers.after);
        let mut moves = BTreeSet::new();
        // The endpoint of a Peer does not decide which Peer has an address.
        let is_rerouted = |pair: &Pair<&ClusterPeer>| match pair {
            Pair::Changed { before, after } => !has_same_routes(before.applied, after.applied),
            Pair::Same(_) | Pair::Added(_) | Pair::Removed(_) => true,
        };
        for range in transition.peers.ranges(is_rerouted) {
            let span = Span::new(range);
            let borders = old.model.tunnels.across(span);
            for piece in span.cut(borders.chain(new.model.tunnels.across(span))) {
                let address = piece.first_address();
                let (Some(was), Some(is)) = (carrier(old, address), carrier(new, address)) else {
                    continue;
                };
                let names = [&old.model.peers[was.1], &new.model.peers[is.1]];
                let names = names.map(|it| it.applied.name.as_str());
                // A Peer with another key is the same carrier with a new key.
                if was.0 == is.0 || names[0] == names[1] {
                    continue;
                }
                let (Some(from), Some(to)) = (before.only_holder(&was.0), after.only_holder(&is.0))
                else {
                    continue;
                };
                // An address that becomes a node's own, or was one, had another meaning.
                let owns = |fabric: &Fabric, site| is_of_node(fabric, site, address);
                let is_own = owns(after, to.site);
                if counterparts.before(to.site) == Some(from.site)
                    && owns(before, from.site) != is_own
                {
                    continue;
                }
                let is_shared = !is_own && is_shared(after.site(to.site), is.2);
                moves.insert(Self {
                    is_shared,
                    leaves_network: is_shared
                        && before.site(from.site).stands_in(from.node, is.2)
                        && !after.site(to.site).may_stand_in(to.node, is.2),
                    range: is.2,
                    from: named_node(before, from),
                    to: named_node(after, to),
                });
            }
        }
        moves.into_iter().collect()
    }

    /// Returns the cause that it shows, if it is the move of an anchor.
    pub(super) fn cause(&self) -> Option<Cause> {
        let is_anchor = self.is_shared && self.from.cluster == self.to.cluster;
        is_anchor.then(|| Cause::AnchorMoved {
            cluster: self.to.cluster.clone(),
            range: self.range,
            from: self.from.node.clone(),
            to: self.to.node.clone(),
        })
    }
}

/// Returns the key of the Peer that has an address, the Peer, and its range.
fn carrier(site: &Site, address: IpAddr) -> Option<([u8; 32], PeerId, Cidr)> {
    let segment = site.model.topology.segments.ids().next()?;
    let (slot, holder) = site.model.select(segment, address)?;
    let RangeHolder::Certain(claim) = holder else {
        return None;
    };
    let peer = claim.peer()?;
    let key = site.model.share(peer)?.translation.key;
    Some((key, peer, site.model.tunnels.at(slot).0))
}

/// Returns whether a node has an address.
fn is_of_node(fabric: &Fabric, site: SiteId, address: IpAddr) -> bool {
    fabric.site(site).owner(address).is_some_and(|it| it.node().is_some())
}

fn is_shared(site: &Site, range: Cidr) -> bool {
    site.reading.shared.iter().any(|it| it.overlaps(range))
}

/// Returns the ranges that Peers of a target lose, unless another Peer of the same source has them afterwards. Those of
/// Peers without a known node, which count as lost by themselves, are left out.
pub(super) fn lost_ranges(
    changes: &[PeerChange],
    after: &Fabric,
    target: SiteId,
) -> BTreeSet<Cidr> {
    let mut lost: BTreeSet<(Cidr, Option<&ClusterName>)> = BTreeSet::new();
    let peers = changes.iter().map(|it| &it.peer);
    for peer in peers.filter(|it| !it.is_removed_stranger()) {
        let source = peer.holder.as_ref().map(|it| &it.cluster);
        if let PeerChangeKind::Removed { ranges, .. } = &peer.kind {
            lost.extend(ranges.iter().map(|it| (*it, source)));
        }
        for difference in peer.differences() {
            if let Difference::RangesLost(ranges) = difference {
                lost.extend(ranges.iter().map(|it| (*it, source)));
            }
        }
    }
    lost.retain(|(range, source)| !is_reached(*range, *source, after, target));
    lost.into_iter().map(|it| it.0).collect()
}

/// Returns whether the proof shows what becomes of a range: it is a part of what follows packets, or addresses that no
/// node has any more.
pub(super) fn is_proved(
    range: Cidr,
    Versions { before, after }: Versions<&Version, &Version>,
    counterparts: &Counterparts,
) -> bool {
    let span = Span::new(range);
    before.fabric.sites.numbered().any(|(number, site)| {
        let owners = site.owned().around(span);
        let mut owners = owners.flat_map(|it| site.owned().at(it).1);
        owners.any(|owner| match *owner {
            Owner::Node(_) | Owner::Pods(_) | Owner::Services | Owner::Network => true,
            // Packets are followed to the other addresses of a node. With these the tunnel goes, too.
            Owner::Tunnel(node) => counterparts.after(number).is_none_or(|it| {
                let present = PresentEnds::new(after.fabric.site(it), after.fleet);
                !present.takes_part(&site.node(node).kilo.name, span)
            }),
            Owner::Pool => false,
        })
    })
}

/// Returns whether all addresses of a range lead to a source.
fn is_reached(range: Cidr, source: Option<&ClusterName>, after: &Fabric, target: SiteId) -> bool {
    let tunnels = &after.site(target).model.tunnels;
    let leads_there = |claim: &TunnelClaim| match (claim.tunnel, source) {
        (Tunnel::Segment(_), _) => false,
        (Tunnel::Peer(_), None) => true,
        (Tunnel::Peer(peer), Some(source)) => matches!(
            after.holding(target, peer),
            Holding::One(at) if after.site(at.site).cluster == source
        ),
    };
    let is_of_source = |slot: SlotId| tunnels.at(slot).1.iter().any(leads_there);
    let span = Span::new(range);
    tunnels.around(span).next().is_some_and(is_of_source) && tunnels.within(span).all(is_of_source)
}
