//! Far ends: the Peers of a cluster that a hostile one holds the keys of, and what they hold there.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::agent::fabric::{Fabric, NodeRef, Site, SiteId};
use crate::agent::model::{RangeHolder, Tunnel, TunnelClaim};
use crate::kilo::id::SegmentId;
use crate::kilo::topology::Leader;
use crate::net::prefixes::{SlotId, Span, widest};
use crate::packet::{Doubt, Ending, keeps, stays};
use crate::proof::reach::pieces;

/// The ranges of a far end, before their owners are looked up.
#[derive(Clone, Copy)]
pub(super) struct HeldPeer {
    pub(super) span: Span,
    pub(super) claim: TunnelClaim,
    pub(super) is_certain: bool,
}

/// The claim of a far end that wins some addresses.
#[derive(Clone, Copy)]
pub(super) struct WinningClaim {
    pub(super) claim: TunnelClaim,
    pub(super) is_certain: bool,
}

impl HeldPeer {
    fn new(span: Span, won: WinningClaim) -> Self {
        let WinningClaim { claim, is_certain } = won;
        Self { span, claim, is_certain }
    }
}

/// The far ends of a cluster's tunnels that another one has the keys of.
pub(super) struct FarEnds<'f, 'a> {
    fabric: &'f Fabric<'a>,
    pub(super) site: &'f Site<'a>,
    /// The cluster that has the keys.
    pub(super) keeper: SiteId,
    pub(super) ends: BTreeSet<Tunnel>,
}

impl<'f, 'a> FarEnds<'f, 'a> {
    /// Finds those of a cluster, for each of the others that has their keys. A node may claim the key of
    /// another one. The key counts as that of both clusters, because the true owner is unknown.
    pub(super) fn by_site(fabric: &'f Fabric<'a>, number: SiteId) -> BTreeMap<SiteId, Self> {
        let site = fabric.site(number);
        let mut ends = BTreeMap::new();
        let mut add = |key: &[u8; 32], tunnel: Tunnel| {
            for keeper in fabric.holding_sites(key).filter(|it| *it != number) {
                let none = || Self { fabric, site, keeper, ends: BTreeSet::new() };
                ends.entry(keeper).or_insert_with(none).ends.insert(tunnel);
            }
        };
        for (key, peer) in site.model.by_key() {
            add(key, Tunnel::Peer(peer));
        }
        for segment in site.model.topology.segments.ids() {
            let tunnel = Tunnel::Segment(segment);
            if let Some(key) = site.model.key(tunnel) {
                add(&key, tunnel);
            }
        }
        ends
    }

    fn has(&self, claim: &TunnelClaim) -> bool {
        self.ends.contains(&claim.tunnel)
    }

    /// Returns the addresses that any node's WireGuard gives to them, in order.
    pub(super) fn holds(&self) -> impl Iterator<Item = HeldPeer> {
        self.fabric.count_look_up();
        let model = &self.site.model;
        let pieces = widest(self.ends.iter().flat_map(|it| model.ranges(*it)))
            .into_iter()
            .flat_map(|range| model.tunnels.pieces(Span::new(range)));
        pieces.filter_map(|piece| {
            let slot = piece.slot?;
            let segments = model.topology.segments.ids();
            let looked_at = if self.is_alike(slot) { 1 } else { segments.len() };
            let found = segments.take(looked_at).filter_map(|segment| self.holder(segment, slot));
            Some(HeldPeer::new(piece.span, surest(found)?))
        })
    }

    /// Returns whether all nodes have the same entry for a range and for the wider ones, which
    /// count if the range may have no owner: the claims are those of Peers with keys of other
    /// clusters.
    fn is_alike(&self, slot: SlotId) -> bool {
        let tunnels = &self.site.model.tunnels;
        let mut around = iter::successors(Some(slot), |it| tunnels.parent(*it));
        around.all(|slot| {
            tunnels.at(slot).1.iter().all(|claim| match claim.tunnel {
                Tunnel::Peer(peer) => !self.site.has_own_key(peer),
                Tunnel::Segment(_) => false,
            })
        })
    }

