//! The view of one cluster: how it looks at the others, and the views that result.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::Depth;
use super::address_block::{most_pieces, pieces};
use super::disputed::Disputed;
use super::equivalence_class::{NextHop, PieceView, SourceCheck};
use super::forwarding_view::{ForwardingView, SortedBlocks};
use super::known_peer::{KnownPeer, PeerLink};
use super::local_addresses::{LocalBlock, Reception};
use super::shared_views::SharedViews;
use super::uncovered::{Connected, Lookup, Uncovered};
use crate::agent::fabric::{Fabric, Holding, NodeRef, Owner, Site, SiteId, Sites};
use crate::agent::model::{RangeHolder, Tunnel};
use crate::agent::peers::PeerId;
use crate::kilo::topology::Leader;
use crate::net::prefixes::Span;
use crate::packet::stays;
use crate::proof::bounded_list::APART;

/// The views of the others from one cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ForwardingViews {
    /// Each of the clusters; empty if none is wanted.
    pub(super) others: Sites<Arc<ForwardingView>>,
    /// The endings of packets that leave the cluster on no node, computed on demand.
    pub(super) uncovered: Arc<Mutex<Uncovered>>,
}

impl ForwardingViews {
    /// Looks at the wanted clusters from one of them.
    pub(super) fn from(
        shared: &SharedViews,
        viewer: SiteId,
        depth: Depth,
        is_wanted: impl Fn(SiteId) -> bool,
    ) -> Self {
        let fabric = shared.fabric;
        let is_wanted = |home: SiteId| home != viewer && is_wanted(home);
        if !fabric.sites.ids().any(is_wanted) {
            return Self::default();
        }
        let unseen: Arc<ForwardingView> = Arc::default();
        let site = fabric.site(viewer);
        let mut view = ClusterView {
            fabric,
            site,
            viewer,
            known: RefCell::default(),
            unique: 0,
            contested: BTreeMap::new(),
            astray: BTreeSet::new(),
            disputed: Disputed::find(site),
        };
        let standpoint = shared.standpoint(viewer, &view.disputed);
        let kept = Arc::new(ForwardingView::kept());
        let may_leave = |home: SiteId| {
            let standpoint = standpoint.as_ref().filter(|_| depth == Depth::Held);
            standpoint.is_none_or(|it| it.may_lead_to(home))
        };
        let others = fabric.sites.map_ids(|number| {
            if !is_wanted(number) {
                return Arc::clone(&unseen);
            }
            if !may_leave(number) {
                return Arc::clone(&kept);
            }
            shared.alike(number, standpoint.as_ref(), || view.look(number, shared))
        });
        Self { others, uncovered: Arc::default() }
    }
}

/// The Peer that has some addresses; without one, where their packets go instead.
type Selected = Result<PeerId, NextHop>;

/// The cluster that looks.
struct ClusterView<'e, 'a> {
    fabric: &'e Fabric<'a>,
    site: &'e Site<'a>,
    viewer: SiteId,
    /// The Peers that were needed.
    known: RefCell<BTreeMap<PeerId, KnownPeer>>,
    unique: usize,
    /// The numbers of addresses that several nodes of the other cluster may have.
    contested: BTreeMap<Span, usize>,
    /// The first Peers that do not lead where packets in them are meant to go, of the cluster that is looked
    /// at.
    astray: BTreeSet<PeerId>,
    disputed: Disputed<'e>,
}

/// The entries for some addresses in the tables of the viewing cluster.
#[derive(Clone, Copy)]
struct Ruling {
    /// Whether a Peer has a range around them.
    is_claimed: bool,
    /// The Peer that packets to them are given to.
    selected: Selected,
    /// The Peer from which packets with them are taken.
    held: Selected,
    /// Whether both are the same on all nodes.
    is_uniform: bool,
}

