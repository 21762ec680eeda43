//! Excluded Peers and withheld ranges: a target does not get them although its source offers them.

use std::net::IpAddr;
use std::sync::Arc;

use crate::membership::Unready;
use crate::mesh::EndpointSource;
use crate::name::{ClusterName, NodeName};
use crate::net::{Cidr, Family};
use crate::place::Place;

/// Something that a target does not get although its source offers it, or gets although it hurts.
#[derive(Clone, Debug)]
pub struct Withheld {
    /// The target that does not get it.
    pub target: ClusterName,
    /// The source that offers it.
    pub source: ClusterName,
    /// The reason, which all targets of a set of Peers share.
    pub reason: Arc<TargetReason>,
}

/// The reason why a target does not get something.
#[derive(Clone, Debug)]
pub enum TargetReason {
    /// Ranges that the target's Kilo cannot route.
    Family {
        /// Their kind.
        family: Family,
        /// Their number.
        ranges: usize,
    },
    /// A Peer with the key of one of the target's own nodes.
    OwnKey {
        /// The source's node.
        node: NodeName,
        /// Its place.
        place: Place,
        /// The target's node.
        own: String,
        /// Its place.
        own_place: Place,
    },
    /// A Peer with the key of a Peer of a cluster that ranks first.
    SharedKey {
        /// The source's node.
        node: NodeName,
        /// Its place.
        place: Place,
        /// The cluster that keeps the key.
        keeper: ClusterName,
        /// Its node.
        keeper_node: NodeName,
        /// Its place.
        keeper_place: Place,
    },
    /// A Peer whose endpoint is in a range, so that what is sent to it would go into a tunnel.
    LoopingPeer(LoopingPeer),
    /// Ranges in which endpoints lie.
    LoopingRanges(LoopingRanges),
    /// Ranges that hold what the target's own nodes reach by themselves.
    Captured(Captured),
    /// Ranges on a network that people call the target's own.
    Local(LocalNetwork),
    /// Ranges that the target does not accept.
    Unaccepted {
        /// The ranges.
        ranges: WithheldRanges,
        /// The list that does not contain them.
        accepted: Place,
        /// The declared range that makes it contain them, if it contains nothing of that range.
        whole: Option<Cidr>,
        /// Whether it contains none of the ranges of the source that paths lead to.
        is_pathless: bool,
    },
    /// Peers of which no range is left, for what nodes claim.
    Rangeless {
        /// Their number.
        peers: usize,
    },
    /// Peers that the target cannot dial, and that cannot dial it.
    NoInitiator {
        /// Their number.
        peers: usize,
    },
    /// Cluster-wide ranges that no segment with an endpoint can carry.
    NoAnchor {
        /// The ranges.
        ranges: Vec<Cidr>,
    },
    /// Ranges on the LAN of one node, which another segment carries.
    DistantAnchor(DistantAnchor),
    /// A node that `anchors` names and that cannot be an anchor.
    UnknownAnchor(UnknownAnchor),
    /// A range that is split among fewer nodes than `anchors` requests.
    FewerAnchors(FewerAnchors),
    /// Ranges that a node carries whose agent is silent, because no other node can carry them.
    SilentAnchor(SilentAnchor),
    /// Declared pod ranges whose pod CIDRs are given instead, because no named node is left.
    PerNodePods(PerNodePods),
}

/// A Peer whose endpoint is in a range.
#[derive(Clone, Debug)]
pub struct LoopingPeer {
    /// The source's node.
    pub node: NodeName,
    /// Its endpoint.
    pub endpoint: WithheldEndpoint,
    /// The range, of its own cluster or of another one.
    pub range: Cidr,
    /// The cluster that declares or has the range.
    pub owner: ClusterName,
    /// The source: the line, or the node that claims it.
    pub range_place: Option<Place>,
}

/// Ranges in which endpoints lie.
#[derive(Clone, Debug)]
pub struct LoopingRanges {
    /// The ranges.
    pub ranges: WithheldRanges,
    /// The cluster of the endpoints.
    pub cluster: ClusterName,
    /// The node of one of them, as it claims.
    pub node: String,
    /// One of them.
    pub endpoint: WithheldEndpoint,
    /// Their number.
    pub endpoints: usize,
    /// The source that `endpointFrom` names for them, and the place of that field, if nodes report them by themselves.
    pub guessed: Option<(EndpointSource, Place)>,
}

/// Ranges that hold what the target's own nodes reach by themselves.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The ranges.
    pub ranges: WithheldRanges,
    /// The address or network of one of these nodes.
    pub own: LocalAddress,
    /// The node, as it claims.
    pub node: String,
    /// Its place.
    pub place: Place,
    /// The number of affected nodes.
    pub nodes: usize,
    /// The decision about the ranges.
    pub outcome: CapturedOutcome,
}

/// The decision about ranges that contain addresses or networks of the target's own nodes.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CapturedOutcome {
    /// They are left out.
    Withheld,
    /// They are given without these hosts and networks.
    Without(Vec<Cidr>),
    /// They are given unchanged, because too few nodes report that they are affected.
    Kept,
}