    /// Returns which of their claims the leader of a segment goes by for addresses of which `slot` is
    /// the longest range, and whether that is certain.
    pub(super) fn holder(&self, segment: SegmentId, slot: SlotId) -> Option<WinningClaim> {
        let model = &self.site.model;
        let (mut next, mut is_certain) = (Some(slot), true);
        while let Some(slot) = next {
            match model.holder(segment, slot) {
                Some(RangeHolder::Certain(claim)) => {
                    return self.has(&claim).then_some(WinningClaim { claim, is_certain });
                }
                Some(RangeHolder::Ambiguous(claims)) => {
                    if let Some(claim) = claims.into_iter().find(|it| self.has(it)) {
                        return Some(WinningClaim { claim, is_certain: false });
                    }
                    // If none of these is there, the next wider range counts.
                    is_certain = false;
                }
                None => {}
            }
            next = model.tunnels.parent(slot);
        }
        None
    }

    /// Returns what of the addresses that they have is sent to them: what a node has itself, or beside
    /// itself, it keeps.
    pub(super) fn attracted(&self, number: SiteId, holds: &[HeldPeer]) -> Vec<HeldPeer> {
        let mut attracted = Vec::new();
        let topology = &self.site.model.topology;
        let own = &topology.nodes;
        // A node whose leader is uncertain sends less certainly than the others.
        let mut segments = topology.segments.iter();
        let are_led = segments.all(|it| matches!(it.leader, Leader::Certain(_)));
        for hold in holds {
            for span in pieces(self.site, self.site, hold.span) {
                let slot = self.site.model.tunnels.around(span).next();
                let is_alike = are_led
                    && slot.is_some_and(|it| self.is_alike(it))
                    && !self.site.is_connected(span);
                let ready = own.ids().filter(|it| self.site.segment(*it).is_some());
                let nodes = ready.take(if is_alike { 1 } else { own.len() });
                let sent = nodes.filter_map(|node| {
                    let at = NodeRef { site: number, node };
                    self.sent(at, span)
                });
                attracted.extend(surest(sent).map(|it| HeldPeer::new(span, it)));
            }
        }
        attracted
    }

    /// Returns by which of their claims a node sends packets for some addresses to them.
    pub(super) fn sent(&self, from: NodeRef, span: Span) -> Option<WinningClaim> {
        let address = span.first_address();
        let segment = self.site.segment(from.node)?;
        let leader = self.site.leader(segment);
        let sender = NodeRef { node: leader.node(), ..from };
        stays(self.site, from, address).ok()?;
        stays(self.site, sender, address).ok()?;
        match keeps(self.site, sender, segment, address) {
            Ok(()) => {}
            Err(Ending::Ambiguous { doubt: Doubt::Range { claims, .. }, .. }) => {
                // The segment itself is among them, and another node may have the same key.
                let is_sent = |it: &TunnelClaim| {
                    self.has(it) && self.site.model.is_configured(segment, it.tunnel)
                };
                return Some(WinningClaim {
                    claim: claims.into_iter().find(is_sent)?,
                    is_certain: false,
                });
            }
            Err(_) => return None,
        }
        let slot = self.site.model.tunnels.around(span).next()?;
        let won = self.holder(segment, slot)?;
        let is_led = matches!(leader, Leader::Certain(_));
        Some(WinningClaim {
            is_certain: won.is_certain && is_led && !self.site.has_refused_routes(),
            ..won
        })
    }
}

/// Returns the first that is certain, or else the first.
fn surest(mut found: impl Iterator<Item = WinningClaim>) -> Option<WinningClaim> {
    let first = found.next()?;
    if first.is_certain {
        return Some(first);
    }
    Some(found.find(|it| it.is_certain).unwrap_or(first))
}