impl Ruling {
    /// Returns whether packets with these addresses are taken from the Peer of their leader.
    fn source_check(&self, of_leader: Option<PeerId>) -> SourceCheck {
        match self.held {
            Ok(holder) if of_leader == Some(holder) => SourceCheck::Yes,
            Err(NextHop::Contested(slot)) => SourceCheck::Doubt(slot),
            _ => SourceCheck::No,
        }
    }

    /// Returns whether all nodes do the same with a block. The winner of a contest may lead to any segment, each of which
    /// has connections of its own.
    fn is_uniform_for(&self, local: &LocalBlock) -> bool {
        let is_contested = matches!(self.selected, Err(NextHop::Contested(_)));
        self.is_uniform && (local.segment.is_some() || !is_contested)
    }

    /// No Peer has them.
    fn kept(is_uniform: bool) -> Self {
        Self {
            is_claimed: false,
            selected: Err(NextHop::Kept),
            held: Err(NextHop::Kept),
            is_uniform,
        }
    }
}

/// The number of steps for each piece of a class that is new: it takes more memory than a block.
const NEW_CLASS: u64 = 8;

impl ClusterView<'_, '_> {
    /// Looks at a cluster. If that takes too many steps, it has no blocks.
    fn look(&mut self, home: SiteId, shared: &SharedViews) -> ForwardingView {
        self.astray.clear();
        let mut blocks = SortedBlocks::default();
        let mut all = 0;
        let mut is_cut = false;
        for local in &shared.homes[home].locals {
            let ruling = self.ruling_for_all(local);
            let pieces = match ruling {
                Some(_) => 1,
                None => most_pieces(self.site, self.fabric.site(home), local.block.span),
            };
            all += pieces;
            let classes = blocks.class_count();
            is_cut |= !shared.take(pieces);
            if is_cut {
                continue;
            }
            self.sort(home, local, ruling, &mut blocks);
            let is_new = classes < blocks.class_count();
            is_cut |= is_new && !shared.take(NEW_CLASS * pieces);
        }
        if is_cut { SortedBlocks::cut(all) } else { blocks.finished() }
    }

    /// Puts a block to those that are seen like it. `ruling` is for all of its addresses, if there is one.
    fn sort(
        &mut self,
        home: SiteId,
        local: &LocalBlock,
        ruling: Option<Ruling>,
        blocks: &mut SortedBlocks,
    ) {
        let span = local.block.span;
        if let Some(ruling) = ruling {
            blocks.add(local, &[self.view(home, local, span, ruling)]);
            return;
        }
        let mut views = Vec::new();
        for piece in pieces(self.site, self.fabric.site(home), span) {
            let ruling = self.ruling(piece, Lookup::new(self.site, piece));
            views.push(self.view(home, local, piece, ruling));
        }
        blocks.add(local, &views);
    }

    /// Returns whether a Peer that leads to `at` leads to the block.
    fn is_meant(&self, home: SiteId, local: &LocalBlock, at: NodeRef) -> bool {
        at.site == home
            && local.block.owner.node().is_none_or(|_| {
                local.segment.is_some() && self.fabric.site(home).segment(at.node) == local.segment
            })
    }

    /// Returns what the cluster knows of one of its Peers.
    fn known(&self, peer: PeerId) -> KnownPeer {
        let new = || KnownPeer::new(self.fabric, self.viewer, peer);
        *self.known.borrow_mut().entry(peer).or_insert_with(new)
    }

    /// Returns the Peer if it is one of the first that do not lead where packets in them are meant to go. In
    /// each of them a packet ends in the same way, and people need only a few examples.
    fn astray(&mut self, peer: PeerId) -> Option<PeerId> {
        if self.astray.len() < APART {
            self.astray.insert(peer);
        }
        self.astray.contains(&peer).then_some(peer)
    }

    /// Returns the next hop to a Peer that does not lead where packets are meant to go.
    fn wrong_hop(&mut self, holding: Holding, peer: PeerId) -> NextHop {
        let astray = self.astray(peer);
        match holding {
            Holding::One(_) => NextHop::Thief(astray),
            Holding::Many => NextHop::Shared(astray),
            Holding::Nobody => NextHop::Unknown(astray),
        }
    }