/// Ranges on a network that people call the target's own.
#[derive(Clone, Debug)]
pub struct LocalNetwork {
    /// The ranges.
    pub ranges: WithheldRanges,
    /// The network. Ranges that are in it are withheld; it is cut out of wider ones.
    pub network: Cidr,
    /// The line that names it.
    pub place: Place,
}

/// Ranges on the LAN of one node, which another segment carries.
#[derive(Clone, Debug)]
pub struct DistantAnchor {
    /// The ranges.
    pub ranges: Vec<Cidr>,
    /// The node on that LAN, as it claims.
    pub node: String,
    /// The place of the node in the snapshot.
    pub place: Place,
    /// The node that leads its segment, which is the one to name.
    pub leader: NodeName,
    /// The node whose Peer carries the ranges.
    pub carrier: NodeName,
}

/// A node that `anchors` names and that cannot be an anchor.
#[derive(Clone, Debug)]
pub struct UnknownAnchor {
    /// Its name, as it is written.
    pub node: String,
    /// The line.
    pub place: Place,
    /// The place of the node in the snapshot, if it is there.
    pub node_place: Option<Place>,
    /// The reason.
    pub problem: AnchorProblem,
}

/// The reason why a named node cannot be an anchor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnchorProblem {
    /// The snapshot does not have the node.
    NoNode,
    /// The `nodeSelector` of its cluster does not select it.
    NotSelected,
    /// It leads no segment with an endpoint.
    NoSegment,
    /// The target does not get its Peer.
    LeftOut,
    /// Kilo does not count it, and another node can carry the ranges.
    NotReady(Unready),
}

/// Ranges that a node carries whose agent is silent.
#[derive(Clone, Debug)]
pub struct SilentAnchor {
    /// The ranges, or their parts.
    pub ranges: Vec<Cidr>,
    /// The node.
    pub node: NodeName,
    /// Its place in the snapshot.
    pub place: Place,
}

/// Declared pod ranges whose pod CIDRs are given instead.
#[derive(Clone, Debug)]
pub struct PerNodePods {
    /// The ranges.
    pub ranges: Vec<Cidr>,
    /// The anchor whose nodes are all missing.
    pub place: Place,
}

/// A range that is split among fewer nodes than `anchors` requests.
#[derive(Clone, Debug)]
pub struct FewerAnchors {
    /// The range.
    pub range: Cidr,
    /// The wanted number of anchors.
    pub wanted: usize,
    /// The actual number of anchors.
    pub got: usize,
    /// Whether the range is too narrow for more anchors; otherwise there are no more nodes.
    pub is_narrow: bool,
    /// The number of nodes that can carry a part.
    pub carriers: usize,
    /// The number of segments with an endpoint that Kilo does not count.
    pub unready: usize,
    /// The anchor.
    pub place: Place,
}

/// Ranges that share a fate and a reason.
#[derive(Clone, Debug)]
pub struct WithheldRanges {
    /// The ranges, never none.
    pub cidrs: Vec<Cidr>,
    /// The line that declares the range in which they lie.
    pub declared: Option<Place>,
}

/// An address at which a node is dialled.
#[derive(Clone, Debug)]
pub struct WithheldEndpoint {
    /// The address.
    pub address: IpAddr,
    /// Its place in the snapshot.
    pub place: Place,
}

/// An address or network that a node reaches without Peers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LocalAddress {
    /// Its endpoint.
    Endpoint(IpAddr),
    /// The network in which its internal address stands.
    Lan(Cidr),
    /// Its internal address.
    Address(IpAddr),
}

impl LocalAddress {
    /// Returns its addresses.
    pub fn cidr(self) -> Cidr {
        match self {
            Self::Endpoint(address) | Self::Address(address) => Cidr::host(address),
            Self::Lan(lan) => lan,
        }
    }

    /// Returns the address, unless it is a whole network.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Endpoint(address) | Self::Address(address) => Some(address),
            Self::Lan(_) => None,
        }
    }
}

impl TargetReason {
    /// Returns whether the target lacks something for it.
    pub fn withholds(&self) -> bool {
        match self {
            Self::Captured(captured) => captured.outcome != CapturedOutcome::Kept,
            Self::OwnKey { .. }
            | Self::SharedKey { .. }
            | Self::LoopingPeer(_)
            | Self::LoopingRanges(_)
            | Self::Family { .. }
            | Self::Local(_)
            | Self::Unaccepted { .. }
            | Self::Rangeless { .. }
            | Self::NoInitiator { .. }
            | Self::NoAnchor { .. } => true,
            Self::DistantAnchor(_)
            | Self::UnknownAnchor(_)
            | Self::FewerAnchors(_)
            | Self::SilentAnchor(_)
            | Self::PerNodePods(_) => false,
        }
    }

    /// Returns whether a node's claim has a part in it, and a target lacks something for it.
    pub fn is_of_claims(&self) -> bool {
        let is_of_people = matches!(
            self,
            Self::Family { .. } | Self::Local(_) | Self::Unaccepted { .. } | Self::NoAnchor { .. }
        );
        self.withholds() && !is_of_people
    }
}
