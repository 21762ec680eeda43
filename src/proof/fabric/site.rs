//! Sites: one cluster as its own Kilo makes it, and who in it has which address.

use std::net::IpAddr;
use std::sync::Arc;

use crate::kilo::cluster::Cluster;
use crate::kilo::node::{annotation, endpoint};
use crate::kilo::own::{Leader, OwnNode, WireguardIp};
use crate::mesh::{Entry, Networks, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::proof::applied::File;
use crate::proof::flaw::Refusal;
use crate::proof::model::Model;
use crate::proof::peers::Won;
use crate::proof::prefixes::{Prefixes, Span};
use crate::snapshot::Snapshot;
use crate::wireguard::Host;

/// One cluster.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Its name.
    pub cluster: &'a ClusterName,
    /// What its meshes say of it, that of the first one.
    pub entry: &'a Entry,
    /// What its nodes say.
    pub snapshot: &'a Snapshot,
    /// What that comes to, read as the mesh wants it.
    pub reading: Arc<Cluster<'a>>,
    /// The manifests that it gets.
    pub files: &'a [File],
    /// The contests that are taken as won, in that order; none but where all of them are tried.
    pub won: Vec<Won>,
    /// What its Kilo makes of its Peers.
    pub model: Model<'a>,
    /// Who has what; of one range the most particular first.
    pub owned: Prefixes<Owner>,
    /// The ranges that it declares as a whole.
    for_all: Prefixes<()>,
    /// What nodes are connected to, which they need no tunnel for.
    connected: Prefixes<usize>,
    /// A route that no kernel takes: where a pass of Kilo's meets it, it ends, and whatever comes later is
    /// missing (`kilo.md` §2.5).
    refused: Option<Refusal>,
    /// Peers that have the key of a node of the cluster, in their order.
    own_keys: Vec<usize>,
    /// Where each node is dialled.
    pub(super) doors: Vec<(IpAddr, usize, Option<u16>)>,
}

/// Who has an address of a cluster.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Owner {
    /// A node: its internal address.
    Node(usize),
    /// A node: its address in the Kilo subnet.
    Tunnel(usize),
    /// A node's pods.
    Pods(usize),
    /// The services of the cluster.
    Services,
    /// Whatever else the cluster declares as a whole.
    Network,
    /// Nobody: a range out of which nodes get theirs.
    Pool,
}

impl<'a> Site<'a> {
    /// Builds a cluster from what a mesh says of it, its nodes and its manifests.
    pub fn new(entry: &'a Entry, snapshot: &'a Snapshot, files: &'a [File]) -> Self {
        Self::decided(Arc::new(Cluster::new(entry, snapshot)), files, Vec::new())
    }

    /// Builds the same where a contest of it is won.
    #[must_use]
    pub fn after(&self, won: Won) -> Self {
        let mut all = self.won.clone();
        all.push(won);
        Self::decided(Arc::clone(&self.reading), self.files, all)
    }

    fn decided(reading: Arc<Cluster<'a>>, files: &'a [File], won: Vec<Won>) -> Self {
        let (entry, snapshot) = (reading.entry, reading.snapshot);
        let model = Model::decided(&reading.own, files, &won);
        let own_keys = model.peers_with_own_keys().into_iter();
        let own_keys = own_keys.map(|it| it.0).collect();
        let owned = owned(&reading, &model);
        let is_for_all = |it: &Owner| matches!(it, Owner::Services | Owner::Network);
        let for_all = owned.iter().filter(|it| it.1.iter().any(is_for_all));
        Self {
            cluster: &entry.name,
            entry,
            snapshot,
            reading,
            files,
            won,
            for_all: Prefixes::new(&for_all.map(|it| (it.0, ())).collect::<Vec<_>>()),
            owned,
            connected: connected(&model),
            doors: doors(snapshot, &model),
            refused: model.refused(),
            own_keys,
            model,
        }
    }

