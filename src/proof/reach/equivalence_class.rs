//! Equivalence classes: addresses of one cluster that another one sees alike.

use super::address_block::AddressBlock;
use super::known_peer::{DialOutcome, PeerLink};
use super::local_addresses::Reception;
use crate::agent::fabric::Secret;
use crate::agent::peers::PeerId;
use crate::kilo::id::SegmentId;
use crate::mesh::AddressClass;
use crate::net::Family;
use crate::net::prefixes::SlotId;

/// Addresses of one cluster that another one sees alike.
#[derive(Clone, Debug)]
pub(super) struct EquivalenceClass {
    pub(super) class: AddressClass,
    /// The view of each piece of them, in the order of addresses.
    pub(super) views: Vec<PieceView>,
    /// The blocks with these addresses.
    pub(super) blocks: Vec<AddressBlock>,
}

/// The view of a piece of a block.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PieceView {
    pub(super) family: Family,
    pub(super) next_hop: NextHop,
    /// Whether packets for it leave the cluster that looks on no node.
    pub(super) is_kept: bool,
    /// The tunnel that packets for it take.
    pub(super) onward: PeerLink,
    /// The tunnel with its leader, in which its packets arrive.
    pub(super) back: PeerLink,
    /// Whether what comes in that tunnel is taken for its own.
    pub(super) source_check: SourceCheck,
    pub(super) deliver: Reception,
    /// Whether its leader opens tunnels on its own.
    pub(super) calls: bool,
    /// Whether it is certain who does.
    pub(super) is_led: bool,
    /// Its segment, if addresses of several segments in one range may have different results,
    /// because of the result of a contest or other claims to the range in its own cluster.
    pub(super) segment: Option<SegmentId>,
    /// A number of its own where nodes of the cluster that looks see it differently.
    pub(super) unique: Option<usize>,
}

/// Whether the viewing cluster assigns some addresses to their leader.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum SourceCheck {
    No,
    /// It is not certain who has this range there.
    Doubt(SlotId),
    Yes,
}

/// The next hop of a packet in the cluster that looks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum NextHop {
    NoRoute,
    Shadow,
    /// No Peer has a range around it: it leaves on no node, however it ends there.
    Kept,
    /// It is not certain who has this range.
    Contested(SlotId),
    /// More than one node has the key of this Peer, or of one of many Peers.
    Shared(Option<PeerId>),
    /// No node has the key of this Peer, or of one of many Peers.
    Unknown(Option<PeerId>),
    /// This Peer, or one of many Peers, leads to another node.
    Thief(Option<PeerId>),
    Right,
}

impl EquivalenceClass {
    /// Returns whether packets are sent from it: nothing is sent from ranges of a whole cluster.
    pub(super) fn can_send(&self) -> bool {
        matches!(self.class, AddressClass::Pod | AddressClass::Node)
    }

    /// Returns whether all nodes of the cluster that looks see it so.
    pub(super) fn is_uniform(&self) -> bool {
        self.views.iter().all(|view| view.unique.is_none())
    }

    /// Returns whether packets to it leave the viewing cluster on no node, for any sender.
    pub(super) fn is_kept(&self) -> bool {
        self.views.iter().all(|it| it.is_kept)
    }

    /// Returns whether every node of the viewing cluster rejects packets from it that arrive in a tunnel: no
    /// Peer has a range around it.
    pub(super) fn is_rejected(&self) -> bool {
        let mut views = self.views.iter();
        views.all(|it| it.next_hop == NextHop::Kept && it.unique.is_none())
    }

    /// Returns whether nothing changes within any of the blocks.
    pub(super) fn is_whole(&self) -> bool {
        self.views.len() == 1
    }

    pub(super) fn family(&self) -> Option<Family> {
        Some(self.views.first()?.family)
    }

    /// Returns whether nothing about it is known by a number of the cluster that looks, so that others may
    /// see the same.
    pub(super) fn is_portable(&self) -> bool {
        self.views.iter().all(PieceView::is_portable)
    }

    /// Returns whether a tunnel has a preshared key, of which the number is that of one fabric.
    pub(super) fn has_secret(&self) -> bool {
        let is_secret =
            |link| matches!(link, PeerLink::One { secret, .. } if secret != Secret::Absent);
        let mut views = self.views.iter();
        views.any(|it| is_secret(it.onward) || is_secret(it.back))
    }

    /// Returns whether packets go where they should as far as this side is concerned, and nothing about it
    /// is known by a number of either cluster.
    pub(super) fn is_plain(&self) -> bool {
        self.views.iter().all(|it| {
            it.is_portable() && it.next_hop == NextHop::Right && it.deliver == Reception::Takes
        })
    }
}

impl PieceView {
    /// Returns whether addresses of several segments in one range may have different results.
    pub(super) fn is_doubtful(&self) -> bool {
        let is_doubt = |link| matches!(link, PeerLink::Doubt(_));
        matches!(self.next_hop, NextHop::Contested(_))
            || is_doubt(self.onward)
            || is_doubt(self.back)
            || matches!(self.source_check, SourceCheck::Doubt(_))
            || matches!(
                self.deliver,
                Reception::Sends(_) | Reception::Strays { .. } | Reception::Diverts(_)
            )
    }

    fn is_portable(&self) -> bool {
        let is_numbered = |link| {
            matches!(link, PeerLink::One { dial: DialOutcome::Loops(_), .. } | PeerLink::Doubt(_))
        };
        matches!(self.next_hop, NextHop::NoRoute | NextHop::Shadow | NextHop::Kept | NextHop::Right)
            && !is_numbered(self.onward)
            && !is_numbered(self.back)
            && !matches!(self.source_check, SourceCheck::Doubt(_))
            && self.unique.is_none()
    }
}
