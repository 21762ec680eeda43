//! Sites: one cluster as its own Kilo makes it, and who in it has which address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::diversion::has_diversions;
use super::own_addresses::{OwnAddresses, Owner};
use crate::agent::applied::AppliedFile;
use crate::agent::model::{Model, Tunnel};
use crate::agent::peers::{PeerId, Won};
use crate::agent::refusal::KernelRefusal;
use crate::kilo::cluster::Cluster;
use crate::kilo::id::{NodeId, Nodes, SegmentId};
use crate::kilo::node::KiloNode;
use crate::kilo::node_networks::NodeNetworks;
use crate::kilo::seen::SeenAddress;
use crate::kilo::topology::{Leader, TopologyNode, WireguardIp};
use crate::mesh::Entry;
use crate::name::ClusterName;
use crate::net::prefixes::{Prefixes, Span};
use crate::net::{Cidr, Families, Family, family};
use crate::snapshot::{Node, Snapshot};
use crate::wireguard::Endpoint;

/// One cluster.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Its name.
    pub cluster: &'a ClusterName,
    /// Its entry in the first of its meshes.
    pub entry: &'a Entry,
    /// The values that its nodes report.
    pub snapshot: &'a Snapshot,
    /// The same, interpreted as the mesh requires.
    pub reading: Arc<Cluster<'a>>,
    /// The manifests that it gets.
    pub files: &'a [AppliedFile],
    /// The contests that are taken as won, in that order; none but where all of them are tried.
    pub won: Vec<Won>,
    /// Its Peers as Kilo handles them.
    pub model: Model<'a>,
    /// Its own addresses, which its Peers have nothing to do with.
    pub(super) own: Arc<OwnAddresses>,
    /// A route that the kernels of a segment do not accept. Kilo's pass ends at it, and all later routes are missing
    /// (`kilo.md` §2.5).
    refused: Arc<BTreeMap<SegmentId, KernelRefusal>>,
    /// Peers that have the key of a node of the cluster, in their order.
    own_keys: Vec<PeerId>,
    /// True if a node may dial a kind of address that it does not show.
    pub(crate) has_unseen: bool,
    /// Whether a Peer takes the LAN of a location.
    pub(crate) has_diversions: bool,
}

impl<'a> Site<'a> {
    /// Builds a cluster from its entry in a mesh, its nodes and its manifests.
    pub fn new(entry: &'a Entry, snapshot: &'a Snapshot, files: &'a [AppliedFile]) -> Self {
        Self::with_reading(Arc::new(Cluster::new(entry, snapshot)), files, None)
    }

    /// Builds a cluster whose nodes are read already. It shares everything with another version of it that is
    /// the same.
    pub fn with_reading(
        reading: Arc<Cluster<'a>>,
        files: &'a [AppliedFile],
        other: Option<&Site>,
    ) -> Self {
        let topology = &reading.topology;
        let model = match other.filter(|it| it.won.is_empty()) {
            Some(other) => Model::like(&other.model, topology, files),
            None => Model::new(topology, files),
        };
        let twin = other.filter(|it| Arc::ptr_eq(&it.reading, &reading));
        Self::assembled(reading, files, model, twin)
    }