    /// Returns a node.
    pub fn node(&self, node: usize) -> Option<&OwnNode> {
        self.model.own.nodes.get(node)
    }

    /// Returns a pod CIDR of a node: one of the kind that its Kilo routes, if it has one.
    pub fn routed_pods(&self, node: usize) -> Option<Cidr> {
        let kilo = &self.node(node)?.kilo;
        let mut pods = kilo.pods();
        let routed = pods.find(|it| Some(it.family()) == self.reading.family);
        routed.or(kilo.pod_cidr)
    }

    /// Returns whether its Kilo carries packets to a pod CIDR of a node: it is of the kind that is
    /// routed, and the first, or else the tunnel ends on the node itself.
    pub fn carries_pods(&self, node: usize, pods: Cidr) -> bool {
        let Some(own) = self.node(node) else {
            return false;
        };
        let leader = own.segment.and_then(|it| self.leader(it));
        Some(pods.family()) == self.reading.family
            && (own.kilo.pod_cidr == Some(pods) || leader.map(Leader::node) == Some(node))
    }

    /// Returns the number of a node.
    pub fn node_named(&self, name: &str) -> Option<usize> {
        let nodes = &self.model.own.nodes;
        nodes.iter().position(|node| node.kilo.name == name)
    }

    /// Returns the segment of a node; none while Kilo does not count it.
    pub fn segment(&self, node: usize) -> Option<usize> {
        self.node(node)?.segment
    }

    /// Returns who leads a segment.
    pub fn leader(&self, segment: usize) -> Option<Leader> {
        Some(self.model.own.segments.get(segment)?.leader)
    }

    /// Returns whether any Peer has the key of a node of this cluster.
    pub fn has_own_keys(&self) -> bool {
        !self.own_keys.is_empty()
    }

    /// Returns whether a Peer has the key of a node of this cluster.
    pub fn has_own_key(&self, peer: usize) -> bool {
        self.own_keys.binary_search(&peer).is_ok()
    }

    /// Returns whether nothing keeps its Kilo from working or its kernels from routing.
    pub fn is_undisturbed(&self) -> bool {
        self.refused.is_none() && self.model.upsets.is_empty()
    }

    /// Returns a route that a kernel refuses.
    pub fn refused(&self) -> Option<Refusal> {
        self.refused
    }

    /// Returns the longest range that a node is connected to and `address` is in: its own pods, or the
    /// network of its internal address.
    pub fn connection(&self, node: usize, address: IpAddr) -> Option<Cidr> {
        let mut holding = self.connected.holding(address);
        holding.find_map(|slot| {
            let (range, nodes) = self.connected.get(slot)?;
            nodes.contains(&node).then_some(range)
        })
    }

    /// Returns whether an address is a node's own: its internal one, or that of the segment it leads.
    pub fn has_address(&self, node: usize, address: IpAddr) -> bool {
        let Some(own) = self.node(node) else {
            return false;
        };
        let led = own.segment.filter(|it| {
            let leader = self.leader(*it);
            leader.is_some_and(|it| it.node() == node)
        });
        own.kilo.internal_address() == Some(address)
            || led.and_then(|it| self.tunnel_address(it)) == Some(address)
    }

    /// Returns whether any node is connected to any address of `span`.
    pub fn is_connected(&self, span: Span) -> bool {
        self.connected.meets(span)
    }

    /// Returns the ranges that nodes of it are connected to.
    pub fn connections(&self) -> &Prefixes<usize> {
        &self.connected
    }

    /// Returns who has an address, the most particular first.
    pub fn owner(&self, address: IpAddr) -> Option<Owner> {
        let slot = self.owned.holding(address).next()?;
        self.owned.get(slot)?.1.first().copied()
    }

    /// Returns whether an address lies in a range that the cluster declares as a whole, whoever has it.
    pub fn is_for_all(&self, address: IpAddr) -> bool {
        self.for_all.holding(address).next().is_some()
    }