    /// Returns the cluster's entry for all addresses of a block, if it is the same for each.
    fn ruling_for_all(&self, local: &LocalBlock) -> Option<Ruling> {
        let span = local.block.span;
        if !self.disputed.meets(span) {
            return Some(Ruling::kept(true));
        }
        let lookup = Lookup::new(self.site, span);
        let is_whole = span.first == span.last || local.is_whole && lookup.is_whole();
        is_whole.then(|| self.ruling(span, lookup))
    }

    fn ruling(&self, span: Span, lookup: Lookup) -> Ruling {
        if lookup.are_claimed(self.site) {
            self.selected(span, lookup)
        } else {
            Ruling::kept(lookup.are_rejected(self.site))
        }
    }

    fn view(&mut self, home: SiteId, local: &LocalBlock, span: Span, ruling: Ruling) -> PieceView {
        // Whether all nodes agree about the Peers.
        let mut is_agreed = true;
        // The leader of the addresses, in the view of the viewing cluster.
        let leader = local.leader.map(|it| NodeRef { site: home, node: it.node() });
        let (next_hop, onward, speaker) = match ruling.selected.map(|it| (it, self.known(it))) {
            Err(next_hop) => (next_hop, PeerLink::None, leader),
            Ok((peer, known)) => {
                is_agreed &= known.is_uniform;
                match known.holding {
                    Holding::One(at) if self.is_meant(home, local, at) => {
                        (NextHop::Right, known.link, Some(at))
                    }
                    other => (self.wrong_hop(other, peer), PeerLink::None, leader),
                }
            }
        };
        let home = self.fabric.site(home);
        let is_alone = matches!(onward, PeerLink::One { .. } | PeerLink::Silent);
        let (back, source_check) = if is_alone && (leader.is_none() || leader == speaker) {
            (onward, SourceCheck::Yes)
        } else {
            let (peer, link, is_same) = self.peer_of(leader, local);
            is_agreed &= is_same;
            (link, ruling.source_check(peer))
        };
        let segment = || speaker.and_then(|it| home.segment(it.node));
        let leads = || segment().map(|it| home.leader(it));
        let unique = if !is_agreed || ruling.is_uniform != ruling.is_uniform_for(local) {
            Some(self.next_unique())
        } else if ruling.is_uniform {
            None
        } else {
            Some(self.unique_of(span))
        };
        let reception = || Reception::new(home, local.segment.or_else(segment), local.block, span);
        let mut deliver = match local.deliver {
            // Of what is kept no packet gets there.
            _ if !ruling.is_claimed => {
                Reception::of_answers(home, local.segment.or_else(segment), local.block)
            }
            known => known.unwrap_or_else(reception),
        };
        if speaker.is_some_and(|it| home.refused(it.node).is_some()) {
            deliver = deliver.without_answers();
        }
        let mut piece = PieceView {
            family: span.family,
            next_hop,
            is_kept: !ruling.is_claimed
                || unique.is_none() && matches!(next_hop, NextHop::NoRoute | NextHop::Shadow),
            onward,
            back,
            source_check,
            deliver,
            segment: None,
            calls: speaker.is_some_and(|it| 0 < home.node(it.node).kilo.keepalive),
            is_led: !matches!(local.leader.or_else(leads), Some(Leader::Ambiguous(_))),
            unique,
        };
        piece.segment = local.segment.filter(|_| piece.is_doubtful());
        piece
    }

    fn next_unique(&mut self) -> usize {
        self.unique += 1;
        self.unique
    }

    /// Returns the number of addresses that nodes treat differently only because of their own ranges.
    fn unique_of(&mut self, span: Span) -> usize {
        if let Some(unique) = self.contested.get(&span) {
            return *unique;
        }
        let unique = self.next_unique();
        self.contested.insert(span, unique);
        unique
    }

