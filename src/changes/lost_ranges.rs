//! Lost ranges: those of a source that a target reached, and that no Peer of this source gets instead.

use std::collections::BTreeSet;

use super::Version;
use super::clusters::Counterparts;
use super::ended::PresentEnds;
use super::peer_change::{Difference, PeerChange, PeerChangeKind};
use super::versions::Versions;
use crate::agent::fabric::{Fabric, Holding, Owner, SiteId};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{SlotId, Span};

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