    /// Returns an address of a node for packets of its own: the internal one, or that in the Kilo
    /// subnet where there is none (`kilo.md` §6.3).
    pub fn address(&self, node: usize) -> Option<IpAddr> {
        let own = self.node(node)?;
        let tunnel = || self.tunnel_address(own.segment?);
        own.kilo.internal_address().or_else(tunnel)
    }

    /// Returns the address of a segment in the Kilo subnet.
    fn tunnel_address(&self, segment: usize) -> Option<IpAddr> {
        let segment = self.model.own.segments.get(segment)?;
        match segment.wireguard_ip {
            WireguardIp::Certain(address) => Some(address),
            WireguardIp::Ambiguous { announced, .. } => Some(announced),
            WireguardIp::None => None,
        }
    }
}

fn owned(cluster: &Cluster, model: &Model) -> Prefixes<Owner> {
    let mut owned = Vec::new();
    for (number, node) in model.own.nodes.iter().enumerate() {
        let internal = node.kilo.internal_address().map(Cidr::host);
        owned.extend(internal.map(|it| (it, Owner::Node(number))));
        let tunnel = node.kilo.wireguard_ip().map(|it| Cidr::host(it.address));
        owned.extend(tunnel.map(|it| (it, Owner::Tunnel(number))));
        owned.extend(node.kilo.pods().map(|it| (it, Owner::Pods(number))));
    }
    let mut declare = |ranges: &[Range], owner: Owner| {
        owned.extend(ranges.iter().map(|it| (it.cidr, owner)));
    };
    match &cluster.entry.networks {
        Networks::Typed {
            pods,
            wireguard,
            services,
            additional,
        } => {
            declare(pods, Owner::Pool);
            declare(std::slice::from_ref(wireguard), Owner::Pool);
            declare(services.as_slice(), Owner::Services);
            declare(additional, Owner::Network);
        }
        Networks::Flat { allowed } => {
            for range in allowed {
                let whose = if cluster.shared.contains(&range.cidr) {
                    Owner::Network
                } else {
                    Owner::Pool
                };
                declare(std::slice::from_ref(range), whose);
            }
        }
    }
    owned.sort_by_key(|it| it.1);
    Prefixes::new(&owned)
}

fn connected(model: &Model) -> Prefixes<usize> {
    let mut connected = Vec::new();
    for (number, node) in model.own.nodes.iter().enumerate() {
        let lan = node.kilo.lan;
        let pods = node.kilo.pods().filter(|it| Some(*it) != lan);
        connected.extend(lan.into_iter().chain(pods).map(|range| (range, number)));
    }
    Prefixes::new(&connected)
}

/// Returns where nodes can be dialled: as they say, and at all their addresses on the port on which
/// their WireGuard listens.
fn doors(snapshot: &Snapshot, model: &Model) -> Vec<(IpAddr, usize, Option<u16>)> {
    let mut doors = Vec::new();
    // Both are in the order of names.
    for (number, (own, node)) in model.own.nodes.iter().zip(&snapshot.nodes).enumerate() {
        let port = own.kilo.endpoint.as_ref().map(|it| it.port.get());
        let keys = [
            annotation::FORCE_ENDPOINT,
            annotation::ENDPOINT,
            annotation::CLUSTERMESH_ENDPOINT,
        ];
        for key in keys {
            let said = node.annotations.get(key);
            let said = said.and_then(|text| endpoint(text).ok());
            if let Some(said) = said
                && let Host::Ip(address) = said.host
            {
                doors.push((address, number, Some(said.port.get())));
            }
        }
        let reported = node
            .addresses
            .iter()
            .filter_map(|it| it.address.parse().ok());
        let reported = reported.map(|it: IpAddr| it.to_canonical());
        let all = reported.chain(own.kilo.internal_address());
        doors.extend(all.map(|address| (address, number, port)));
    }
    doors.sort_unstable();
    doors.dedup();
    doors
}