    /// Returns the Peer with the key of the leader of a block's segment, the tunnel, and whether
    /// all nodes have the same view of it.
    fn peer_of(
        &self,
        leader: Option<NodeRef>,
        local: &LocalBlock,
    ) -> (Option<PeerId>, PeerLink, bool) {
        let peers = local.key.map_or(&[][..], |key| self.site.model.peers_with(&key));
        match (peers.first(), leader) {
            (Some(&peer), Some(at)) => {
                let of = |peer| {
                    let known = self.known(peer);
                    if known.holding == Holding::One(at) {
                        return (known.link, known.is_uniform);
                    }
                    PeerLink::find(self.fabric, self.viewer, peer, at)
                };
                let are_uniform = peers.iter().all(|peer| of(*peer).1);
                (Some(peer), of(peer).0, are_uniform)
            }
            _ => (None, PeerLink::None, true),
        }
    }

    /// Returns whether all nodes agree about every Peer that may have these addresses, with any
    /// result of contests.
    fn are_uniform(&self, span: Span) -> bool {
        let tunnels = &self.site.model.tunnels;
        let slots = tunnels.around(span).map(|slot| tunnels.at(slot));
        slots.flat_map(|it| it.1).all(|claim| match claim.tunnel {
            Tunnel::Peer(peer) => self.known(peer).is_uniform,
            Tunnel::Segment(_) => false,
        })
    }

    /// Returns the cluster's entry for addresses of a Peer.
    fn selected(&self, span: Span, lookup: Lookup) -> Ruling {
        let (held, mut is_uniform) = self.held(lookup);
        if matches!(held, Err(NextHop::Contested(_))) {
            is_uniform &= self.are_uniform(span);
        }
        let (stays, is_same) = self.stays(span, lookup);
        Ruling {
            is_claimed: true,
            selected: if stays { Err(NextHop::Shadow) } else { held },
            held,
            is_uniform: is_uniform && is_same,
        }
    }

    /// Returns whether a packet to these addresses never leaves the cluster that looks, since it has them
    /// itself, and whether that is the same on all nodes.
    fn stays(&self, span: Span, lookup: Lookup) -> (bool, bool) {
        let owner = lookup.owner(self.site);
        if owner == Some(Owner::Services) {
            return (true, true);
        }
        // No other node has what is a node's own.
        let is_somebody = matches!(owner, Some(Owner::Node(_) | Owner::Tunnel(_)));
        match lookup.connected(self.site) {
            _ if is_somebody => (false, false),
            Connected::All(node) => {
                let at = NodeRef { site: self.viewer, node };
                (stays_at(self.site, at, span), true)
            }
            Connected::Nobody => (false, true),
            Connected::Some => (false, false),
        }
    }

    /// Returns the Peer that has these addresses in WireGuard, which packets for them are given to and
    /// from which packets with them are taken, and whether that is so on all nodes.
    fn held(&self, lookup: Lookup) -> (Selected, bool) {
        let tunnels = &self.site.model.tunnels;
        let Some(slot) = lookup.tunnels.longest else {
            return (Err(NextHop::NoRoute), true);
        };
        let (_, claims) = tunnels.at(slot);
        let is_same = claims.iter().all(|claim| match claim.tunnel {
            Tunnel::Peer(peer) => !self.site.has_own_key(peer),
            Tunnel::Segment(_) => false,
        });
        // Without a segment, no node sends or takes anything.
        let any = self.site.model.topology.segments.ids().next();
        let held = match any.and_then(|it| self.site.model.holder(it, slot)) {
            Some(RangeHolder::Certain(claim)) => match claim.tunnel {
                Tunnel::Peer(peer) => Ok(peer),
                Tunnel::Segment(_) => Err(NextHop::Shadow),
            },
            Some(RangeHolder::Ambiguous(_)) => Err(NextHop::Contested(slot)),
            None => Err(NextHop::NoRoute),
        };
        (held, is_same)
    }
}

fn stays_at(site: &Site, at: NodeRef, span: Span) -> bool {
    stays(site, at, span.first_address()).is_err()
}