    /// Builds the same with other manifests.
    #[must_use]
    pub fn with_files<'b>(&self, files: &'b [AppliedFile]) -> Site<'b>
    where
        'a: 'b,
    {
        Site::with_reading(Arc::clone(&self.reading) as _, files, Some(self))
    }

    /// Builds the same with the nodes of another version of it.
    #[must_use]
    pub fn with_nodes_of(&self, other: &Self) -> Self {
        let topology = &other.reading.topology;
        let model = self.model.with_nodes_of(&other.model, topology, self.files);
        Self::assembled(Arc::clone(&other.reading), self.files, model, Some(other))
    }

    /// Builds the same with other nodes.
    #[must_use]
    pub fn with_nodes<'b>(&self, reading: Cluster<'b>) -> Site<'b>
    where
        'a: 'b,
    {
        let model = self.model.with_nodes(&reading.topology);
        Site::assembled(Arc::new(reading), self.files, model, None)
    }

    /// Builds the same where a contest of it is won.
    #[must_use]
    pub fn after(&self, won: Won) -> Self {
        let mut all = self.won.clone();
        all.push(won);
        let model = Model::decided(&self.reading.topology, self.files, &all);
        Self {
            won: all,
            ..Self::assembled(Arc::clone(&self.reading), self.files, model, Some(self))
        }
    }

    /// Puts a cluster together. `twin` has the same nodes.
    fn assembled(
        reading: Arc<Cluster<'a>>,
        files: &'a [AppliedFile],
        model: Model<'a>,
        twin: Option<&Site>,
    ) -> Self {
        let own = match twin {
            Some(twin) => Arc::clone(&twin.own),
            None => Arc::new(OwnAddresses::find(&reading)),
        };
        let alike = twin.filter(|it| it.model.has_tables_of(&model));
        let refused = alike.map(|it| Arc::clone(&it.refused));
        let refused = refused.unwrap_or_else(|| Arc::new(model.refused()));
        let own_keys = alike.map(|it| it.own_keys.clone());
        let own_keys = own_keys
            .unwrap_or_else(|| model.peers_with_own_keys().into_iter().map(|it| it.0).collect());
        Self {
            cluster: &reading.entry.name,
            entry: reading.entry,
            snapshot: reading.snapshot,
            reading,
            files,
            won: Vec::new(),
            has_unseen: has_unseen(&model, &own.shown),
            has_diversions: has_diversions(&model),
            own,
            refused,
            own_keys,
            model,
        }
    }

    /// Returns a node.
    pub fn node(&self, node: NodeId) -> &TopologyNode {
        &self.model.topology.nodes[node]
    }

    /// Returns a pod CIDR of a node: one of the kind that its Kilo routes, if it has one.
    pub fn routed_pods(&self, node: NodeId) -> Option<Cidr> {
        let kilo = &self.node(node).kilo;
        kilo.pods().find(|it| self.routes(it.family())).or(kilo.pod_cidr)
    }

    /// Returns whether its Kilo routes a kind of address between nodes. An external peer has both.
    pub(super) fn routes(&self, family: Family) -> bool {
        self.reading.family.is_none_or(|it| it == family)
    }

    /// Returns whether its Kilo carries packets to a pod CIDR of a node: it is of the kind that is
    /// routed, and the first, or else the tunnel ends on the node itself.
    pub fn carries_pods(&self, node: NodeId, pods: Cidr) -> bool {
        let own = self.node(node);
        let leader = own.segment.map(|it| self.leader(it));
        self.routes(pods.family())
            && (own.kilo.pod_cidr == Some(pods) || leader.map(Leader::node) == Some(node))
    }

    /// Returns a node as the snapshot has it.
    pub fn snapshot_of(&self, node: NodeId) -> &Node {
        self.reading.nodes[node].node
    }

    /// Returns the number of a node.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.model.topology.nodes.position(|it| it.kilo.name == name)
    }

    /// Returns the segment of a node; none while Kilo does not count it.
    pub fn segment(&self, node: NodeId) -> Option<SegmentId> {
        self.node(node).segment
    }

    /// Returns who leads a segment.
    pub fn leader(&self, segment: SegmentId) -> Leader {
        self.model.topology.segments[segment].leader
    }

    /// Returns the segment that a node leads, if it leads one.
    pub fn led(&self, node: NodeId) -> Option<SegmentId> {
        self.segment(node).filter(|it| self.leader(*it).node() == node)
    }

    /// Returns whether a node shows an address of a kind.
    pub fn shows(&self, node: NodeId, family: Family) -> bool {
        self.own.shown[node].has(family)
    }

    /// Returns the kinds of address that a node shows.
    pub fn shown(&self, node: NodeId) -> Families {
        self.own.shown[node]
    }

    /// Returns whether an address is one of pods whose nodes show that pods have others.
    pub fn has_unrouted_pods(&self, address: IpAddr) -> bool {
        self.reading.pod_network.unrouted.has(family(address))
            && matches!(self.owner(address), Some(Owner::Pods(_)))
    }

    /// Returns whether any range that it declares is on the LAN of one node.
    pub fn has_distant(&self) -> bool {
        !self.own.outlying.distant.is_empty()
    }

    /// Returns whether any range that it declares is in a network that no node shows.
    pub fn has_unshown(&self) -> bool {
        !self.own.outlying.unshown.is_empty()
    }

    /// Returns the range around an address that is in a network which no node shows.
    pub fn unshown(&self, address: IpAddr) -> Option<Cidr> {
        let unshown = &self.own.outlying.unshown;
        Some(unshown.at(unshown.holding(address).next()?).0)
    }

    /// Returns whether two nodes are the same or in the same segment.
    fn are_together(&self, one: NodeId, other: NodeId) -> bool {
        let segment = self.segment(one);
        one == other || segment.is_some() && self.segment(other) == segment
    }

    /// Returns whether any node of a carrier's segment is in the network of a range.
    pub fn stands_in(&self, carrier: NodeId, range: Cidr) -> bool {
        let nodes = self.reading.nodes.numbered();
        let mut beside = nodes.filter(|it| self.are_together(carrier, it.0));
        beside.any(|it| NodeNetworks::from_node(it.1).is_in(range))
    }

    /// Returns whether a carrier is named as an anchor of a range, or any node of its segment is in the network of the range.
    pub fn may_stand_in(&self, carrier: NodeId, range: Cidr) -> bool {
        self.is_anchor(carrier, range) || self.stands_in(carrier, range)
    }

    /// Returns whether a node, or another one of its segment, is named as an anchor of a range.
    fn is_anchor(&self, node: NodeId, range: Cidr) -> bool {
        let is_beside =
            |name: &str| self.node_named(name).is_some_and(|it| self.are_together(node, it));
        self.entry
            .anchors
            .iter()
            .filter(|anchor| anchor.ranges.as_ref().is_none_or(|it| it.contains(&range)))
            .any(|it| it.nodes.iter().any(|it| is_beside(&it.name)))
    }

    /// Returns the range around an address that a node carries although it is on the LAN of one
    /// node of another segment, and that node. A node that is named as its anchor is right.
    pub fn distant(&self, carrier: NodeId, address: IpAddr) -> Option<(Cidr, NodeId)> {
        let distant = &self.own.outlying.distant;
        let (range, nodes) = distant.at(distant.holding(address).next()?);
        let node = *nodes.first()?;
        let is_named = self.is_anchor(carrier, range);
        (!is_named && self.segment(node) != self.segment(carrier)).then_some((range, node))
    }

    /// Returns whether any Peer has the key of a node of this cluster.
    pub fn has_own_keys(&self) -> bool {
        !self.own_keys.is_empty()
    }

    /// Returns whether a Peer has the key of a node of this cluster.
    pub fn has_own_key(&self, peer: PeerId) -> bool {
        self.own_keys.binary_search(&peer).is_ok()
    }

    /// Returns whether nothing keeps its Kilo from working or its kernels from routing.
    pub fn is_undisturbed(&self) -> bool {
        !self.has_refused_routes() && self.model.stoppers.is_empty()
    }

    /// Returns whether nothing in it is decided by more than the nodes that a packet passes: its Kilo works, no ranges contend,
    /// and no key is anywhere twice.
    pub fn is_regular(&self) -> bool {
        let mut nodes = self.model.topology.nodes.iter();
        nodes.all(|it| it.kilo.location_ranges.is_empty())
            && self.is_undisturbed()
            && self.model.contests.is_empty()
            && !self.model.has_shared_keys()
            && !self.has_own_keys()
            && !self.has_diversions
            && !self.has_hop_faults()
            && self.won.is_empty()
    }

    /// Returns whether any kernel refuses a route.
    pub fn has_refused_routes(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Returns a route that a kernel refuses in the segment of a node: other routes there may be missing.
    pub fn refused(&self, node: NodeId) -> Option<KernelRefusal> {
        self.refused.get(&self.segment(node)?).copied()
    }

    /// Returns the longest range that a node is connected to and `address` is in: its own pods, or the
    /// network of its internal address.
    pub fn connection(&self, node: NodeId, address: IpAddr) -> Option<Cidr> {
        self.own.connected.holding(address).find_map(|slot| {
            let (range, nodes) = self.own.connected.at(slot);
            nodes.binary_search(&node).is_ok().then_some(range)
        })
    }

    /// Returns whether an address is a node's own: its internal one, or that of the segment it leads.
    pub fn has_address(&self, node: NodeId, address: IpAddr) -> bool {
        let tunnel = || self.tunnel_address(self.led(node)?);
        self.node(node).kilo.internal_address() == Some(address) || tunnel() == Some(address)
    }

    /// Returns whether any of its nodes may route answers to a caller into a tunnel, by the address from
    /// which it sees the caller.
    pub fn may_swallow(&self, caller: &KiloNode) -> bool {
        let is_on_lan = |it| self.own.connected.holding(it).next().is_some();
        match SeenAddress::of(caller) {
            SeenAddress::Public(address) => self.model.has_range_around(address),
            SeenAddress::Private(address) => {
                self.model.has_range_around(address) && is_on_lan(address)
            }
            SeenAddress::Unknown => false,
        }
    }

    /// Returns whether any node is connected to any address of `span`.
    pub fn is_connected(&self, span: Span) -> bool {
        self.own.connected.meets(span)
    }

    /// Returns the ranges that nodes of it are connected to.
    pub fn connections(&self) -> &Prefixes<NodeId> {
        &self.own.connected
    }

    /// Returns the owners of ranges; of one range, the most particular first.
    pub fn owned(&self) -> &Prefixes<Owner> {
        &self.own.owned
    }

    /// Returns the addresses and ports at which each node is dialled.
    pub(super) fn endpoints(&self) -> &[(IpAddr, NodeId, Option<u16>)] {
        &self.own.endpoints
    }

    /// Returns who has an address, the most particular first.
    pub fn owner(&self, address: IpAddr) -> Option<Owner> {
        let slot = self.own.owned.holding(address).next()?;
        self.own.owned.at(slot).1.first().copied()
    }

    /// Returns whether an address is in a range that the cluster declares as a whole, regardless of
    /// its owner.
    pub fn is_for_all(&self, address: IpAddr) -> bool {
        self.own.for_all.holding(address).next().is_some()
    }

    /// Returns an address of a node for packets of its own: the internal one, or that in the Kilo
    /// subnet where there is none (`kilo.md` §6.3).
    pub fn address(&self, node: NodeId) -> Option<IpAddr> {
        // An external peer has no addresses beside its ranges.
        if self.cluster.is_external() {
            return None;
        }
        let own = self.node(node);
        let tunnel = || self.tunnel_address(own.segment?);
        own.kilo.internal_address().or_else(tunnel)
    }

    /// Returns the address of a segment in the Kilo subnet.
    pub(super) fn tunnel_address(&self, segment: SegmentId) -> Option<IpAddr> {
        match self.model.topology.segments[segment].wireguard_ip {
            WireguardIp::Certain(address) => Some(address),
            WireguardIp::Ambiguous { announced, .. } => Some(announced),
            WireguardIp::None => None,
        }
    }
}

/// Returns whether a node that dials Peers does not show an address of every kind at which they are
/// dialled.
fn has_unseen(model: &Model, shown: &Nodes<Families>) -> bool {
    let peers = model.peers.ids().filter_map(|it| model.endpoint(Tunnel::Peer(it)));
    let dialled: Families = peers.filter_map(Endpoint::address).collect();
    let mut segments = model.topology.segments.iter();
    segments.any(|it| !shown[it.leader.node()].contain(dialled))
}
