//! Promises: what of a cluster a link lets others reach.

use std::net::IpAddr;

use crate::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId};
use crate::kilo::id::{NodeId, Nodes};
use crate::mesh::{Networks, Range, WireguardAddresses};
use crate::net::{Cidr, Families};
use crate::proof::excused::Excused;
use crate::proof::reach::AddressBlock;

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

/// Returns whether a cluster advertises the address that a node sends from.
fn advertises(site: &Site, node: NodeId, address: IpAddr) -> bool {
    let advertise = site.entry.advertise;
    match site.node(node).kilo.internal_address() {
        Some(internal) if internal == address => advertise.node_addresses,
        _ => advertise.wireguard != WireguardAddresses::None,
    }
}

impl Promises {
    pub(super) fn collect(fabric: &Fabric, number: SiteId, excused: Option<&Excused>) -> Self {
        let site = fabric.site(number);
        let (for_pods, for_nodes) = match &site.entry.networks {
            Networks::Typed { pods, additional, .. } => (pods, additional),
            Networks::Flat { allowed } => (allowed, allowed),
        };
        let within =
            |ranges: &[Range], inner: Cidr| ranges.iter().any(|range| range.cidr.contains(inner));
        let (mut peered, mut pods, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut uncarried = Vec::new();
        for (node, own) in site.model.topology.nodes.numbered() {
            let name = own.kilo.name.as_str();
            let is_excused = excused.is_some_and(|it| it.has_node(site.cluster, name));
            let is_peered = fabric.takes_part(NodeRef { site: number, node }) && !is_excused;
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
            let is_given = address.is_some_and(|it| is_declared(it) && advertises(site, node, it));
            nodes.push(is_peered && is_given);
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
