//! Local addresses: what a cluster is sent packets for, the same from every other cluster.

use super::Counts;
use super::address_block::{AddressBlock, address_blocks};
use crate::agent::fabric::{HopFault, Owner, Site};
use crate::agent::model::Tunnel;
use crate::kilo::id::SegmentId;
use crate::kilo::topology::Leader;
use crate::mesh::AddressClass;
use crate::net::prefixes::{SlotId, Span};

/// All blocks of a cluster.
#[derive(Clone, Debug)]
pub(super) struct LocalAddresses {
    pub(super) locals: Vec<LocalBlock>,
    pub(super) counts: Counts,
}

/// A block and its view in its own cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalBlock {
    pub(super) block: AddressBlock,
    pub(super) class: AddressClass,
    /// The segment of its owner, if that is a node.
    pub(super) segment: Option<SegmentId>,
    /// The leader of the segment.
    pub(super) leader: Option<Leader>,
    /// The leader's key.
    pub(super) key: Option<[u8; 32]>,
    /// Whether its own cluster does the same with all of it.
    pub(super) is_whole: bool,
    /// The treatment of a packet for it that gets to its segment, if it is whole and has a segment.
    pub(super) deliver: Option<Reception>,
}

/// The treatment of a packet by the cluster of its destination.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Reception {
    Takes,
    /// It has no route to the node that has them: Kilo does not know of a node's second pod CIDR.
    Lacks,
    /// It has a route within the location for it, which may be missing.
    Passes,
    /// It takes the packet, and its routes for the answer may be missing.
    MayNotAnswer,
    /// This range has other claims.
    Sends(SlotId),
    /// It gets to none of the nodes of its location, or to another one.
    Strays {
        fault: HopFault,
        /// The reason for which packets of the node itself do not get to its leader, if they do not.
        unanswered: Option<HopFault>,
    },
    /// It takes the packet, and answers of its node do not get to the leader.
    Unanswered(HopFault),
    /// A Peer with this range takes the LAN over which it reaches the node that has them.
    Diverts(SlotId),
}

impl LocalAddresses {
    pub(super) fn new(site: &Site) -> Self {
        let locals = locals(site);
        let mut counts = Counts::new();
        for local in &locals {
            let key = (local.class, local.block.span.family);
            *counts.entry(key).or_default() += 1;
        }
        Self { locals, counts }
    }
}

fn locals(site: &Site) -> Vec<LocalBlock> {
    let blocks = address_blocks(site).into_iter();
    blocks.filter_map(|block| local(site, block)).collect()
}

fn local(site: &Site, block: AddressBlock) -> Option<LocalBlock> {
    let segment = block.owner.node().and_then(|node| site.segment(node));
    let leader = segment.map(|it| site.leader(it));
    let speaker = leader.map(|it| site.node(it.node()));
    let is_whole = block.span.first == block.span.last
        || site.model.tunnels.look(block.span).is_whole
            && site.connections().look(block.span).is_whole;
    let deliver = segment.filter(|_| is_whole);
    Some(LocalBlock {
        block,
        class: block.owner.class()?,
        segment,
        leader,
        key: speaker.and_then(|it| it.kilo.key),
        is_whole,
        deliver: deliver.map(|segment| Reception::new(site, Some(segment), block, block.span)),
    })
}

impl Reception {
    /// Returns it where routes for answers may be missing.
    pub(super) fn without_answers(self) -> Self {
        match self {
            Self::Takes => Self::MayNotAnswer,
            other => other,
        }
    }

    /// Returns what a cluster does with packets for some of a block of its own that arrive in a
    /// segment, and with answers.
    pub(super) fn new(
        home: &Site,
        segment: Option<SegmentId>,
        block: AddressBlock,
        span: Span,
    ) -> Self {
        let received = Self::of_packets(home, segment, block, span);
        match (received, Self::of_answers(home, segment, block)) {
            (Self::Strays { fault, .. }, Self::Unanswered(lost)) => {
                Self::Strays { fault, unanswered: Some(lost) }
            }
            (Self::Takes, answers) => answers,
            _ => received,
        }
    }

    /// Returns what a cluster does with packets that the owner of a block sends.
    pub(super) fn of_answers(home: &Site, segment: Option<SegmentId>, block: AddressBlock) -> Self {
        let ends = block.owner.node().zip(segment);
        let fault =
            ends.and_then(|(node, segment)| home.hop_fault(node, home.leader(segment).node()));
        fault.map_or(Self::Takes, Self::Unanswered)
    }

    fn of_packets(
        home: &Site,
        segment: Option<SegmentId>,
        block: AddressBlock,
        span: Span,
    ) -> Self {
        let tunnels = &home.model.tunnels;
        let leader = segment.map(|it| home.leader(it).node());
        let Some(slot) = tunnels.around(span).next() else {
            let is_elsewhere = block.owner.node().is_some_and(|it| Some(it) != leader);
            return if is_elsewhere { Self::Lacks } else { Self::Takes };
        };
        if block.owner.class() == Some(AddressClass::Service) {
            return Self::Takes;
        }
        if let (Some(node), Some(leader)) = (block.owner.node(), leader)
            && let Some(fault) = home.delivery_fault(leader, node, span.first_address())
        {
            return Self::Strays { fault, unanswered: None };
        }
        if let (Owner::Node(node), Some(leader)) = (block.owner, leader)
            && let Some(diverted) = home.diverted(leader, node)
        {
            return Self::Diverts(diverted.slot);
        }
        let (range, claims) = tunnels.at(slot);
        let address = span.first_address();
        let beside = leader.and_then(|it| home.connection(it, address));
        if leader.is_some_and(|it| home.has_address(it, address))
            || beside.is_some_and(|it| range.prefix_length() < it.prefix_length())
        {
            return Self::Takes;
        }
        let is_own = |it: Tunnel| segment.map(Tunnel::Segment) == Some(it);
        if !claims.iter().all(|it| is_own(it.tunnel)) {
            return Self::Sends(slot);
        }
        if leader.is_some_and(|it| home.refused(it).is_some()) && beside.is_none() {
            return Self::Passes;
        }
        Self::Takes
    }
}
