//! Members: clusters in meshes.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Rank, SnapshotFile};
use crate::kilo::cluster::{Cluster, node_place};
use crate::kilo::id::NodeId;
use crate::kilo::node::listening;
use crate::membership::{Membership, Origin, PeerCandidate};
use crate::mesh::{Entry, Link, Mesh, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::Endpoint;

/// One cluster in one mesh.
#[derive(Debug)]
pub struct Member<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The entry of the cluster.
    pub entry: &'a Entry,
    /// The cluster's snapshot.
    pub file: &'a SnapshotFile,
    /// Its content, interpreted as the mesh requires.
    pub cluster: Arc<Cluster<'a>>,
    /// Its candidates for Peers.
    pub membership: Arc<Membership>,
    /// The rank, which decides conflicts.
    pub rank: Rank,
}

impl<'a> Member<'a> {
    /// Returns the declared range in which another lies.
    pub fn declaration(&self, cidr: Cidr) -> Option<&'a Range> {
        self.entry.networks.all().into_iter().find(|range| range.cidr.contains(cidr))
    }

    /// Returns the clusters that see it in this mesh, in the order in which they were written.
    pub fn targets(&self) -> impl Iterator<Item = &'a ClusterName> {
        let (mesh, entry) = (self.mesh, self.entry);
        let others = mesh.entries.iter().filter(|it| it.name != entry.name);
        let linked = others.filter(|it| mesh.link(it, entry) == Some(Link::Exchange));
        linked.map(|it| &it.name)
    }

    /// Returns the ranges that others send into their tunnels for its sake, unless their own affairs
    /// are against it.
    pub fn given(&self) -> impl Iterator<Item = Cidr> {
        let membership = &self.membership;
        let claims = membership.candidates.iter().flat_map(PeerCandidate::claims);
        // Without a leader, no node carries ranges as a whole.
        let pods = self.cluster.anchored.pods.iter().copied();
        let whole = self.shared().chain(pods);
        claims.chain(whole.filter(|_| !membership.candidates.is_empty()))
    }

    /// Returns the ranges that one segment with an endpoint carries for the whole cluster.
    pub fn shared(&self) -> impl Iterator<Item = Cidr> {
        let subnet = self.cluster.anchored.subnet;
        self.cluster.shared.iter().copied().chain(subnet)
    }

    /// Returns a node of its snapshot.
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        let nodes = &self.file.snapshot.nodes;
        let index = nodes.binary_search_by(|node| node.name.as_str().cmp(name));
        nodes.get(index.ok()?)
    }

    /// Returns the place of one of its nodes. An external peer has no snapshot but its entry in the mesh.
    pub fn place(&self, node: &Node) -> Place {
        node_place(self.entry, &self.file.source, node)
    }

    /// Returns where the snapshot has a node of that name, if it does.
    pub fn node_place(&self, name: &str) -> Option<Place> {
        Some(self.place(self.node(name)?))
    }

    /// Returns a node of its snapshot by its place in it, and where that is.
    pub fn node_at(&self, id: NodeId) -> (&'a Node, Place) {
        let node = self.cluster.nodes[id].node;
        (node, self.place(node))
    }

    /// Returns where the snapshot has the endpoint of a candidate.
    pub fn endpoint_place(&self, candidate: &PeerCandidate) -> Place {
        let node = &candidate.place;
        let address = candidate.endpoint.as_ref().and_then(Endpoint::address);
        let reported = |kind| {
            let addresses = node.key("addresses");
            let mut listed =
                self.node(candidate.leader.as_str()).map(|it| &it.addresses).into_iter().flatten();
            let index = listed.position(|it| {
                let read: Option<IpAddr> = it.address.parse().ok();
                it.kind == kind && read.map(|it| it.to_canonical()) == address
            });
            match index {
                Some(index) => addresses.index(index).key("address"),
                None => addresses,
            }
        };
        match candidate.origin {
            Some(Origin::Annotation(key)) => node.key("annotations").key(key),
            Some(Origin::ExternalIP) => reported(AddressKind::ExternalIP),
            Some(Origin::InternalIP) => reported(AddressKind::InternalIP),
            None => match self.node(candidate.leader.as_str()).and_then(listening) {
                Some((key, _)) => node.key("annotations").key(key),
                None => node.clone(),
            },
        }
    }

    /// Returns whether most of its segments are behind NAT, so that they cannot be dialled.
    pub fn roams(&self) -> bool {
        let candidates = &self.membership.candidates;
        let roaming = candidates.iter().filter(|it| it.endpoint.is_none()).count();
        candidates.len() < 2 * roaming
    }
}
