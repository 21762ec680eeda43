//! Promises: what of a cluster a link lets others reach.

use std::net::IpAddr;

use super::Excused;
use crate::agent::fabric::{At, Fabric, Owner, Site, SiteId};
use crate::kilo::id::{NodeId, Nodes};
use crate::kilo::node::annotation;
use crate::kilo::topology::Leader;
use crate::mesh::{EndpointSource, Networks, Range};
use crate::net::{Cidr, Families};
use crate::proof::reach::AddressBlock;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::PublicKey;

/// The promises of a cluster to those that it is linked with, by number of the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    /// Whether it takes part.
    pub(super) peered: Nodes<bool>,
    /// Whether any node takes part.
    is_peered: bool,
    /// The families in which its pods are reached.
    pods: Nodes<Families>,
    /// Declared pod CIDRs that its Kilo does not carry packets to.
    pub(super) uncarried: Vec<Cidr>,
    /// Whether its internal address is.
    nodes: Nodes<bool>,
}

impl Promises {
    pub(super) fn collect(fabric: &Fabric, number: SiteId, excused: Option<&Excused>) -> Self {
        let site = fabric.site(number);
        let (for_pods, for_nodes) = match &site.entry.networks {
            Networks::Typed {
                pods, additional, ..
            } => (pods, additional),
            Networks::Flat { allowed } => (allowed, allowed),
        };
        let within = |ranges: &[Range], inner: Cidr| {
            let mut ranges = ranges.iter();
            ranges.any(|range| range.cidr.contains(inner))
        };
        let (mut peered, mut pods, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut uncarried = Vec::new();
        for (node, own) in site.model.topology.nodes.numbered() {
            let name = own.kilo.name.as_str();
            let is_excused = excused.is_some_and(|it| it.has_node(site.cluster, name));
            let is_peered = is_peered(fabric, At { site: number, node }) && !is_excused;
            let is_lost =
                |range: Cidr| excused.is_some_and(|it| it.has_withheld(site.cluster, name, range));
            // No tunnel can lead to an address at which a node is dialled (`kilo.md` §2.6).
            let is_dialled = |it: &IpAddr| fabric.dialled(Cidr::host(*it)).next().is_some();
            let address = site
                .address(node)
                .filter(|it| !is_dialled(it))
                .filter(|it| !is_lost(Cidr::host(*it)));
            peered.push(is_peered);
            let given = own.kilo.pods().filter(|it| is_peered && !is_lost(*it));
            let (carried, others): (Vec<Cidr>, Vec<Cidr>) = given
                .filter(|it| within(for_pods, *it))
                .partition(|it| site.carries_pods(node, *it));
            pods.push(carried.into_iter().map(Cidr::first).collect());
            uncarried.extend(others);
            let is_declared = |it: IpAddr| within(for_nodes, Cidr::host(it));
            nodes.push(is_peered && address.is_some_and(is_declared));
        }
        Self {
            is_peered: peered.contains(&true),
            peered: Nodes::new(peered),
            pods: Nodes::new(pods),
            uncarried,
            nodes: Nodes::new(nodes),
        }
    }

    /// Returns whether a link promises these addresses.
    pub(super) fn include(&self, block: &AddressBlock) -> bool {
        match block.owner {
            Owner::Pods(node) => self.pods[node].has(block.span.family),
            Owner::Node(node) => self.nodes[node],
            Owner::Services | Owner::Network => self.is_peered,
            Owner::Tunnel(_) | Owner::Pool => false,
        }
    }
}

/// Returns whether a node takes part in a mesh: a cluster has a Peer for its segment, or could have
/// one.
fn is_peered(fabric: &Fabric, at: At) -> bool {
    let site = fabric.site(at.site);
    let own = site.node(at.node);
    let leader = own.segment.map(|it| site.leader(it));
    let Some(Leader::Certain(leader)) = leader else {
        return false;
    };
    let node = site.snapshot_of(at.node);
    if !site.entry.selector.matches(&node.labels) {
        return false;
    }
    let Some(key) = site.node(leader).kilo.key else {
        return false;
    };
    let mut sites = fabric.sites.iter();
    sites.any(|it| !it.model.peers_with(&key).is_empty())
        || speaks(site, leader)
            && fabric.holders(&key).len() == 1
            && PublicKey::try_from(key).is_ok()
}

/// Returns whether a leader has what a Peer needs: a WireGuard address that was declared, and an
/// endpoint where its cluster looks for one.
fn speaks(site: &Site, leader: NodeId) -> bool {
    let (own, node) = (site.node(leader), site.snapshot_of(leader));
    let is_declared = own.kilo.wireguard_ip().is_some_and(|announced| {
        let mut ranges = site.entry.networks.all().into_iter();
        ranges.any(|range| range.cidr.holds(announced.address))
    });
    let mut sources = site.entry.endpoint_from.iter();
    is_declared
        && (site.entry.keepalive.is_some() || sources.any(|source| has_endpoint(node, *source)))
}

fn has_endpoint(node: &Node, source: EndpointSource) -> bool {
    let says = |key: &str| node.annotations.contains_key(key);
    let has = |kind| node.addresses.iter().any(|it| it.kind == kind);
    match source {
        EndpointSource::Annotation => {
            says(annotation::CLUSTERMESH_ENDPOINT) || says(annotation::FORCE_ENDPOINT)
        }
        EndpointSource::ExternalIP => has(AddressKind::ExternalIP),
        EndpointSource::InternalIP => has(AddressKind::InternalIP),
        EndpointSource::Kilo => says(annotation::ENDPOINT),
    }
}
